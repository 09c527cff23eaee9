#include "common/learn/strategy/input/sub_batches.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/sources.h"
#include "common/dataset/testing/test_elements.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/input/replica_batch.h"
#include "common/learn/strategy/input/testing/test_groups.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

const auto kInvalid = absl::StatusCode::kInvalidArgument;
using Policy = AutoShardPolicy;

TEST(DistributedIterator, OneReplicaGetsElementsAsTheyAre) {
  const Dataset scalars = Dataset::Range(3);  // No Batch(), no rows.
  ASSERT_OK_AND_ASSIGN(const auto dataset, DistributeDataset(scalars, {}));
  EXPECT_EQ(dataset.element_types(), scalars.element_types());
  ASSERT_OK_AND_ASSIGN(const auto iterator, dataset.MakeIterator());
  std::vector<ReplicaBatch> batches;
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_THAT(iterator->Next(&batches), IsOkAndHolds(true));
    EXPECT_EQ(batches[0].element[0].scalar<int64_t>(), i);
    EXPECT_EQ(batches[0].example_count, 1);
  }
  EXPECT_THAT(iterator->Next(&batches), IsOkAndHolds(false));
  EXPECT_THAT(iterator->Next(&batches), IsOkAndHolds(false));
  EXPECT_EQ(batches[0].example_count, 0);
  // A static batch extent stays.
  ASSERT_OK_AND_ASSIGN(const auto batched,
                       DistributeDataset(Dataset::Range(4).Batch(2), {}));
  EXPECT_EQ(batched.element_types()[0].shape, Shape({2}));
}

TEST(DistributedIterator, SeveralReplicasHaveOpenBatchExtents) {
  ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      DistributeDataset(Rows(8).Batch(4), {.replicas_per_worker = 2}));
  EXPECT_EQ(dataset.element_types()[1].shape, Shape({Shape::kUnknown, 2}));
  EXPECT_EQ(dataset.plan().batch_size, 4);
}

TEST(DistributedIterator, SubBatchesShareTheMemoryOfTheirBatch) {
  ASSERT_OK_AND_ASSIGN(
      const auto dataset,
      DistributeDataset(Rows(12).Batch(4), {.replicas_per_worker = 2},
                        {.prefetch_step_count = 0}));
  ASSERT_OK_AND_ASSIGN(const auto iterator, dataset.MakeIterator());
  std::vector<ReplicaBatch> batches;
  ASSERT_THAT(iterator->Next(&batches), IsOkAndHolds(true));
  const Tensor& first = batches[0].element[1];
  EXPECT_EQ(first.buffer(), batches[1].element[1].buffer());
  EXPECT_EQ(first.raw_data() + first.size_bytes(),
            batches[1].element[1].raw_data());
  // Returned for the next one.
  const uint8_t* const memory = first.raw_data();
  ASSERT_THAT(iterator->Next(&batches), IsOkAndHolds(true));
  EXPECT_EQ(batches[0].element[1].raw_data(), memory);
  // But not while another owner holds it.
  const std::vector<ReplicaBatch> kept = batches;
  ASSERT_THAT(iterator->Next(&batches), IsOkAndHolds(true));
  EXPECT_EQ(NumberOf(batches[0].element[0], 0), 8);
  EXPECT_EQ(NumberOf(kept[0].element[0], 0), 4);
}

TEST(DistributedIterator, BatchesWithoutRowsAreNotSteps) {
  // Of three batches, the middle one is empty.
  const Dataset gap = Rows(12).Batch(4).MapElements(
      [](Element element) -> absl::StatusOr<Element> {
        if (NumberOf(element[0], 0) != 4) return element;
        return Element{element[0].SliceRows(0, 0), element[1].SliceRows(0, 0)};
      },
      {{DType::kInt64, Shape({Shape::kUnknown})},
       {DType::kFloat32, Shape({Shape::kUnknown, 2})}});
  const std::vector<int64_t> expected = {0, 1, 2, 3, 8, 9, 10, 11};
  const Epoch whole =
      RunGroup(Distribute(gap, 2, 2, {.auto_shard_policy = Policy::kData}));
  EXPECT_THAT(whole.rows(), ElementsAreArray(expected));
  EXPECT_EQ(whole.steps.size(), 2);
  const Epoch parts =
      RunGroup(Distribute(gap, 2, 2, {.auto_shard_policy = Policy::kOff}));
  EXPECT_EQ(parts.steps.size(), 4);
}

TEST(DistributedIterator, PlacesCountFullShares) {
  // Of 9 rows, the second step of worker 1 of 2.
  const auto workers = Distribute(CsvFiles(WriteFiles({9, 9})).Batch(9), 2, 2,
                                  {.auto_shard_policy = Policy::kFile});
  ASSERT_OK_AND_ASSIGN(const auto iterator, workers[1].MakeIterator());
  std::vector<ReplicaBatch> batches;
  ASSERT_THAT(iterator->Next(&batches), IsOkAndHolds(true));
  EXPECT_EQ(batches[0].example_offset, 5);  // Sizes 3, 2, 2, 2.
  EXPECT_EQ(batches[1].example_offset, 7);
  ASSERT_THAT(iterator->Next(&batches), IsOkAndHolds(true));
  EXPECT_EQ(batches[0].example_offset, 4);  // Sizes 2, 2, 3, 2.
  EXPECT_EQ(batches[1].example_offset, 7);
}

