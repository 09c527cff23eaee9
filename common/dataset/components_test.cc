#include "common/dataset/components.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/codec/dataset_codec.h"
#include "common/dataset/dataset.h"
#include "common/dataset/group_by_window.h"
#include "common/dataset/registered_function.h"
#include "common/dataset/testing/test_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

Tensor Int64s(const std::vector<int64_t>& values) {
  return Tensor::FromSpan<int64_t>({static_cast<int64_t>(values.size())},
                                   values);
}

// Three people: {"age", "city", label}.
Dataset People() {
  return Dataset::FromTensorSlices(
      {{"age", Int64s({30, 41, 52})},
       {"city", Tensor::FromValues<std::string>({3}, {"Rome", "Oslo", "Bonn"})},
       {"", Int64s({1, 0, 1})}});
}

// The same as elements that are not rows of a table.
Dataset PeopleStream() {
  const Dataset people = People();
  return people
      .MapElements(
          [](Element element) -> absl::StatusOr<Element> { return element; },
          people.element_types())
      .WithNames(people.component_names());
}

// The int64 values of one component of all elements.
std::vector<int64_t> ValuesOf(const Dataset& dataset, absl::string_view name) {
  const absl::StatusOr<int> component = dataset.element_spec().Find(name);
  EXPECT_OK(component);
  if (!component.ok()) return {};
  std::vector<int64_t> values;
  for (const Element& element : Elements(dataset)) {
    for (const int64_t value : element[*component].flat<int64_t>()) {
      values.push_back(value);
    }
  }
  return values;
}

Dataset SentAndReceived(const Dataset& dataset) {
  const absl::StatusOr<proto::Dataset> encoded = EncodeDataset(dataset);
  EXPECT_OK(encoded);
  if (!encoded.ok()) return Dataset();
  absl::StatusOr<Dataset> decoded = DecodeDataset(*encoded);
  EXPECT_OK(decoded);
  return decoded.ok() ? *std::move(decoded) : Dataset();
}

TEST(ComponentsTest, SourcesInMemoryGiveNames) {
  EXPECT_THAT(People().component_names(), ElementsAre("age", "city", ""));
  EXPECT_THAT(ValuesOf(People(), "age"), ElementsAre(30, 41, 52));
  const Dataset one = Dataset::FromTensors({{"a", Int64s({1})}});
  EXPECT_THAT(one.component_names(), ElementsAre("a"));
  EXPECT_EQ(one.Cardinality(), 1);
  EXPECT_THAT(Dataset::Range(3).component_names(), IsEmpty());
  // Names that are all "" are none.
  EXPECT_THAT(Dataset::Range(3).WithNames({""}).component_names(), IsEmpty());
  EXPECT_THAT(People().WithNames({}).component_names(), IsEmpty());
}

TEST(ComponentsTest, StagesThatLeaveComponentsLeaveNames) {
  const auto keep = [](const Element&) -> absl::StatusOr<bool> { return true; };
  const std::vector<Dataset> all = {
      People().Shuffle(3),
      People().Repeat(2),
      People().Batch(2),
      PeopleStream().Batch(2),
      People().PaddedBatch(2),
      People().Batch(2).Unbatch(),
      People().Window(2),
      People().Take(2),
      People().Skip(1),
      People().Shard(2, 0),
      People().ShardByPipeline(),
      People().Cache(),
      People().Cache(testing::TempDir() + "/people.cache"),
      People().Prefetch(1),
      People().FilterElements(keep),
      People().Concatenate(People()),
      Dataset::Interleave({People(), People()}),
      Dataset::SampleFromDatasets({People(), People()}),
      People().Filter([](const NamedValues& row) { return row["age"] > 0; }),
  };
  for (size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_OK(all[i].status());
    EXPECT_THAT(all[i].component_names(), ElementsAre("age", "city", ""));
    EXPECT_FALSE(ValuesOf(all[i], "age").empty());
  }
}

