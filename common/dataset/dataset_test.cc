#include "common/dataset/dataset.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/testing/test_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<int64_t> UpTo(int64_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::vector<int64_t> Sorted(std::vector<int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

const auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(FromTensors, IsOneElement) {
  const Dataset dataset = Dataset::FromTensors(
      {Tensor::FromValues<float>({2}, {1, 2}), Tensor::Scalar<int64_t>(3)});
  const auto elements = Elements(dataset);
  ASSERT_THAT(elements, SizeIs(1));
  EXPECT_THAT(elements[0][0].flat<float>(), ElementsAre(1, 2));
  EXPECT_EQ(elements[0][1].scalar<int64_t>(), 3);
  EXPECT_EQ(dataset.Cardinality(), 1);
}

TEST(FromTensorSlices, HasOneElementPerRow) {
  const Dataset dataset = Dataset::FromTensorSlices(
      {Tensor::FromValues<float>({3, 2}, {1, 2, 3, 4, 5, 6}),
       Tensor::FromValues<std::string>({3}, {"a", "b", "c"})});
  EXPECT_EQ(dataset.Cardinality(), 3);
  const auto elements = Elements(dataset);
  ASSERT_THAT(elements, SizeIs(3));
  EXPECT_THAT(elements[2][0].flat<float>(), ElementsAre(5, 6));
  EXPECT_EQ(elements[2][1].scalar<std::string>(), "c");
  const auto batches = Elements(dataset.Batch(2));
  EXPECT_THAT(batches[0][1].flat<std::string>(), ElementsAre("a", "b"));
}

TEST(FromTensorSlices, RequiresEqualNumbersOfRows) {
  EXPECT_THAT(Dataset::FromTensorSlices(Element()).status(),
              StatusIs(kInvalid, HasSubstr("no tensors")));
  EXPECT_THAT(Dataset::FromTensorSlices({Tensor::Scalar(1.0f)}).status(),
              StatusIs(kInvalid, HasSubstr("float32[]")));
  EXPECT_THAT(Dataset::FromTensorSlices({Tensor::Zeros(DType::kFloat32, {3}),
                                         Tensor::Zeros(DType::kFloat32, {4})})
                  .status(),
              StatusIs(kInvalid, HasSubstr("float32[4]")));
}

TEST(FromTensorSlices, WithoutRowsIsEmpty) {
  const Dataset dataset =
      Dataset::FromTensorSlices({Tensor(DType::kFloat32, {0, 4})});
  EXPECT_THAT(Elements(dataset), IsEmpty());
  EXPECT_THAT(Elements(dataset.Shuffle(10).Repeat().Batch(3)), IsEmpty());
}

