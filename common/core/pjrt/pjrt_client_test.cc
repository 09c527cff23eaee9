#include "common/core/pjrt/pjrt_client.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/pjrt/pjrt_api.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Long enough for these programs.
absl::Time Deadline() { return absl::Now() + absl::Minutes(1); }

// A function of one array that returns the array.
std::string Identity(absl::string_view type,
                     absl::string_view attributes = "") {
  return absl::StrCat("func.func public @main(%x: ", type, " ", attributes,
                      ") -> ", type, " { return %x : ", type, " }");
}

constexpr absl::string_view kAdd = R"(
func.func public @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>)
    -> (tensor<2x3xf32>, tensor<f32>) {
  %0 = stablehlo.add %a, %b : tensor<2x3xf32>
  %1 = stablehlo.constant dense<7.0> : tensor<f32>
  return %0, %1 : tensor<2x3xf32>, tensor<f32>
})";

// These tests need a plugin: MUSTER_PJRT_PLUGIN is its path.
class PjrtClientTest : public testing::Test {
 protected:
  void SetUp() override {
    if (plugin().empty()) {
      GTEST_SKIP() << "MUSTER_PJRT_PLUGIN does not name a PJRT plugin for "
                      "CPUs: export $(tests/setup_tools.sh)";
    }
    ASSERT_OK_AND_ASSIGN(client_, PjrtClient::Create(plugin(), Devices(1)));
  }

  static std::string plugin() {
    const char* const path = std::getenv("MUSTER_PJRT_PLUGIN");
    return path == nullptr ? "" : path;
  }
  // A client of one thread and `device_count` devices.
  static PjrtClientOptions Devices(int64_t device_count) {
    return {.thread_count = 1, .options = {{"cpu_device_count", device_count}}};
  }

  // Runs a program of one argument and one result.
  absl::StatusOr<Tensor> Run(
      absl::string_view program, const Tensor& x,
      pjrt::BufferType type = pjrt::BufferType::kInvalid) {
    ASSIGN_OR_RETURN(const auto executable, client_->Compile(program));
    ASSIGN_OR_RETURN(const auto argument, client_->CopyToDevice(x, 0, type));
    ASSIGN_OR_RETURN(const auto results, executable->Execute({argument.get()}));
    return results.at(0)->ToHost(Deadline());
  }

  std::shared_ptr<PjrtClient> client_;
};

TEST_F(PjrtClientTest, DescribesItself) {
  EXPECT_EQ(client_->platform_name(), "cpu");
  EXPECT_EQ(client_->device_count(), 1);
  EXPECT_THAT(client_->DeviceName(0), IsOkAndHolds(Not("")));
}

TEST_F(PjrtClientTest, RunsAProgramOfTwoResults) {
  ASSERT_OK_AND_ASSIGN(const auto executable, client_->Compile(kAdd));
  EXPECT_EQ(executable->output_count(), 2);
  const auto a = Tensor::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto b = Tensor::FromValues<float>({2, 3}, {10, 20, 30, 40, 50, 60});
  ASSERT_OK_AND_ASSIGN(const auto on_device_a, client_->CopyToDevice(a));
  ASSERT_OK_AND_ASSIGN(const auto on_device_b, client_->CopyToDevice(b));
  ASSERT_OK_AND_ASSIGN(
      const auto results,
      executable->Execute({on_device_a.get(), on_device_b.get()}));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_OK(results[0]->Await(Deadline()));
  EXPECT_EQ(results[0]->shape(), Shape({2, 3}));
  ASSERT_OK_AND_ASSIGN(const Tensor sum, results[0]->ToHost(Deadline()));
  EXPECT_THAT(sum.flat<float>(), ElementsAre(11, 22, 33, 44, 55, 66));
  ASSERT_OK_AND_ASSIGN(const Tensor seven, results[1]->ToHost(Deadline()));
  EXPECT_EQ(seven.scalar<float>(), 7);
}

