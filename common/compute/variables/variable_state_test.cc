#include "common/compute/variables/variable_state.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const TensorType kTableType = {DType::kFloat32, {4, 2}};

Tensor Table(float first) {
  Tensor table(DType::kFloat32, {4, 2});
  for (float& element : table.mutable_flat<float>()) element = first++;
  return table;
}

VariableRows TableRows(int64_t begin, int64_t end) {
  return {
      .variable = "table", .full_type = kTableType, .begin = begin, .end = end};
}

VariableState TableState(int64_t begin, int64_t end) {
  VariableState state{.value = Table(0).SliceRows(begin, end),
                      .update_count = 7};
  state.slots.push_back({"velocity", Table(100).SliceRows(begin, end)});
  state.slots.push_back({"momentum", Table(200).SliceRows(begin, end)});
  return state;
}

class VariableStateTest : public testing::Test {
 protected:
  // A checkpoint whose shards hold these rows of the table.
  std::unique_ptr<TensorBundleReader> WriteTable(
      const std::vector<std::pair<int64_t, int64_t>>& parts) {
    const int count = static_cast<int>(parts.size());
    for (int i = 0; i < count; ++i) {
      auto writer = TensorBundleWriter::Create(&disk_, "ckpt", {i, count});
      EXPECT_OK(writer);
      const auto [begin, end] = parts[i];
      EXPECT_OK(WriteVariableState(TableRows(begin, end),
                                   TableState(begin, end), writer->get()));
      EXPECT_OK((*writer)->Finish());
    }
    EXPECT_OK(PublishTensorBundle(&disk_, "ckpt", count));
    auto reader = TensorBundleReader::Open(&disk_, "ckpt");
    EXPECT_OK(reader);
    return *std::move(reader);
  }

  SimulatedDisk disk_;
};

TEST_F(VariableStateTest, AnyCutIsReadAsAnyOther) {
  using Parts = std::vector<std::pair<int64_t, int64_t>>;
  for (const Parts& written :
       {Parts{{0, 4}}, Parts{{0, 1}, {1, 4}}, Parts{{2, 4}, {0, 2}},
        Parts{{0, 3}, {3, 3}, {3, 4}}}) {
    const auto reader = WriteTable(written);
    for (const auto& [begin, end] : Parts{{0, 4}, {0, 2}, {1, 3}, {3, 4}}) {
      auto state = ReadVariableState(*reader, TableRows(begin, end), false);
      ASSERT_OK(state);
      const VariableState expected = TableState(begin, end);
      EXPECT_TRUE(BitwiseEqual(state->value, expected.value));
      EXPECT_EQ(state->update_count, 7);
      ASSERT_EQ(state->slots.size(), 2u);
      EXPECT_EQ(state->slots[0].name, "momentum");
      EXPECT_TRUE(BitwiseEqual(state->slots[0].value, expected.slots[1].value));
      EXPECT_EQ(state->slots[1].name, "velocity");
      EXPECT_TRUE(BitwiseEqual(state->slots[1].value, expected.slots[0].value));
    }
  }
}

TEST_F(VariableStateTest, ValuesMayBeReadWithoutWhatTheOptimizerKeeps) {
  auto state = ReadVariableState(*WriteTable({{0, 4}}), TableRows(0, 4), true);
  ASSERT_OK(state);
  EXPECT_TRUE(BitwiseEqual(state->value, Table(0)));
  EXPECT_TRUE(state->slots.empty());
  EXPECT_EQ(state->update_count, 0);
}

TEST_F(VariableStateTest, MisfitsAreNamedAllAtOnce) {
  const auto reader = WriteTable({{0, 4}});
  const TensorType wide = {DType::kFloat32, {4, 3}};
  EXPECT_OK(CheckVariables(*reader, {TableRows(0, 4)}));
  EXPECT_THAT(CheckVariables(*reader, {VariableRows::All("table", wide)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"table\" is float32[4,2] there and "
                                 "float32[4,3] here")));
  std::vector<VariableRows> many = {VariableRows::All("table", wide)};
  for (const char* name : {"tabel", "b", "c", "d", "e", "f", "g"}) {
    many.push_back(VariableRows::All(name, wide));
  }
  EXPECT_THAT(
      CheckVariables(*reader, many),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("\"tabel\"; did you mean \"table\"?"),
                     HasSubstr("\"e\" and 2 more"), Not(HasSubstr("\"f\"")),
                     HasSubstr("float32[4,3] here"),
                     HasSubstr("It holds 1 variables: table"))));
}

TEST_F(VariableStateTest, ReadingChecksNameAndType) {
  const auto reader = WriteTable({{0, 4}});
  const TensorType integers = {DType::kInt32, {4, 2}};
  EXPECT_THAT(
      ReadVariableState(*reader, VariableRows::All("tabel", kTableType), false),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"table\"")));
  EXPECT_THAT(
      ReadVariableState(*reader, VariableRows::All("table", integers), false),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("int32[4,2]")));
  EXPECT_THAT(
      ReadVariableState(*reader, TableRows(3, 5), false),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("4 rows")));
}

TEST_F(VariableStateTest, ScalarsHaveOneRow) {
  const VariableRows step = VariableRows::All("step", {DType::kInt64, {}});
  auto writer = TensorBundleWriter::Create(&disk_, "scalar");
  ASSERT_OK(writer);
  ASSERT_OK(WriteVariableState(step, {.value = Tensor::Scalar<int64_t>(5)},
                               writer->get()));
  ASSERT_OK((*writer)->Finish());
  ASSERT_OK(PublishTensorBundle(&disk_, "scalar", 1));
  auto reader = TensorBundleReader::Open(&disk_, "scalar");
  ASSERT_OK(reader);
  auto state = ReadVariableState(**reader, step, false);
  ASSERT_OK(state);
  EXPECT_EQ(state->value.scalar<int64_t>(), 5);
}

TEST_F(VariableStateTest, WritingChecksWhatItIsGiven) {
  auto writer = TensorBundleWriter::Create(&disk_, "ckpt");
  ASSERT_OK(writer);
  EXPECT_THAT(
      WriteVariableState(TableRows(0, 3), TableState(0, 4), writer->get()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("expected float32[3,2]")));
}

}  // namespace
}  // namespace muster
