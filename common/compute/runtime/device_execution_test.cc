// Steps on simulated GPUs give the results of steps on the host, whichever ops
// have device kernels.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/runtime/testing/test_ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/conformance/device_test_kernels_image.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Computes a + b for equal shapes.
class AddOnDevice final : public Kernel {
 public:
  explicit AddOnDevice(const KernelFunction& scale_add)
      : scale_add_(scale_add) {}

  absl::Status Run(const KernelArguments& arguments) override {
    const Tensor& a = *arguments.inputs[0];
    const Tensor& b = *arguments.inputs[1];
    Tensor* const sum = arguments.outputs[0];
    absl::Status status = arguments.stream->Copy(a, sum);
    if (!status.ok()) return status;
    const uint8_t* from = b.address();
    uint8_t* to = sum->address();
    float factor = 1;
    int count = static_cast<int>(a.element_count());
    const KernelArgument pointers[] = {&from, &to, &factor, &count};
    return arguments.stream->Launch(scale_add_, {.block = {64, 1, 1}},
                                    pointers);
  }

 private:
  const KernelFunction scale_add_;
};

std::vector<float> Floats(const Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  return {flat.begin(), flat.end()};
}

class DeviceExecutionTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  DeviceExecutionTest() : machine_({.seed = GetParam()}) {
    auto device = Device::Create(
        &machine_.driver(),
        {.memory = {.limit_bytes = 4 << 20, .piece_bytes = 1 << 20}});
    EXPECT_OK(device);
    device_ = *std::move(device);
    auto scale_add =
        device_->FindKernel(internal::device_test_kernels_image(), "scale_add");
    EXPECT_OK(scale_add);
    device_kernels_.Register(
        "Add",
        [scale_add = *scale_add](const KernelSpec& spec, int)
            -> absl::StatusOr<std::unique_ptr<Kernel>> {
          if (spec.inputs[0] != spec.inputs[1]) {
            return absl::UnimplementedError("no broadcast");
          }
          return std::make_unique<AddOnDevice>(scale_add);
        });
  }

  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const std::function<void(GraphBuilder&)>& body,
      bool soft_placement = true) {
    GraphBuilder builder(&TestOps(), "test");
    body(builder);
    auto graph = std::move(builder).Build();
    EXPECT_OK(graph);
    return Executable::Compile(*std::move(graph), TestOps(), device_kernels_,
                               &store_,
                               {.device = device_.get(),
                                .host_kernels = &host_kernels_,
                                .soft_placement = soft_placement});
  }

  SimulatedMachine machine_;
  std::unique_ptr<Device> device_;
  KernelRegistry device_kernels_;
  const KernelRegistry host_kernels_ = MakeTestKernels();
  FakeVariableStore store_{{{"w", Tensor::FromValues<float>({2}, {10, 20})}}};
};

INSTANTIATE_TEST_SUITE_P(Seeds, DeviceExecutionTest,
                         ::testing::Values(0, 1, 2));

Value FloatParameter(GraphBuilder& builder) {
  return builder.Parameter("x", {DType::kFloat32, {2}});
}

TEST_P(DeviceExecutionTest, MixesKernelsOfDeviceAndHost) {
  ASSERT_OK_AND_ASSIGN(
      const auto executable, Compile([](GraphBuilder& builder) {
        const Value x = FloatParameter(builder);
        Value power = x;
        Value sum = x;
        for (int i = 0; i < 8; ++i) {
          power = builder.Op("Add", {power, power});  // On the device.
          const Value square = builder.Op("Mul", {power, power});
          sum = builder.Op("Add", {square, sum});
        }
        builder.AddResult(sum);
        builder.AddResult(power);
        builder.AddResult(power);
        builder.AddResult(x);
      }));
  std::vector<Tensor> results;
  for (int run = 0; run < 3; ++run) {
    ASSERT_OK(executable->Run({Tensor::FromValues<float>({2}, {1, 2})}, {},
                              &results));
    // 4 + 16 + ... + 4^8, times x squared, and x.
    EXPECT_THAT(Floats(results[0]), ElementsAre(87381, 4 * 87380 + 2));
    EXPECT_THAT(Floats(results[1]), ElementsAre(256, 512));
    EXPECT_THAT(Floats(results[2]), ElementsAre(256, 512));
    EXPECT_THAT(Floats(results[3]), ElementsAre(1, 2));
  }
}

TEST_P(DeviceExecutionTest, ConstantsAreFoldedOnTheHostAndUploadedOnce) {
  ASSERT_OK_AND_ASSIGN(
      const auto executable, Compile([](GraphBuilder& builder) {
        const Value c =
            builder.Constant(Tensor::FromValues<float>({2}, {100, 200}));
        const Value folded = builder.Op("Mul", {c, c});
        builder.AddResult(builder.Op("Add", {FloatParameter(builder), folded}));
        builder.AddResult(c);
      }));
  std::vector<Tensor> results;
  int64_t copies = 0;
  for (int run = 0; run < 3; ++run) {
    const int64_t before = machine_.counts()["cuMemcpyAsync"];
    ASSERT_OK(executable->Run({Tensor::FromValues<float>({2}, {1, 2})}, {},
                              &results));
    EXPECT_THAT(Floats(results[0]), ElementsAre(10001, 40002));
    EXPECT_THAT(Floats(results[1]), ElementsAre(100, 200));
    copies = machine_.counts()["cuMemcpyAsync"] - before;
  }
  // The copies of the argument, of the host kernel's operand, and of the
  // result.
  EXPECT_EQ(copies, 3);
}