TEST_F(PjrtClientTest, KeepsTheBitsOfEachDType) {
  const std::pair<DType, absl::string_view> types[] = {
      {DType::kBool, "i1"},     {DType::kUint8, "ui8"},
      {DType::kInt32, "i32"},   {DType::kInt64, "i64"},
      {DType::kFloat16, "f16"}, {DType::kBfloat16, "bf16"},
      {DType::kFloat32, "f32"}, {DType::kFloat64, "f64"}};
  for (const auto& [dtype, name] : types) {
    const Tensor x = Tensor::Full(dtype, {5}, 1);
    ASSERT_OK_AND_ASSIGN(
        const Tensor y, Run(Identity(absl::StrCat("tensor<5x", name, ">")), x));
    EXPECT_TRUE(BitwiseEqual(x, y)) << name << ": " << y;
  }
}

TEST_F(PjrtClientTest, PassesUnsignedNumbersAsTheirBits) {
  const auto x = Tensor::FromValues<int32_t>({2}, {-1, 5});
  ASSERT_OK_AND_ASSIGN(const Tensor y, Run(Identity("tensor<2xui32>"), x,
                                           pjrt::BufferType::kU32));
  EXPECT_TRUE(BitwiseEqual(x, y)) << y;
}

TEST_F(PjrtClientTest, HandlesScalarsAndEmptyArrays) {
  ASSERT_OK_AND_ASSIGN(const Tensor scalar,
                       Run(Identity("tensor<f32>"), Tensor::Scalar<float>(3)));
  EXPECT_EQ(scalar.scalar<float>(), 3);
  ASSERT_OK_AND_ASSIGN(
      const Tensor empty,
      Run(Identity("tensor<0x4xf32>"), Tensor::Zeros(DType::kFloat32, {0, 4})));
  EXPECT_EQ(empty.shape(), Shape({0, 4}));
}