TEST(ComponentsTest, ZipPutsNamesSideBySide) {
  const Dataset zipped = Dataset::Zip(
      {Dataset::Range(3), People(), Dataset::Range(3).WithNames({"id"})});
  EXPECT_THAT(zipped.component_names(),
              ElementsAre("", "age", "city", "", "id"));
  EXPECT_THAT(ValuesOf(zipped, "id"), ElementsAre(0, 1, 2));
  EXPECT_THAT(Dataset::Zip({People(), People()}).status(),
              StatusIs(kInvalid, AllOf(HasSubstr("Zip: "), HasSubstr("\"age\""),
                                       HasSubstr("Rename()"))));
}

TEST(ComponentsTest, OneOrderOfNamesIsExpectedOfDatasetsThatFollowEachOther) {
  const Dataset numbers = Dataset::Zip(
      {Dataset::Range(3).WithNames({"a"}), Dataset::Range(3).WithNames({"b"})});
  const Dataset swapped = numbers.WithNames({"b", "a"});
  const std::vector<std::pair<std::string, Dataset>> mixed = {
      {"Concatenate", numbers.Concatenate(swapped)},
      {"Interleave", Dataset::Interleave({numbers, swapped})},
      {"SampleFromDatasets", Dataset::SampleFromDatasets({numbers, swapped})},
      {"Concatenate", numbers.Concatenate(numbers.WithNames({}))},
  };
  for (const auto& [stage, dataset] : mixed) {
    EXPECT_THAT(dataset.status(),
                StatusIs(kInvalid, HasSubstr(stage + ": the "
                                                     "components")));
  }
  EXPECT_THAT(mixed[0].second.status().message(),
              AllOf(HasSubstr("\"a\", \"b\" and of another \"b\", \"a\""),
                    HasSubstr("Select()")));
  EXPECT_THAT(mixed[3].second.status().message(),
              HasSubstr("of another 2 without a name"));
  EXPECT_OK(numbers.Concatenate(swapped.Select({"a", "b"})).status());
}

TEST(ComponentsTest, SelectOrdersAndKeepsWhatHasNoName) {
  for (const Dataset& people : {People(), PeopleStream()}) {
    const Dataset selected = people.Select({"city", "age"});
    EXPECT_THAT(selected.component_names(), ElementsAre("city", "age", ""));
    EXPECT_THAT(ValuesOf(selected, "age"), ElementsAre(30, 41, 52));
    EXPECT_EQ(Elements(selected)[1][0].scalar<std::string>(), "Oslo");
    EXPECT_EQ(Elements(selected)[1][2].scalar<int64_t>(), 0);

    const Dataset dropped = people.Drop({"city"});
    EXPECT_THAT(dropped.component_names(), ElementsAre("age", ""));
    EXPECT_THAT(ValuesOf(dropped.Batch(2), "age"), ElementsAre(30, 41, 52));

    const Dataset picked = people.SelectComponents({2, 0});
    EXPECT_THAT(picked.component_names(), ElementsAre("", "age"));
    EXPECT_THAT(Numbers(picked), ElementsAre(1, 0, 1));
  }
  // Without names, all stay.
  EXPECT_THAT(Numbers(Dataset::Range(3).Select({})), ElementsAre(0, 1, 2));
}

// Rows of tables are selected before they are read, other elements afterwards.
TEST(ComponentsTest, ARandomOrderDoesNotDependOnHowComponentsAreSelected) {
  const auto shuffled = [](const Dataset& people) {
    return ValuesOf(
        people.Select({"city", "age"}).Shuffle(3, {.seed = 5}).Batch(2), "age");
  };
  EXPECT_EQ(shuffled(People()), shuffled(PeopleStream()));
}

TEST(ComponentsTest, RenameKeepsPositions) {
  const Dataset renamed = People().Rename({{"city", "town"}, {"age", ""}});
  EXPECT_THAT(renamed.component_names(), ElementsAre("", "town", ""));
  const Dataset exchanged = People().Rename({{"city", "age"}, {"age", "city"}});
  EXPECT_THAT(exchanged.component_names(), ElementsAre("city", "age", ""));
}

