// Branches and loops in compiled steps, with the ops and kernels of the
// library.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/ops.h"
#include "common/compute/runtime/executable.h"
#include "common/core/base/testing/allocations/allocation_counter.h"
#include "common/core/base/testing/status_matchers.h"
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
using Values = std::vector<Value>;

constexpr DType kF32 = DType::kFloat32;

Graph Trace(const std::function<void(GraphBuilder&)>& body) {
  GraphBuilder builder(&BuiltinOps(), "test");
  body(builder);
  auto graph = std::move(builder).Build();
  EXPECT_OK(graph);
  return *std::move(graph);
}

absl::StatusOr<std::unique_ptr<Executable>> Compile(
    const std::function<void(GraphBuilder&)>& body,
    ExecutableOptions options = {}) {
  return Executable::Compile(Trace(body), BuiltinOps(), CpuKernels(), nullptr,
                             options);
}

std::vector<float> Floats(const Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  return {flat.begin(), flat.end()};
}

// The sum of tanh(carry * w + row), over the rows of x, and its gradients.
void TraceLoop(GraphBuilder& builder) {
  const Value x = builder.Parameter("x", {kF32, {-1, 2}});
  const Value w = builder.Parameter("w", {kF32, {2}});
  const ScanStep last =
      Scan({w * 0.0}, {x}, [&](const ScanStep& step) -> ScanStep {
        const Value next = Tanh(step.carry[0] * w + step.rows[0]);
        return {.carry = {next}, .rows = {next}};
      });
  const Value loss = Sum(last.rows[0]);
  builder.AddResult(loss);
  for (const Gradient& gradient : Gradients(loss, {x, w})) {
    builder.AddResult(gradient.dense);
  }
}

// The same sum with the loop unrolled.
void TraceUnrolled(GraphBuilder& builder, int64_t length) {
  const Value x = builder.Parameter("x", {kF32, {length, 2}});
  const Value w = builder.Parameter("w", {kF32, {2}});
  Value carry = w * 0.0;
  Value loss;
  for (const Value& row : Unstack(x, length, 0)) {
    carry = Tanh(carry * w + row);
    loss = loss.ok() ? loss + Sum(carry) : Sum(carry);
  }
  builder.AddResult(loss);
  for (const Gradient& gradient : Gradients(loss, {x, w})) {
    builder.AddResult(gradient.dense);
  }
}

std::vector<Tensor> LoopArguments(int64_t length) {
  Tensor x(kF32, {length, 2});
  for (int64_t i = 0; i < 2 * length; ++i) {
    x.mutable_flat<float>()[i] = 0.1f * static_cast<float>(i % 7) - 0.3f;
  }
  return {x, Tensor::FromValues<float>({2}, {0.7f, -0.4f})};
}

TEST(ControlFlowExecutionTest, LoopsComputeWhatUnrolledLoopsCompute) {
  ASSERT_OK_AND_ASSIGN(const auto loop, Compile(TraceLoop));
  for (const int64_t length : {1, 6, 40}) {
    ASSERT_OK_AND_ASSIGN(const auto unrolled,
                         Compile([length](GraphBuilder& builder) {
                           TraceUnrolled(builder, length);
                         }));
    std::vector<Tensor> got;
    std::vector<Tensor> wanted;
    // The second run reuses the memory of the first.
    for (int run = 0; run < 2; ++run) {
      ASSERT_OK(loop->Run(LoopArguments(length), {}, &got));
    }
    ASSERT_OK(unrolled->Run(LoopArguments(length), {}, &wanted));
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_THAT(Floats(got[i]), testing::Pointwise(testing::FloatNear(1e-5),
                                                     Floats(wanted[i])));
    }
  }
  EXPECT_EQ(loop->plan_count(), 3);
}

TEST(ControlFlowExecutionTest, ASteadyLoopAllocatesNothing) {
  ASSERT_OK_AND_ASSIGN(const auto loop, Compile(TraceLoop));
  const std::vector<Tensor> arguments = LoopArguments(20);
  std::vector<Tensor> results;
  for (int run = 0; run < 3; ++run) {
    ASSERT_OK(loop->Run(arguments, {}, &results));
  }
  const int64_t count = AllocationCount();
  bool all_ok = true;
  for (int run = 0; run < 10; ++run) {
    all_ok &= loop->Run(arguments, {}, &results).ok();
  }
  EXPECT_EQ(AllocationCount(), count);
  EXPECT_TRUE(all_ok);
}