TEST_P(DeviceExecutionTest, SteadyStepAllocatesNothing) {
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       Compile([](GraphBuilder& builder) {
                         const Value x = FloatParameter(builder);
                         UpdateVariableForTest("AssignAddVariable", "w",
                                               {builder.Op("Add", {x, x})});
                         builder.AddResult(builder.Op("Mul", {x, x}));
                       }));
  std::vector<Tensor> results;
  const auto run = [&] {
    return executable->Run({Tensor::FromValues<float>({2}, {1, 2})}, {},
                           &results);
  };
  ASSERT_OK(run());
  auto before = machine_.counts();
  ASSERT_OK(run());
  auto after = machine_.counts();
  for (const char* function :
       {"cuMemCreate", "cuMemHostAlloc", "cuEventCreate", "cuStreamCreate"}) {
    EXPECT_EQ(after[function], before[function]) << function;
  }
  EXPECT_EQ(after["cuLaunchKernelEx"] - before["cuLaunchKernelEx"], 1);
}

TEST_P(DeviceExecutionTest, UpdatesReachTheStoreInTheirOrder) {
  ASSERT_OK_AND_ASSIGN(
      const auto executable, Compile([](GraphBuilder& builder) {
        const Value x = FloatParameter(builder);
        const Value w = ReadVariableForTest(builder, "w", {2});
        UpdateVariableForTest("AssignAddVariable", "w",
                              {builder.Op("Add", {x, x})});
        const Value later = ReadVariableForTest(builder, "w", {2});
        UpdateVariableForTest("AssignVariable", "w",
                              {builder.Op("Add", {later, x})});
        builder.AddResult(builder.Op("Add", {w, later}));
      }));
  std::vector<Tensor> results;
  ASSERT_OK(executable->Run({Tensor::FromValues<float>({2}, {1, 2})},
                            {.step_id = 3}, &results));
  EXPECT_THAT(Floats(results[0]), ElementsAre(22, 44));  // 10 + 12, 20 + 24
  EXPECT_THAT(store_.events(), ElementsAre("begin 3", "read w", "update w",
                                           "read w", "update w", "commit"));
  ASSERT_OK(executable->Run({Tensor::FromValues<float>({2}, {1, 2})},
                            {.step_id = 4}, &results));
  EXPECT_THAT(Floats(results[0]), ElementsAre(28, 56));  // 13 + 15, 26 + 30
}

TEST_P(DeviceExecutionTest, WithoutSoftPlacementAMissingKernelIsAnError) {
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       Compile(
                           [](GraphBuilder& builder) {
                             const Value x = FloatParameter(builder);
                             builder.AddResult(builder.Op("Mul", {x, x}));
                           },
                           /*soft_placement=*/false));
  std::vector<Tensor> results;
  EXPECT_THAT(
      executable->Run({Tensor::FromValues<float>({2}, {1, 2})}, {}, &results),
      StatusIs(absl::StatusCode::kUnimplemented,
               AllOf(HasSubstr("Mul"), HasSubstr("gpu:0"),
                     HasSubstr("float32[2]"))));
}

TEST_P(DeviceExecutionTest, ExhaustedMemoryNamesTheGraph) {
  GraphBuilder builder(&TestOps(), "too_large");
  const Value x = builder.Parameter("x", {DType::kFloat32, {Shape::kUnknown}});
  builder.AddResult(builder.Op("Add", {x, x}));
  ASSERT_OK_AND_ASSIGN(Graph graph, std::move(builder).Build());
  ASSERT_OK_AND_ASSIGN(
      const auto executable,
      Executable::Compile(
          std::move(graph), TestOps(), device_kernels_, nullptr,
          {.device = device_.get(), .host_kernels = &host_kernels_}));
  std::vector<Tensor> results;
  EXPECT_THAT(executable->Run({Tensor::Zeros(DType::kFloat32, {1 << 20})}, {},
                              &results),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("gpu:0"),
                             HasSubstr("arena of graph \"too_large\""))));
  ASSERT_OK(
      executable->Run({Tensor::Full(DType::kFloat32, {2}, 3)}, {}, &results));
  EXPECT_THAT(Floats(results[0]), ElementsAre(6, 6));
}

TEST_P(DeviceExecutionTest, RunsAgainAfterAnError) {
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       Compile([](GraphBuilder& builder) {
                         const Value x = FloatParameter(builder);
                         Value sum = builder.Op("Add", {x, x});
                         UpdateVariableForTest("AssignVariable", "w", {sum});
                         builder.AddResult(builder.Op("Add", {sum, x}));
                       }));
  const std::vector<Tensor> arguments = {
      Tensor::FromValues<float>({2}, {1, 2})};
  std::vector<Tensor> results;
  machine_.Fail("cuLaunchKernelEx", driver::kInvalidValue, /*after=*/1);
  EXPECT_THAT(executable->Run(arguments, {}, &results),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("Add"), HasSubstr("scale_add"))));
  ASSERT_OK(executable->Run(arguments, {}, &results));
  EXPECT_THAT(Floats(results[0]), ElementsAre(3, 6));
}

}  // namespace
}  // namespace muster