TEST(ComponentsTest, MistakesAreNamed) {
  const std::string present = "elements have \"age\", \"city\" and 1 without";
  EXPECT_THAT(
      People().Select({"town"}).status(),
      StatusIs(kInvalid,
               AllOf(HasSubstr("Select: there is no component \"town\""),
                     HasSubstr(present))));
  EXPECT_THAT(People().Drop({"x"}).status(),
              StatusIs(kInvalid, HasSubstr("Drop: there is no component")));
  EXPECT_THAT(People().Drop({""}).status(), StatusIs(kInvalid));
  EXPECT_THAT(People().Rename({{"x", "y"}}).status(),
              StatusIs(kInvalid, HasSubstr("Rename: there is no component")));
  EXPECT_THAT(
      People().Rename({{"age", "city"}}).status(),
      StatusIs(kInvalid, HasSubstr("two components have the name \"city\"")));
  EXPECT_THAT(
      People().WithNames({"a"}).status(),
      StatusIs(kInvalid, HasSubstr("WithNames: 1 names for 3 components")));
  EXPECT_THAT(People().WithNames({}).Select({"age"}).status(),
              StatusIs(kInvalid, HasSubstr("elements have 3 without a name")));
  EXPECT_THAT(Dataset::Range(3).WithNames({"a"}).Drop({"a"}).status(),
              StatusIs(kInvalid, HasSubstr("Drop: no components are left")));
  EXPECT_THAT(People().SelectComponents({3}).status(),
              StatusIs(kInvalid, HasSubstr("component 3 of 3")));
  EXPECT_THAT(People().SelectComponents({-1}).status(), StatusIs(kInvalid));
  EXPECT_THAT(People().SelectComponents({1, 1}).status(),
              StatusIs(kInvalid, HasSubstr("component 1 is given twice")));
  EXPECT_THAT(People().Select({"age", "age"}).status(), StatusIs(kInvalid));
}

TEST(ComponentsTest, TracedFunctionsReadAndMakeComponentsByName) {
  const Dataset mapped =
      People().Map([](const NamedValues& row) -> std::vector<NamedValue> {
        return {{"decade", row["age"] / 10}, {"", row.values()[2]}};
      });
  ASSERT_OK(mapped.status());
  EXPECT_THAT(mapped.component_names(), ElementsAre("decade", ""));
  EXPECT_THAT(ValuesOf(mapped, "decade"), ElementsAre(3, 4, 5));
  const Dataset filtered =
      People().Filter([](const NamedValues& row) { return row["age"] > 40; });
  EXPECT_THAT(ValuesOf(filtered, "age"), ElementsAre(41, 52));

  EXPECT_THAT(People()
                  .Map([](const NamedValues& row) -> std::vector<NamedValue> {
                    return {{"x", row["wage"] * 2}};
                  })
                  .status(),
              StatusIs(kInvalid, AllOf(HasSubstr("no component \"wage\""),
                                       HasSubstr("\"age\", \"city\""))));
  EXPECT_THAT(People()
                  .Map([](const NamedValues& row) -> std::vector<NamedValue> {
                    return {{"x", row["age"]}, {"x", row["age"]}};
                  })
                  .status(),
              StatusIs(kInvalid, HasSubstr("two components have the name")));
  EXPECT_THAT(People().Map(Dataset::NamedFunction()).status(),
              StatusIs(kInvalid, HasSubstr("null")));
  EXPECT_THAT(People().Filter(Dataset::NamedPredicate()).status(),
              StatusIs(kInvalid, HasSubstr("null")));
  // Functions by position make components without names.
  EXPECT_THAT(People()
                  .Map([](absl::Span<const Value> row) -> std::vector<Value> {
                    return {row[0]};
                  })
                  .component_names(),
              IsEmpty());
}