// The differentiated run needs the stacks of carries, the other does not.
TEST(ControlFlowExecutionTest, KeepsCarriesForGradientsOnly) {
  const auto run = [](bool is_differentiated) {
    const int64_t length = 1000;
    const int64_t width = 1000;
    const auto loop = Compile(
        [&](GraphBuilder& builder) {
          const Value x = builder.Parameter("x", {kF32, {width}});
          const Value y = builder.Parameter("y", {kF32, {length}});
          const ScanStep last =
              Scan({x}, {y}, [&](const ScanStep& step) -> ScanStep {
                return {.carry = {step.carry[0] * step.rows[0]}, .rows = {}};
              });
          const Value sum = Sum(last.carry[0]);
          builder.AddResult(is_differentiated ? Gradients(sum, {x})[0].dense
                                              : sum);
        },
        {.plan_bytes_max = int64_t{1} << 20});
    EXPECT_OK(loop);
    std::vector<Tensor> results;
    return (*loop)->Run(
        {Tensor::Full(kF32, {width}, 1), Tensor::Full(kF32, {length}, 1)}, {},
        &results);
  };
  EXPECT_OK(run(false));
  EXPECT_THAT(run(true), StatusIs(absl::StatusCode::kResourceExhausted));
}

// A small graph can request any amount of memory, in each of many subgraphs.
TEST(ControlFlowExecutionTest, SubgraphsShareTheLimitOfMemory) {
  const auto run = [](int count) {
    const auto executable = Compile(
        [count](GraphBuilder& builder) {
          Value x = builder.Parameter("x", {kF32, {}});
          for (int i = 0; i < count; ++i) {
            x = Cond(
                x > 0.0,
                [&]() -> Values {
                  // Two values of 400 kB are live at the same time.
                  const Value large = BroadcastTo(x, {100000});
                  return {Sum(Sin(large) * Cos(large))};
                },
                [&]() -> Values { return {x}; })[0];
          }
          builder.AddResult(x);
        },
        {.plan_bytes_max = 3'000'000});
    EXPECT_OK(executable);
    std::vector<Tensor> results;
    return (*executable)->Run({Tensor::Scalar<float>(1)}, {}, &results);
  };
  EXPECT_OK(run(1));
  EXPECT_THAT(run(20), StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(ControlFlowExecutionTest, ErrorsNameTheNodesAround) {
  ASSERT_OK_AND_ASSIGN(
      const auto executable, Compile([](GraphBuilder& builder) {
        const Value x = builder.Parameter("x", {kF32, {3}});
        const ScanStep last =
            Scan({}, {x}, [](const ScanStep& step) -> ScanStep {
              return {.carry = {},
                      .rows = {Assert(step.rows[0], step.rows[0] < 3.0,
                                      "too large")}};
            });
        builder.AddResult(last.rows[0]);
      }));
  std::vector<Tensor> results;
  EXPECT_THAT(
      executable->Run({Tensor::FromValues<float>({3}, {1, 5, 2})}, {},
                      &results),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("Scan \"Scan\": Assert \"Assert\": too large")));
  ASSERT_OK(executable->Run({Tensor::FromValues<float>({3}, {1, 0, 2})}, {},
                            &results));
  EXPECT_THAT(Floats(results[0]), ElementsAre(1, 0, 2));
}

class DeviceControlFlowTest : public testing::Test {
 protected:
  DeviceControlFlowTest()
      : machine_({.seed = 1}),
        device_(*Device::Create(
            &machine_.driver(),
            {.memory = {.limit_bytes = 16 << 20, .piece_bytes = 1 << 20}})),
        kernels_(CudaKernels(device_.get())) {}

  absl::StatusOr<std::unique_ptr<Executable>> CompileOnDevice(
      const std::function<void(GraphBuilder&)>& body, bool soft_placement) {
    return Executable::Compile(Trace(body), BuiltinOps(), kernels_, nullptr,
                               {.device = device_.get(),
                                .host_kernels = &CpuKernels(),
                                .soft_placement = soft_placement});
  }

  // Checks that the device has kernels for the whole step, by compiling without
  // soft placement.
  void ExpectRunsOnDevice(const std::function<void(GraphBuilder&)>& body,
                          const std::vector<Tensor>& arguments) {
    ASSERT_OK_AND_ASSIGN(const auto host, Compile(body));
    ASSERT_OK_AND_ASSIGN(const auto device,
                         CompileOnDevice(body, /*soft_placement=*/false));
    std::vector<Tensor> wanted;
    std::vector<Tensor> got;
    ASSERT_OK(host->Run(arguments, {}, &wanted));
    for (int run = 0; run < 2; ++run) {
      ASSERT_OK(device->Run(arguments, {}, &got));
    }
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(got[i].shape(), wanted[i].shape());
      EXPECT_THAT(Floats(got[i]), testing::Pointwise(testing::FloatNear(1e-5),
                                                     Floats(wanted[i])));
    }
  }

  SimulatedMachine machine_;
  const std::unique_ptr<Device> device_;
  const KernelRegistry kernels_;
};

