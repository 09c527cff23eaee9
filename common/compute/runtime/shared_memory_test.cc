#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/runtime/testing/test_ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

// Values that have the memory of kernels, or of each other.
class SharedMemoryTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const std::function<void(GraphBuilder&, Value x)>& body,
      const Shape& shape) {
    GraphBuilder builder(&TestOps(), "test");
    body(builder, builder.Parameter("x", {DType::kFloat32, shape}));
    ASSIGN_OR_RETURN(Graph graph, std::move(builder).Build());
    return Executable::Compile(std::move(graph), TestOps(), kernels_, &store_,
                               {});
  }

  const KernelRegistry kernels_ = MakeTestKernels();
  FakeVariableStore store_{{{"w", Tensor::FromValues<float>({2}, {10, 20})},
                            {"v", Tensor::FromValues<float>({2}, {1, 2})}}};
};

std::vector<float> Floats(const Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  return {flat.begin(), flat.end()};
}

// Values, views of them, results and updates in the memory of a kernel.
TEST_F(SharedMemoryTest, AKernelMayAllocateItsOutputs) {
  ASSERT_OK_AND_ASSIGN(
      const auto executable,
      Compile(
          [](GraphBuilder& builder, Value x) {
            const auto halves = builder.OpWithOutputs("AllocatedHalves", {x});
            const Value view =
                builder.Op("Reshape", {halves[1]},
                           {{"shape", std::vector<int64_t>{2, 2}}});
            builder.AddResult(halves[0]);
            builder.AddResult(view);
            builder.AddResult(builder.Op("Add", {halves[0], halves[1]}));
            const auto first = builder.OpWithOutputs(
                "AllocatedHalves", {ReadVariableForTest(builder, "w", {2})});
            UpdateVariableForTest("AssignVariable", "v", {first[0]});
          },
          {4}));
  std::vector<Tensor> earlier;
  for (const float scale : {1.0f, 10.0f}) {
    std::vector<Tensor> results;
    ASSERT_OK(executable->Run(
        {Tensor::FromValues<float>({4}, {2 * scale, 4 * scale, 6, 8})},
        {.step_id = 3}, &results));
    EXPECT_THAT(Floats(results[0]), ElementsAre(scale, 2 * scale, 3, 4));
    EXPECT_THAT(Floats(results[1]), ElementsAre(scale, 2 * scale, 3, 4));
    EXPECT_EQ(results[1].shape(), Shape({2, 2}));
    EXPECT_THAT(Floats(results[2]), ElementsAre(2 * scale, 4 * scale, 6, 8));
    if (earlier.empty()) earlier = results;
  }
  // The caller keeps the results of the first run.
  EXPECT_THAT(Floats(earlier[0]), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(store_.events(), Contains("update v"));
}

TEST_F(SharedMemoryTest, AProductWithOneIsAView) {
  ASSERT_OK_AND_ASSIGN(
      const auto executable,
      Compile(
          [](GraphBuilder& builder, Value x) {
            const Value one =
                builder.Constant(Tensor::FromValues<float>({}, {1}));
            const Value two =
                builder.Constant(Tensor::FromValues<float>({}, {2}));
            const Value ones =
                builder.Constant(Tensor::FromValues<float>({2, 1}, {1, 1}));
            builder.AddResult(builder.Op("Mul", {x, one}));
            builder.AddResult(builder.Op("Mul", {x, two}));
            builder.AddResult(builder.Op("Mul", {x, ones}));
            UpdateVariableForTest("AssignVariable", "w",
                                  {builder.Op("Mul", {x, one})});
          },
          {2}));
  const auto x = Tensor::FromValues<float>({2}, {3, 4});
  std::vector<Tensor> results;
  ASSERT_OK(executable->Run({x}, {.step_id = 3}, &results));
  EXPECT_EQ(results[0].raw_data(), x.raw_data());
  EXPECT_THAT(Floats(results[1]), ElementsAre(6, 8));
  EXPECT_THAT(Floats(results[2]), ElementsAre(3, 4, 3, 4));
}

}  // namespace
}  // namespace muster