// Adds the component that the argument names to the one named "age".
absl::StatusOr<RegisteredFunction> MakeAdd(absl::string_view argument,
                                           const ElementSpec& elements) {
  ASSIGN_OR_RETURN(const int age, elements.Find("age"));
  ASSIGN_OR_RETURN(const int other, elements.Find(argument));
  return RegisteredFunction{
      [age, other](Element element) -> absl::StatusOr<Element> {
        return Element{Tensor::Scalar<int64_t>(
            element[age].scalar<int64_t>() + element[other].scalar<int64_t>())};
      },
      {{DType::kInt64, Shape()}},
      {"sum"}};
}
const bool kHasAdd = RegisterElementFunction("components_test_add", MakeAdd);

absl::StatusOr<RegisteredFunction> MakeMisnamed(absl::string_view,
                                                const ElementSpec& elements) {
  return RegisteredFunction{
      [](Element element) -> absl::StatusOr<Element> { return element; },
      elements.types,
      {"a", "a", "b", "c"}};
}
const bool kHasMisnamed =
    RegisterElementFunction("components_test_misnamed", MakeMisnamed);

TEST(ComponentsTest, RegisteredFunctionsReadAndMakeComponentsByName) {
  ASSERT_TRUE(kHasAdd && kHasMisnamed);
  const Dataset people = People().WithNames({"years", "city", "age"});
  const Dataset sums =
      SentAndReceived(MapRegistered(people, "components_test_add", "years"));
  EXPECT_THAT(sums.component_names(), ElementsAre("sum"));
  EXPECT_THAT(ValuesOf(sums, "sum"), ElementsAre(31, 41, 53));
  EXPECT_THAT(MapRegistered(people, "components_test_add", "weight").status(),
              StatusIs(kInvalid, HasSubstr("no component \"weight\"")));
  EXPECT_THAT(MapRegistered(people, "components_test_misnamed").status(),
              StatusIs(kInvalid, HasSubstr("4 names to 3 components")));
}

TEST(ComponentsTest, PaddingIsGivenByName) {
  const auto row = [](std::vector<int64_t> ids) {
    return Dataset::FromTensors({{"ids", Int64s(ids)}, {"tags", Int64s(ids)}});
  };
  const Dataset rows = row({1}).Concatenate(row({2, 3}));
  const Dataset padded = rows.PaddedBatch(
      2, {.named_padded_shapes = {{"tags", {3}}},
          .named_padding_values = {{"tags", Tensor::Scalar<int64_t>(-1)}}});
  ASSERT_OK(padded.status());
  for (const Dataset& dataset : {padded, SentAndReceived(padded)}) {
    EXPECT_THAT(dataset.component_names(), ElementsAre("ids", "tags"));
    EXPECT_THAT(ValuesOf(dataset, "ids"), ElementsAre(1, 0, 2, 3));
    EXPECT_THAT(ValuesOf(dataset, "tags"), ElementsAre(1, -1, -1, 2, 3, -1));
  }
  const Dataset buckets = rows.BucketBySequenceLength(
      {.component_name = "tags",
       .boundaries = {2},
       .batch_sizes = {1, 1},
       .named_padding_values = {{"ids", Tensor::Scalar<int64_t>(7)}}});
  EXPECT_THAT(ValuesOf(SentAndReceived(buckets), "ids"), ElementsAre(1, 2, 3));
  EXPECT_THAT(
      rows.PaddedBatch(2, {.named_padded_shapes = {{"x", {3}}}}).status(),
      StatusIs(kInvalid, HasSubstr("PaddedBatch: there is no component "
                                   "\"x\"")));
  EXPECT_THAT(rows.PaddedBatch(2, {.padded_shapes = {{3}, {3}},
                                   .named_padded_shapes = {{"ids", {3}}}})
                  .status(),
              StatusIs(kInvalid, HasSubstr("by name and by position")));
  EXPECT_THAT(
      rows.BucketBySequenceLength(
              {.component_name = "x", .boundaries = {2}, .batch_sizes = {1, 1}})
          .status(),
      StatusIs(kInvalid, HasSubstr("no component \"x\"")));
}