TEST_F(DeviceControlFlowTest, RunsTheIterationsOfAScan) {
  for (const int64_t length : {1, 6, 40}) {
    ExpectRunsOnDevice(TraceLoop, LoopArguments(length));
  }
}

TEST_F(DeviceControlFlowTest, RunsScansInEachOther) {
  const auto trace = [](GraphBuilder& builder) {
    const Value x = builder.Parameter("x", {kF32, {-1, 2}});
    const Value w = builder.Parameter("w", {kF32, {2}});
    // The inner loop runs in reverse and has no inputs; its rows are the
    // partial sums.
    const auto inner = [&](Value start) {
      return Scan({start}, {},
                  [&](const ScanStep& step) -> ScanStep {
                    const Value next = Sin(step.carry[0]) + w * 0.5;
                    return {.carry = {next}, .rows = {Sum(next)}};
                  },
                  {.reverse = true, .length = 3});
    };
    const ScanStep last =
        Scan({w}, {x},
             [&](const ScanStep& step) -> ScanStep {
               const ScanStep sums = inner(step.carry[0] + step.rows[0]);
               return {.carry = {sums.carry[0]}, .rows = {sums.rows[0], w}};
             },
             {.reverse = true});
    const Value loss = Sum(last.rows[0] * last.rows[0]) + Sum(last.carry[0]);
    builder.AddResult(last.rows[0]);
    builder.AddResult(last.rows[1]);
    for (const Gradient& gradient : Gradients(loss, {x, w})) {
      builder.AddResult(gradient.dense);
    }
  };
  ExpectRunsOnDevice(trace, LoopArguments(5));
}

TEST_F(DeviceControlFlowTest, LongScansRunOnTheHostOrFail) {
  const int64_t length = 30'000;
  ASSERT_OK_AND_ASSIGN(const auto host, Compile(TraceLoop));
  std::vector<Tensor> wanted;
  ASSERT_OK(host->Run(LoopArguments(length), {}, &wanted));
  std::vector<Tensor> got;
  ASSERT_OK_AND_ASSIGN(const auto soft,
                       CompileOnDevice(TraceLoop, /*soft_placement=*/true));
  ASSERT_OK(soft->Run(LoopArguments(length), {}, &got));
  EXPECT_NEAR(Floats(got[0])[0], Floats(wanted[0])[0], 1e-2);
  ASSERT_OK_AND_ASSIGN(const auto hard,
                       CompileOnDevice(TraceLoop, /*soft_placement=*/false));
  EXPECT_THAT(hard->Run(LoopArguments(length), {}, &got),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("Scan \"Scan\""),
                             HasSubstr("no kernel for Scan"))));
}

TEST(ControlFlowExecutionTest, ALoopWithoutLimitHasNoGradient) {
  GraphBuilder builder(&BuiltinOps(), "test");
  const Value x = builder.Parameter("x", {kF32, {}});
  const Value y = While(
      {x}, [](const Values& carry) { return carry[0] < 100.0; },
      [](const Values& carry) -> Values { return {carry[0] * 2.0}; })[0];
  Gradients(y, {x});
  EXPECT_THAT(std::move(builder).Build(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("maximum_iterations")));
}

}  // namespace
}  // namespace muster