TEST(Range, CountsBothWays) {
  EXPECT_THAT(Numbers(Dataset::Range(3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(Numbers(Dataset::Range(1, 8, 3)), ElementsAre(1, 4, 7));
  EXPECT_THAT(Numbers(Dataset::Range(3, 0, -2)), ElementsAre(3, 1));
  EXPECT_THAT(Numbers(Dataset::Range(3, 3)), IsEmpty());
  EXPECT_THAT(Numbers(Dataset::Range(0, 3, -1)), IsEmpty());
  EXPECT_THAT(Numbers(Dataset::Range(INT64_MIN, INT64_MAX, INT64_MAX)),
              ElementsAre(INT64_MIN, -1, INT64_MAX - 1));
  EXPECT_THAT(Dataset::Range(0, 3, 0).status(),
              StatusIs(kInvalid, HasSubstr("step is 0")));
  EXPECT_THAT(Dataset::Range(INT64_MIN, INT64_MAX).status(),
              StatusIs(kInvalid, HasSubstr("too large a range")));
}

// The stages that select and reorder, on rows of a table and on elements.
class OrderTest : public testing::TestWithParam<bool> {
 protected:
  Dataset Source(int64_t count) const {
    return GetParam() ? Dataset::Range(count) : Stream(count);
  }
};
INSTANTIATE_TEST_SUITE_P(RowsAndElements, OrderTest, testing::Bool());

TEST_P(OrderTest, TakeAndSkipStopAtTheEnds) {
  EXPECT_THAT(Numbers(Source(5).Take(2)), ElementsAre(0, 1));
  EXPECT_THAT(Numbers(Source(2).Take(5)), ElementsAre(0, 1));
  EXPECT_THAT(Numbers(Source(2).Take(0)), IsEmpty());
  EXPECT_THAT(Numbers(Source(2).Take(Dataset::kInfinite)), ElementsAre(0, 1));
  EXPECT_THAT(Numbers(Source(5).Skip(3)), ElementsAre(3, 4));
  EXPECT_THAT(Numbers(Source(5).Skip(9)), IsEmpty());
  EXPECT_THAT(Numbers(Source(9).Skip(2).Take(3)), ElementsAre(2, 3, 4));
}

TEST_P(OrderTest, ShardsAreDisjointAndCoverEverything) {
  EXPECT_THAT(Numbers(Source(7).Shard(3, 1)), ElementsAre(1, 4));
  std::vector<int64_t> all;
  for (int index = 0; index < 3; ++index) {
    const Dataset shard = Source(7).Shard(3, index);
    const auto numbers = Numbers(shard);
    EXPECT_EQ(static_cast<int64_t>(numbers.size()), shard.Cardinality());
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  EXPECT_EQ(Sorted(all), UpTo(7));
  EXPECT_THAT(Numbers(Source(2).Shard(5, 4)), IsEmpty());
}

TEST_P(OrderTest, ShardByPipelineIsTheContextsShard) {
  const Dataset dataset = Source(7).ShardByPipeline();
  EXPECT_THAT(Numbers(dataset), SizeIs(7));
  EXPECT_THAT(
      Numbers(dataset, {.num_input_pipelines = 3, .input_pipeline_id = 2}),
      ElementsAre(2, 5));
}

TEST_P(OrderTest, RepeatStartsOver) {
  EXPECT_THAT(Numbers(Source(2).Repeat(3)), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(Numbers(Source(2).Repeat(0)), IsEmpty());
  EXPECT_THAT(Numbers(Source(2).Repeat().Take(5)), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_THAT(Numbers(Source(0).Repeat()), IsEmpty());
  EXPECT_THAT(Numbers(Source(0).Repeat(4)), IsEmpty());
  constexpr int64_t kMany = int64_t{1} << 40;
  EXPECT_THAT(Numbers(Source(0).Repeat(kMany)), IsEmpty());
  EXPECT_THAT(Numbers(Source(0).Repeat(kMany).Repeat(kMany)), IsEmpty());
}

TEST_P(OrderTest, ShuffleIsAPermutation) {
  for (const int64_t buffer_size : {1, 2, 10, 100, 1000}) {
    const auto numbers = Numbers(Source(100).Shuffle(buffer_size));
    EXPECT_EQ(Sorted(numbers), UpTo(100)) << buffer_size;
    EXPECT_EQ(numbers == UpTo(100), buffer_size == 1);
    // An element that leaves at position i has entered by then.
    for (int64_t i = 0; i < 100; ++i) EXPECT_LT(numbers[i], i + buffer_size);
  }
}

TEST_P(OrderTest, ShuffleIsAFunctionOfSeedAndEpoch) {
  const Dataset dataset = Source(50).Shuffle(50, {.seed = 3});
  EXPECT_EQ(Numbers(dataset), Numbers(dataset));
  EXPECT_NE(Numbers(dataset), Numbers(dataset, {}, 1));
  EXPECT_NE(Numbers(dataset), Numbers(Source(50).Shuffle(50, {.seed = 4})));
  const Dataset same =
      Source(50).Shuffle(50, {.seed = 3, .reshuffle_each_iteration = false});
  EXPECT_EQ(Numbers(same), Numbers(same, {}, 1));
}

TEST_P(OrderTest, RepeatEqualsNewIterators) {
  const Dataset dataset = Source(20).Shuffle(20, {.seed = 3});
  std::vector<int64_t> expected;
  for (int epoch = 0; epoch < 4; ++epoch) {
    const auto pass = Numbers(dataset, {}, epoch);
    expected.insert(expected.end(), pass.begin(), pass.end());
  }
  EXPECT_EQ(Numbers(dataset.Repeat(4)), expected);
  EXPECT_EQ(Numbers(dataset.Repeat().Take(80)), expected);
  auto twice = Numbers(dataset.Repeat(2));
  const auto second = Numbers(dataset.Repeat(2), {}, 1);
  twice.insert(twice.end(), second.begin(), second.end());
  EXPECT_EQ(twice, expected);
}

TEST_P(OrderTest, DecorrelatedShufflesDifferBetweenPipelines) {
  const InputContext one = {.num_input_pipelines = 2, .input_pipeline_id = 1};
  const Dataset same = Source(50).Shuffle(50, {.seed = 3});
  EXPECT_EQ(Numbers(same), Numbers(same, one));
  const Dataset other =
      Source(50).Shuffle(50, {.seed = 3, .decorrelate = true});
  EXPECT_NE(Numbers(other), Numbers(other, one));
}

TEST(Order, IsTheSameForRowsAndElements) {
  // Random chains of stages, once on a table and once on a stream.
  RandomStream random(11);
  for (int round = 0; round < 100; ++round) {
    const int64_t count = static_cast<int64_t>(random.Below(30));
    Dataset rows = Dataset::Range(count);
    Dataset elements = Stream(count);
    for (int stage = 0; stage < 4; ++stage) {
      const int64_t n = 1 + static_cast<int64_t>(random.Below(12));
      const uint64_t kind = random.Below(6);
      const auto add = [&](const Dataset& input) {
        switch (kind) {
          case 0:
            return input.Shuffle(n, {.seed = static_cast<uint64_t>(n)});
          case 1:
            return input.Repeat(n % 4);
          case 2:
            return input.Take(3 * n);
          case 3:
            return input.Skip(n % 5);
          case 4:
            return input.Shard(n, n - 1);
          default:
            return input.Repeat().Take(4 * n);
        }
      };
      rows = add(rows);
      elements = add(elements);
    }
    const auto expected = Numbers(elements);
    EXPECT_EQ(Numbers(rows), expected);
    EXPECT_EQ(Numbers(rows.Batch(7)), expected);
    EXPECT_EQ(Numbers(elements.Batch(7)), expected);
    if (rows.Cardinality() >= 0) {
      EXPECT_EQ(rows.Cardinality(), static_cast<int64_t>(expected.size()));
    }
  }
}

TEST_P(OrderTest, BatchKeepsTheRemainderByDefault) {
  EXPECT_EQ(Shapes(Source(5).Batch(2)), "[2] [2] [1]");
  EXPECT_EQ(Shapes(Source(5).Batch(2, {.drop_remainder = true})), "[2] [2]");
  EXPECT_EQ(Shapes(Source(4).Batch(2)), "[2] [2]");
  EXPECT_EQ(Shapes(Source(1).Batch(2, {.drop_remainder = true})), "");
  EXPECT_EQ(Shapes(Source(0).Batch(2)), "");
  const Dataset unknown = Source(5).FilterElements(
      [](const Element&) -> absl::StatusOr<bool> { return true; });
  EXPECT_EQ(unknown.Cardinality(), Dataset::kUnknownCardinality);
  EXPECT_EQ(unknown.Repeat().Cardinality(), Dataset::kInfinite);
  EXPECT_EQ(unknown.Repeat(2).Cardinality(), Dataset::kUnknownCardinality);
  EXPECT_EQ(Source(5).Batch(2).Cardinality(), 3);
  EXPECT_EQ(Source(5).Batch(2, {.drop_remainder = true}).Cardinality(), 2);
  EXPECT_EQ(Source(5).Batch(2).element_types()[0].shape,
            Shape({Shape::kUnknown}));
  EXPECT_EQ(Source(4).Batch(2).element_types()[0].shape, Shape({2}));
  EXPECT_EQ(Shapes(Source(5).Batch(2).Batch(2, {.drop_remainder = true})),
            "[2,2]");
}

TEST_P(OrderTest, UnbatchUndoesBatch) {
  EXPECT_EQ(Numbers(Source(7).Batch(3).Unbatch()), UpTo(7));
  EXPECT_EQ(Shapes(Source(2).Batch(2).Unbatch()), "[] []");
  EXPECT_THAT(Source(7).Unbatch().status(),
              StatusIs(kInvalid, HasSubstr("has no rows")));
}

TEST_P(OrderTest, AnElementPassedInIsReused) {
  ASSERT_OK_AND_ASSIGN(const auto iterator,
                       Source(100).Repeat().Batch(10).MakeIterator());
  Element batch;
  ASSERT_THAT(iterator->Next(&batch), IsOkAndHolds(true));
  const void* const memory = batch[0].raw_data();
  ASSERT_THAT(iterator->Next(&batch), IsOkAndHolds(true));
  EXPECT_EQ(batch[0].raw_data(), memory);
  EXPECT_EQ(batch[0].flat<int64_t>()[0], 10);
  const Tensor kept = batch[0];
  ASSERT_THAT(iterator->Next(&batch), IsOkAndHolds(true));
  EXPECT_EQ(kept.flat<int64_t>()[0], 10) << "a tensor that is kept stays";
}

TEST(Batch, ElementsOfOneBatchHaveOneShape) {
  const Dataset dataset = Dataset::Range(4).MapElements(
      [](Element element) -> absl::StatusOr<Element> {
        return Element{
            Tensor::Zeros(DType::kFloat32, {element[0].scalar<int64_t>()})};
      },
      {{DType::kFloat32, Shape({Shape::kUnknown})}});
  ASSERT_OK_AND_ASSIGN(const auto iterator, dataset.Batch(2).MakeIterator());
  Element batch;
  EXPECT_THAT(iterator->Next(&batch),
              StatusIs(kInvalid, HasSubstr("float32[1]")));
  EXPECT_THAT(iterator->Next(&batch),
              StatusIs(kInvalid, HasSubstr("float32[1]")))
      << "an error stays";
}

TEST(Map, TracedFunctionsRunAsGraphs) {
  const Dataset dataset = Dataset::Range(4).Batch(3).Map(
      [](absl::Span<const Value> x) -> std::vector<Value> {
        Value doubled = x[0].builder()->Op("Add", {x[0], x[0]});
        return {doubled, x[0]};
      });
  ASSERT_OK(dataset.status());
  const auto elements = Elements(dataset);
  ASSERT_THAT(elements, SizeIs(2));
  EXPECT_THAT(elements[0][0].flat<int64_t>(), ElementsAre(0, 2, 4));
  EXPECT_THAT(elements[1][0].flat<int64_t>(), ElementsAre(6));
  EXPECT_THAT(elements[1][1].flat<int64_t>(), ElementsAre(3));
}

TEST(Map, RandomnessIsAFunctionOfSeedEpochAndElement) {
  const auto noise = [](uint64_t seed) {
    return Dataset::Range(5).Map(
        [](absl::Span<const Value> x) -> std::vector<Value> {
          GraphBuilder& builder = *x[0].builder();
          const Value step = builder.Op("StepSeed", {});
          const Value drawn =
              builder.Op("RandomUniform", {step},
                         {{"dtype", DType::kFloat32}, {"shape", Shape({2})}});
          return {builder.Op(
              "Floor",
              {builder.Op(
                  "Mul", {drawn, builder.Constant(Tensor::Scalar(1000.0f))})})};
        },
        {.thread_count = 1, .seed = seed});
  };
  const auto first = Numbers(noise(1));
  EXPECT_THAT(std::set<int64_t>(first.begin(), first.end()), SizeIs(10));
  EXPECT_EQ(first, Numbers(noise(1)));
  EXPECT_NE(first, Numbers(noise(1), {}, 1));
  EXPECT_NE(first, Numbers(noise(2)));
}

TEST(Map, ThreadsDoNotChangeTheOrder) {
  const auto square = [](Element element) -> absl::StatusOr<Element> {
    const int64_t x = element[0].scalar<int64_t>();
    return Element{Tensor::Scalar<int64_t>(x * x)};
  };
  for (const int threads : {1, 2, 7}) {
    for (const int64_t count : {0, 1, 100}) {
      const auto numbers = Numbers(Dataset::Range(count).MapElements(
          square, {{DType::kInt64, Shape()}}, {.thread_count = threads}));
      ASSERT_THAT(numbers, SizeIs(count));
      for (int64_t i = 0; i < count; ++i) EXPECT_EQ(numbers[i], i * i);
    }
  }
}

TEST(Map, ErrorsKeepTheirPosition) {
  for (const int threads : {1, 4}) {
    const Dataset dataset = Dataset::Range(100).MapElements(
        [](Element element) -> absl::StatusOr<Element> {
          if (element[0].scalar<int64_t>() == 30) {
            return absl::DataLossError("bad record");
          }
          return element;
        },
        {{DType::kInt64, Shape()}}, {.thread_count = threads});
    ASSERT_OK_AND_ASSIGN(const auto iterator, dataset.MakeIterator());
    Element element;
    for (int64_t i = 0; i < 30; ++i) {
      ASSERT_THAT(iterator->Next(&element), IsOkAndHolds(true));
      EXPECT_EQ(element[0].scalar<int64_t>(), i);
    }
    for (int again = 0; again < 2; ++again) {
      EXPECT_THAT(iterator->Next(&element),
                  StatusIs(absl::StatusCode::kDataLoss,
                           HasSubstr("Map of element 30: bad record")));
    }
  }
}

TEST(Map, AnIteratorMayBeDestroyedAtAnyPoint) {
  const Dataset dataset = Stream(1000).Repeat().MapElements(
      [](Element element) -> absl::StatusOr<Element> { return element; },
      {{DType::kInt64, Shape()}}, {.thread_count = 3});
  for (int drawn = 0; drawn < 10; ++drawn) {
    ASSERT_OK_AND_ASSIGN(const auto iterator,
                         dataset.Prefetch(2).MakeIterator());
    Element element;
    for (int i = 0; i < drawn; ++i) {
      ASSERT_THAT(iterator->Next(&element), IsOkAndHolds(true));
    }
  }
}

TEST(Map, ReturnsWhatWasDeclared) {
  const Dataset dataset = Dataset::Range(1).MapElements(
      [](Element) -> absl::StatusOr<Element> {
        return Element{Tensor::Scalar(1.0f)};
      },
      {{DType::kInt64, Shape()}});
  ASSERT_OK_AND_ASSIGN(const auto iterator, dataset.MakeIterator());
  Element element;
  EXPECT_THAT(iterator->Next(&element),
              StatusIs(kInvalid, HasSubstr("float32[]; int64[] was declared")));
}

TEST(Filter, KeepsWhatThePredicateAccepts) {
  const auto even = [](const Element& element) -> absl::StatusOr<bool> {
    return element[0].scalar<int64_t>() % 2 == 0;
  };
  EXPECT_THAT(Numbers(Dataset::Range(5).FilterElements(even)),
              ElementsAre(0, 2, 4));
  EXPECT_THAT(Numbers(Dataset::Range(5).Skip(1).Take(1).FilterElements(even)),
              IsEmpty());
  const Dataset traced = Dataset::Range(9).Filter(
      [](absl::Span<const Value> x) -> std::vector<Value> {
        GraphBuilder& builder = *x[0].builder();
        return {builder.Op(
            "Greater", {x[0], builder.Constant(Tensor::Scalar<int64_t>(6))})};
      });
  ASSERT_OK(traced.status());
  EXPECT_THAT(Numbers(traced), ElementsAre(7, 8));
  EXPECT_THAT(Dataset::Range(9)
                  .Filter([](absl::Span<const Value> x) -> std::vector<Value> {
                    return {x[0]};
                  })
                  .status(),
              StatusIs(kInvalid, HasSubstr("expected one bool[]")));
}

TEST(Zip, EndsWithTheShortest) {
  for (const Dataset& right : {Dataset::Range(10, 13), Stream(13).Skip(10)}) {
    const Dataset dataset = Dataset::Zip({Dataset::Range(5), right});
    const auto elements = Elements(dataset);
    ASSERT_THAT(elements, SizeIs(3));
    EXPECT_EQ(elements[2][0].scalar<int64_t>(), 2);
    EXPECT_EQ(elements[2][1].scalar<int64_t>(), 12);
    EXPECT_THAT(Elements(dataset.Batch(2)), SizeIs(2));
  }
  EXPECT_EQ(Dataset::Zip({Dataset::Range(5), Dataset::Range(3)}).Cardinality(),
            3);
  EXPECT_THAT(Dataset::Zip({}).status(), StatusIs(kInvalid));
}

TEST(Zip, PairsReorderedElements) {
  const Dataset left = Dataset::Range(9).Shuffle(9, {.seed = 1});
  const auto elements = Elements(Dataset::Zip({left, Dataset::Range(9)}));
  const auto expected = Numbers(left);
  for (int64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(elements[i][0].scalar<int64_t>(), expected[i]);
    EXPECT_EQ(elements[i][1].scalar<int64_t>(), i);
  }
}

TEST(Concatenate, ContinuesWithTheNext) {
  EXPECT_THAT(Numbers(Dataset::Range(2).Concatenate(Dataset::Range(7, 9))),
              ElementsAre(0, 1, 7, 8));
  EXPECT_THAT(Numbers(Dataset::Range(0).Concatenate(Stream(1))),
              ElementsAre(0));
  EXPECT_THAT(Dataset::Range(2)
                  .Concatenate(Dataset::FromTensors({Tensor::Scalar(1.0f)}))
                  .status(),
              StatusIs(kInvalid, HasSubstr("float32[]")));
}

TEST(Interleave, TakesTurns) {
  std::vector<Dataset> datasets;
  for (int64_t i = 0; i < 4; ++i) {
    datasets.push_back(Dataset::Range(10 * i, 10 * i + 3));
  }
  EXPECT_THAT(Numbers(Dataset::Interleave(
                  datasets, {.cycle_length = 2, .block_length = 2})),
              ElementsAre(0, 1, 10, 11, 2, 12, 20, 21, 30, 31, 22, 32));
  EXPECT_THAT(Numbers(Dataset::Interleave(datasets)),
              ElementsAre(0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32));
  EXPECT_THAT(Numbers(Dataset::Range(3).Interleave(
                  [](const Element& element) {
                    const int64_t n = element[0].scalar<int64_t>();
                    return Dataset::Range(10 * n, 10 * n + n);
                  },
                  {{DType::kInt64, Shape()}}, {.cycle_length = 3})),
              ElementsAre(10, 20, 21));
  EXPECT_THAT(Dataset::Interleave(datasets, {.cycle_length = 0}).status(),
              StatusIs(kInvalid, HasSubstr("cycle_length is 0")));
}

TEST(CountElements, ReadsDataOfUnknownCardinality) {
  EXPECT_THAT(Dataset::Range(7).CountElements(), IsOkAndHolds(7));
  EXPECT_THAT(
      Dataset::Range(1).Repeat().CountElements(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("infinite")));
  const Dataset even = Dataset::Range(7).FilterElements(
      [](const Element& element) -> absl::StatusOr<bool> {
        return element[0].scalar<int64_t>() % 2 == 0;
      });
  ASSERT_EQ(even.Cardinality(), Dataset::kUnknownCardinality);
  EXPECT_THAT(even.CountElements(), IsOkAndHolds(4));
}

TEST(Cache, ReadsTheInputOnce) {
  auto calls = std::make_shared<int>(0);
  const Dataset dataset = Dataset::Range(4).MapElements(
      [calls](Element element) -> absl::StatusOr<Element> {
        ++*calls;
        return element;
      },
      {{DType::kInt64, Shape()}});
  const Dataset cached = dataset.Cache();
  EXPECT_THAT(Numbers(cached.Take(2)), ElementsAre(0, 1));
  EXPECT_EQ(*calls, 2) << "half a pass";
  EXPECT_THAT(Numbers(cached.Repeat(3)), SizeIs(12));
  EXPECT_EQ(*calls, 6);
  EXPECT_EQ(Sorted(Numbers(cached.Shuffle(4).Batch(3))), UpTo(4));
  EXPECT_EQ(*calls, 6);
  EXPECT_THAT(Dataset::Range(1).Repeat().Cache().status(),
              StatusIs(kInvalid, HasSubstr("infinite")));
}

TEST(Cache, KeepsTheOrderOfAShuffleBeforeIt) {
  const Dataset dataset = Dataset::Range(30).Shuffle(30).Cache();
  const auto first = Numbers(dataset);
  EXPECT_EQ(Numbers(dataset, {}, 1), first);
}

TEST(Prefetch, DoesNotChangeTheElements) {
  EXPECT_EQ(Numbers(Stream(50).Prefetch(3)), UpTo(50));
  EXPECT_THAT(Numbers(Stream(0).Prefetch(1)), IsEmpty());
  EXPECT_EQ(Numbers(Stream(50).Prefetch(2).Shuffle(10).Prefetch(64)),
            Numbers(Stream(50).Shuffle(10)));
  EXPECT_THAT(Dataset::Range(1).Prefetch(0).status(),
              StatusIs(kInvalid, HasSubstr("buffer_size is 0")));
}

TEST(Prefetch, KeepsThePositionOfErrors) {
  ASSERT_OK_AND_ASSIGN(const auto iterator,
                       FailAt(Dataset::Range(9), 2).Prefetch(4).MakeIterator());
  Element element;
  EXPECT_THAT(iterator->Next(&element), IsOkAndHolds(true));
  EXPECT_THAT(iterator->Next(&element), IsOkAndHolds(true));
  EXPECT_THAT(iterator->Next(&element),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("bad record")));
}

TEST(Dataset, KeepsItsFirstError) {
  const Dataset dataset =
      Dataset::Range(5).Batch(0).Shuffle(-1).Map(Graph()).Prefetch(1);
  EXPECT_THAT(dataset.status(),
              StatusIs(kInvalid, HasSubstr("batch_size is 0")));
  EXPECT_THAT(dataset.MakeIterator().status(),
              StatusIs(kInvalid, HasSubstr("batch_size is 0")));
  EXPECT_THAT(dataset.element_types(), IsEmpty());
  EXPECT_THAT(Dataset().MakeIterator(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(Dataset, RejectsInvalidContexts) {
  EXPECT_THAT(Dataset::Range(1).MakeIterator(
                  {.num_input_pipelines = 2, .input_pipeline_id = 2}),
              StatusIs(kInvalid, HasSubstr("pipeline 2 of 2")));
  EXPECT_THAT(Dataset::Range(1).MakeIterator({}, -1), StatusIs(kInvalid));
}

TEST(Dataset, AnIteratorOutlivesItsDefinition) {
  std::unique_ptr<DatasetIterator> iterator;
  {
    const Dataset dataset = Stream(2).Cache().Repeat(2).Prefetch(1);
    ASSERT_OK_AND_ASSIGN(iterator, dataset.MakeIterator());
  }
  Element element;
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(iterator->Next(&element), IsOkAndHolds(true));
  }
  EXPECT_THAT(iterator->Next(&element), IsOkAndHolds(false));
  EXPECT_THAT(iterator->Next(&element), IsOkAndHolds(false));
}

}  // namespace
}  // namespace muster
