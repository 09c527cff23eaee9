#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/object_graph.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_slice.h"
#include "common/io/storage/disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Checkpoints written by TensorFlow. make_checkpoints.py describes their
// contents.
namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::string_view kFolder = "tests/golden/checkpoints";

std::unique_ptr<TensorBundleReader> Open(absl::string_view name) {
  auto reader = TensorBundleReader::Open(Disk::Real(), JoinPath(kFolder, name));
  EXPECT_OK(reader);
  return *std::move(reader);
}

void ExpectHolds(const absl::StatusOr<Tensor>& tensor, const TensorType& type,
                 const std::vector<double>& values) {
  ASSERT_OK(tensor);
  EXPECT_EQ(tensor->type().ToString(), type.ToString());
  ASSERT_EQ(static_cast<size_t>(tensor->element_count()), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(tensor->ElementAsDouble(i), values[i]) << i;
  }
}

void ExpectStrings(const absl::StatusOr<Tensor>& tensor, const Shape& shape,
                   const std::vector<std::string>& values) {
  ASSERT_OK(tensor);
  EXPECT_TRUE(
      BitwiseEqual(*tensor, Tensor::FromSpan<std::string>(shape, values)));
}

TEST(CheckpointsGoldenTest, ReadsEveryDType) {
  const auto reader = Open("dtypes");
  EXPECT_OK(reader->Verify());
  EXPECT_EQ(reader->tensors().size(), 12u);
  const Shape shape = {2, 3};
  ExpectHolds(reader->Read("float32"), {DType::kFloat32, shape},
              {0, 0.25, 0.5, 0.75, 1, 1.25});
  ExpectHolds(reader->Read("float64"), {DType::kFloat64, shape},
              {0, 0.125, 0.25, 0.375, 0.5, 0.625});
  ExpectHolds(reader->Read("bfloat16"), {DType::kBfloat16, shape},
              {0, 0.5, 1, 1.5, 2, 2.5});
  ExpectHolds(reader->Read("float16"), {DType::kFloat16, shape},
              {0, 0.5, 1, 1.5, 2, 2.5});
  ExpectHolds(reader->Read("int32"), {DType::kInt32, shape},
              {-3, -2, -1, 0, 1, 2});
  const double unit = int64_t{1} << 40;
  ExpectHolds(reader->Read("int64"), {DType::kInt64, shape},
              {-3 * unit, -2 * unit, -unit, 0, unit, 2 * unit});
  ExpectHolds(reader->Read("uint8"), {DType::kUint8, shape},
              {0, 50, 100, 150, 200, 250});
  ExpectHolds(reader->Read("bool"), {DType::kBool, shape}, {0, 1, 0, 1, 0, 1});
  ExpectHolds(reader->Read("scalar"), {DType::kFloat32, {}}, {-2.5});
  ExpectHolds(reader->Read("empty"), {DType::kFloat32, {0, 3}}, {});
  ExpectStrings(
      reader->Read("string"), {2, 2},
      {"", "a", std::string("zero \0 within", 13), std::string(300, 'x')});
  EXPECT_THAT(reader->Read("int8"),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("dtype 6")));
}

TEST(CheckpointsGoldenTest, ReadsPartitionedVariables) {
  const auto reader = Open("partitioned");
  EXPECT_OK(reader->Verify());
  std::vector<double> counting;
  for (int i = 0; i < 28; ++i) counting.push_back(i);
  ExpectHolds(reader->Read("table"), {DType::kFloat32, {7, 4}}, counting);
  EXPECT_EQ(reader->Find("table")->slices.size(), 2u);
  ExpectHolds(reader->ReadSlice("table", TensorSlice::Rows({7, 4}, 2, 5)),
              {DType::kFloat32, {3, 4}},
              {8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
  counting.resize(15);
  ExpectHolds(reader->Read("grid"), {DType::kInt32, {3, 5}}, counting);
  ExpectHolds(reader->Read("only_in_0"), {DType::kInt64, {}}, {10});
  ExpectStrings(reader->Read("only_in_1"), {1}, {"eleven"});
}

TEST(CheckpointsGoldenTest, ReadsObjectsOfACheckpointManager) {
  const std::string folder = JoinPath(kFolder, "objects");
  ASSERT_OK_AND_ASSIGN(const auto manager,
                       CheckpointManager::Create({.folder = folder}));
  EXPECT_THAT(manager->checkpoints(),
              ElementsAre(absl::StrCat(folder, "/ckpt-2"),
                          absl::StrCat(folder, "/ckpt-3")));
  ASSERT_OK_AND_ASSIGN(const auto reader, manager->OpenLatest());
  EXPECT_EQ(reader->prefix(), absl::StrCat(folder, "/ckpt-3"));
  ASSERT_OK_AND_ASSIGN(const ObjectGraph graph, ObjectGraph::ReadFrom(*reader));
  const auto read = [&](const absl::StatusOr<std::string>& key) {
    return key.ok() ? reader->Read(*key) : absl::StatusOr<Tensor>(key.status());
  };
  const ObjectPath kernel = {"model", "dense", "kernel"};
  EXPECT_THAT(graph.FindVariable(kernel), IsOkAndHolds(VariableKey(kernel)));
  // Three steps of 0.5 with momentum 0.75 and gradients of 1.
  ExpectHolds(read(graph.FindVariable(kernel)), {DType::kFloat32, {2, 2}},
              {1 - 2.53125, 2 - 2.53125, 3 - 2.53125, 4 - 2.53125});
  ExpectHolds(read(graph.FindSlot(kernel, {"optimizer"}, "momentum")),
              {DType::kFloat32, {2, 2}}, {2.3125, 2.3125, 2.3125, 2.3125});
  EXPECT_THAT(graph.FindSlot(kernel, {"optimizer"}, "momentum"),
              IsOkAndHolds(SlotKey(kernel, {"optimizer"}, "momentum")));
  ExpectHolds(read(graph.FindVariable({"a.b/c"})), {DType::kFloat32, {}}, {3});
  ExpectHolds(read(graph.FindVariable({"step"})), {DType::kInt64, {}}, {7});
  ExpectHolds(read(graph.FindVariable({"save_counter"})), {DType::kInt64, {}},
              {3});
  std::vector<std::string> names;
  for (const auto& variable : graph.Variables()) {
    names.push_back(variable.full_name);
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"dense/kernel", "dense/bias"}));
}

}  // namespace
}  // namespace muster