TEST_F(PjrtClientTest, RejectsStringsAndElementTypesOfAnotherSize) {
  EXPECT_THAT(
      client_->CopyToDevice(Tensor(DType::kString, {1})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("string[1]")));
  EXPECT_THAT(client_->CopyToDevice(Tensor::Scalar<int64_t>(1), 0,
                                    pjrt::BufferType::kU32),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(PjrtClientTest, NamesTheOpThatDoesNotCompile) {
  EXPECT_THAT(client_->Compile("func.func public @main(%x: tensor<f32>) -> "
                               "tensor<f32> { %0 = stablehlo.frobnicate %x : "
                               "tensor<f32> return %0 : tensor<f32> }"),
              StatusIs(absl::StatusCode::kUnknown, HasSubstr("frobnicate")));
}

TEST_F(PjrtClientTest, RejectsArgumentsOfAnotherProgram) {
  ASSERT_OK_AND_ASSIGN(const auto executable, client_->Compile(kAdd));
  ASSERT_OK_AND_ASSIGN(const auto x,
                       client_->CopyToDevice(Tensor::Scalar<float>(1)));
  EXPECT_THAT(executable->Execute({x.get()}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(PjrtClientTest, ADonatedArgumentCannotBeUsedAgain) {
  ASSERT_OK_AND_ASSIGN(const auto executable, client_->Compile(R"(
func.func public @main(%x: tensor<1024xf32> {tf.aliasing_output = 0 : i32})
    -> tensor<1024xf32> {
  %0 = stablehlo.add %x, %x : tensor<1024xf32>
  return %0 : tensor<1024xf32>
})"));
  ASSERT_OK_AND_ASSIGN(const auto twos, client_->CopyToDevice(Tensor::Full(
                                            DType::kFloat32, {1024}, 2)));
  ASSERT_OK_AND_ASSIGN(const auto fours, executable->Execute({twos.get()}));
  ASSERT_OK_AND_ASSIGN(const auto eights,
                       executable->Execute({fours[0].get()}));
  EXPECT_FALSE(fours[0]->ToHost(Deadline()).ok());
  ASSERT_OK_AND_ASSIGN(const Tensor values, eights[0]->ToHost(Deadline()));
  EXPECT_EQ(values.flat<float>()[1023], 8);
}

TEST_F(PjrtClientTest, KeepsTheMemoryOfATensorWhileItIsRead) {
  bool is_released = false;
  // Aligned as XLA wants it, so that the plugin makes no copy.
  alignas(Buffer::kAlignmentBytes) float values[1024];
  std::fill(std::begin(values), std::end(values), 3.0f);
  {
    Tensor tensor(DType::kFloat32, {1024},
                  Buffer::Wrap(values, sizeof(values),
                               [&is_released] { is_released = true; }));
    ASSERT_OK_AND_ASSIGN(auto on_device, client_->CopyToDevice(tensor));
    tensor = Tensor();
    ASSERT_OK_AND_ASSIGN(const Tensor copy, on_device->ToHost(Deadline()));
    EXPECT_EQ(copy.flat<float>()[1023], 3);
    EXPECT_FALSE(is_released);
  }
  client_ = nullptr;
  EXPECT_TRUE(is_released);
}

TEST_F(PjrtClientTest, CountsTheBytesOfAProgram) {
  ASSERT_OK_AND_ASSIGN(const auto executable, client_->Compile(kAdd));
  ASSERT_OK_AND_ASSIGN(const auto memory, executable->Memory());
  EXPECT_EQ(memory.arguments, 48);
  EXPECT_GE(memory.outputs, 28);
}

TEST_F(PjrtClientTest, LoadsWhatItHasSerialized) {
  ASSERT_OK_AND_ASSIGN(const auto compiled, client_->Compile(kAdd));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, compiled->Serialize());
  ASSERT_OK_AND_ASSIGN(const auto loaded, client_->Load(bytes));
  EXPECT_EQ(loaded->output_count(), 2);
  ASSERT_OK_AND_ASSIGN(
      const auto x, client_->CopyToDevice(
                        Tensor::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6})));
  ASSERT_OK_AND_ASSIGN(const auto results, loaded->Execute({x.get(), x.get()}));
  ASSERT_OK_AND_ASSIGN(const Tensor sum, results[0]->ToHost(Deadline()));
  EXPECT_THAT(sum.flat<float>(), ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_FALSE(client_->Load("no program").ok());
}

TEST_F(PjrtClientTest, RunsOneProgramOnTwoDevices) {
  ASSERT_OK_AND_ASSIGN(const auto client,
                       PjrtClient::Create(plugin(), Devices(2)));
  ASSERT_EQ(client->device_count(), 2);
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       client->Compile(R"(
module @sum attributes {mhlo.num_replicas = 2 : i32} {
func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
      : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}})",
                                       {.replica_count = 2}));
  ASSERT_OK_AND_ASSIGN(
      const auto first,
      client->CopyToDevice(Tensor::FromValues<float>({2}, {1, 2}), 0));
  ASSERT_OK_AND_ASSIGN(
      const auto second,
      client->CopyToDevice(Tensor::FromValues<float>({2}, {10, 20}), 1));
  ASSERT_OK_AND_ASSIGN(
      const auto results,
      executable->ExecuteOnAll({{first.get()}, {second.get()}}));
  ASSERT_EQ(results.size(), 2u);
  for (const auto& of_device : results) {
    ASSERT_OK_AND_ASSIGN(const Tensor sum, of_device.at(0)->ToHost(Deadline()));
    EXPECT_THAT(sum.flat<float>(), ElementsAre(11, 22));
  }
}

TEST_F(PjrtClientTest, StopsWaitingForACompilation) {
  EXPECT_THAT(client_->Compile(kAdd, {.timeout = absl::ZeroDuration()}),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("the compilation of a program")));
  // The compilation goes on, and keeps the client.
  EXPECT_TRUE(AwaitTrue([&] { return client_.use_count() == 1; }));
}

}  // namespace
}  // namespace muster