TEST(ComponentsTest, WindowsOfGroupsHaveTheNamesOfTheInput) {
  const auto group = [](bool renames) {
    return GroupByWindow(
        People(),
        {.key_of = [](const Element& element) -> absl::StatusOr<int64_t> {
           return element[2].scalar<int64_t>();
         },
         .reduce =
             [renames](int64_t key, const Dataset& window) {
               const Dataset ages =
                   window.Select({"age"}).SelectComponents({0});
               return renames && key == 0 ? ages.Rename({{"age", "x"}}) : ages;
             },
         .window_size = 2},
        {{DType::kInt64, Shape()}});
  };
  EXPECT_THAT(group(false).component_names(), IsEmpty());
  EXPECT_THAT(Numbers(group(false)), ElementsAre(30, 52, 41));
  ASSERT_OK_AND_ASSIGN(const auto iterator, group(true).MakeIterator());
  Element element;
  absl::StatusOr<bool> more = true;
  while (more.ok() && *more) more = iterator->Next(&element);
  EXPECT_THAT(more.status(), StatusIs(kInvalid, HasSubstr("\"x\"")));
}

TEST(ComponentsTest, DatasetsMadeByAFunctionHaveTheSameNames) {
  const auto interleaved = [](bool renames) {
    return Dataset::Range(2).Interleave(
        [renames](const Element& element) {
          const int64_t number = element[0].scalar<int64_t>();
          return Dataset::Range(2).WithNames(
              {renames && number == 1 ? "b" : "a"});
        },
        {{DType::kInt64, Shape()}});
  };
  EXPECT_THAT(Numbers(interleaved(false)), ElementsAre(0, 1, 0, 1));
  ASSERT_OK_AND_ASSIGN(const auto iterator, interleaved(true).MakeIterator());
  Element element;
  absl::StatusOr<bool> more = true;
  while (more.ok() && *more) more = iterator->Next(&element);
  EXPECT_THAT(more.status(), StatusIs(kInvalid, HasSubstr("\"b\"")));
}

TEST(ComponentsTest, NamesAreSent) {
  const Dataset received =
      SentAndReceived(People().Select({"city", "age"}).Shuffle(3).Batch(2));
  EXPECT_THAT(received.component_names(), ElementsAre("city", "age", ""));
  EXPECT_EQ(ValuesOf(received, "age").size(), 3u);
}

TEST(ComponentsTest, WhatIsReceivedIsChecked) {
  ASSERT_OK_AND_ASSIGN(const proto::Dataset good, EncodeDataset(People()));
  const auto with = [&](std::vector<int> indices,
                        std::vector<std::string> names) {
    proto::Dataset encoded = good;
    auto* const components =
        encoded.mutable_stages(encoded.stages_size() - 1)->mutable_components();
    *components->mutable_index() = {indices.begin(), indices.end()};
    *components->mutable_name() = {names.begin(), names.end()};
    return DecodeDataset(encoded).status();
  };
  EXPECT_OK(with({2, 0}, {"y", "x"}));
  for (const absl::Status& status :
       {with({3}, {}), with({-1}, {"a"}), with({0, 0}, {}), with({}, {}),
        with({0, 1}, {"a"}), with({0, 1}, {"a", "a"})}) {
    EXPECT_THAT(status, StatusIs(kInvalid, HasSubstr("(components)")));
  }
}

// A loop that passes the same element again needs no new memory.
TEST(ComponentsTest, SelectedComponentsReuseMemory) {
  const Dataset batches = People().Repeat(4).Batch(3).SelectComponents({2, 0});
  ASSERT_OK_AND_ASSIGN(const auto iterator, batches.MakeIterator());
  Element element;
  std::vector<const void*> buffers;
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK_AND_ASSIGN(const bool more, iterator->Next(&element));
    ASSERT_TRUE(more);
    buffers.push_back(element[0].raw_data());
  }
  // The consumer's tensor and the stage's take turns.
  EXPECT_EQ(buffers[2], buffers[0]);
  EXPECT_EQ(buffers[3], buffers[1]);
}

}  // namespace
}  // namespace muster