TEST(DistributedIterator, BatchesThatAFunctionMadeNeedASize) {
  const Dataset batches =
      Dataset::FromTensorSlices({Tensor::Zeros(DType::kFloat32, {3, 4, 2})});
  EXPECT_THAT(DistributeError(batches, 2, {}),
              StatusIs(kInvalid, AllOf(HasSubstr("no Batch()"),
                                       HasSubstr("global_batch_size"))));
  const auto workers = Distribute(batches, 2, 1, {.global_batch_size = 4});
  EXPECT_EQ(RunGroup(workers).sizes,
            (std::vector<std::vector<int64_t>>{{2, 2}, {2, 2}, {2, 2}}));
  EXPECT_THAT(
      DistributeError(Rows(9).Batch(3), 2, {.global_batch_size = 4}),
      StatusIs(kInvalid, AllOf(HasSubstr("is 4"), HasSubstr("Batch(3)"))));
}

TEST(DistributedIterator, InvalidDefinitionsAreReported) {
  const Dataset dataset = Rows(8).Batch(4);
  const auto error = [&](const InputPlacement& placement,
                         const InputOptions& options) {
    return DistributeDataset(dataset, placement, options).status();
  };
  EXPECT_THAT(error({.worker_count = 2, .worker_index = 2}, {}),
              StatusIs(kInvalid, HasSubstr("worker 2 of 2")));
  EXPECT_THAT(error({.replicas_per_worker = 0}, {}),
              StatusIs(kInvalid, HasSubstr("0 replicas")));
  EXPECT_THAT(
      error({.worker_count = 1 << 15, .replicas_per_worker = 1 << 15}, {}),
      StatusIs(kInvalid));
  EXPECT_THAT(error({}, {.prefetch_step_count = -1}),
              StatusIs(kInvalid, HasSubstr("prefetch_step_count")));
  EXPECT_THAT(error({}, {.global_batch_size = -1}),
              StatusIs(kInvalid, HasSubstr("global_batch_size")));
  EXPECT_THAT(error({}, {.slow_input_warning = absl::ZeroDuration()}),
              StatusIs(kInvalid, HasSubstr("slow_input_warning")));
  EXPECT_THAT(DistributeDataset(Rows(3).Batch(0), {}),
              StatusIs(kInvalid, HasSubstr("batch_size is 0")));
  // A scalar in addition to the rows.
  const Dataset mixed = dataset.MapElements(
      [](Element element) -> absl::StatusOr<Element> {
        return Element{element[0], Tensor::Scalar<float>(1)};
      },
      {{DType::kInt64, Shape({Shape::kUnknown})}, {DType::kFloat32, Shape()}});
  EXPECT_THAT(DistributeError(mixed, 2, {}),
              StatusIs(kInvalid, AllOf(HasSubstr("component 1"),
                                       HasSubstr("has no rows"))));
}

TEST(DistributedIterator, ComponentsOfABatchHaveAsManyRows) {
  const std::vector<TensorType> types = {
      {DType::kInt64, Shape({Shape::kUnknown})},
      {DType::kInt64, Shape({Shape::kUnknown})}};
  const Dataset torn = Rows(8).Batch(4).MapElements(
      [](Element element) -> absl::StatusOr<Element> {
        return Element{element[0], element[0].SliceRows(0, 3)};
      },
      types);
  for (const int prefetch : {0, 1}) {
    ASSERT_OK_AND_ASSIGN(const auto dataset,
                         DistributeDataset(torn, {.replicas_per_worker = 2},
                                           {.prefetch_step_count = prefetch}));
    ASSERT_OK_AND_ASSIGN(const auto iterator, dataset.MakeIterator());
    std::vector<ReplicaBatch> batches;
    for (int again = 0; again < 2; ++again) {
      EXPECT_THAT(iterator->Next(&batches),
                  StatusIs(kInvalid, AllOf(HasSubstr("component 1"),
                                           HasSubstr("has 3"))));
    }
  }
}

TEST(DistributedIterator, ErrorsOfTheDatasetKeepTheirPositionAndRepeat) {
  for (const int prefetch : {0, 1, 3}) {
    ASSERT_OK_AND_ASSIGN(
        const auto dataset,
        DistributeDataset(FailAt(Dataset::Range(9), 5).Batch(2),
                          {.replicas_per_worker = 2},
                          {.prefetch_step_count = prefetch}));
    ASSERT_OK_AND_ASSIGN(const auto iterator, dataset.MakeIterator());
    std::vector<ReplicaBatch> batches;
    EXPECT_THAT(iterator->Next(&batches), IsOkAndHolds(true));
    EXPECT_THAT(iterator->Next(&batches), IsOkAndHolds(true));
    for (int again = 0; again < 2; ++again) {
      EXPECT_THAT(iterator->Next(&batches),
                  StatusIs(absl::StatusCode::kDataLoss));
    }
  }
}

}  // namespace
}  // namespace muster
