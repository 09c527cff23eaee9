#include <cstdint>
#include <utility>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/runtime/testing/test_ops.h"
#include "common/core/base/testing/allocations/allocation_counter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

TEST(AllocationTest, ASteadyStepAllocatesNothing) {
  const KernelRegistry kernels = MakeTestKernels();
  GraphBuilder builder(&TestOps(), "steady");
  const Value x = builder.Parameter("x", {DType::kFloat32, {2, 2}});
  Value value = x;
  for (int i = 0; i < 50; ++i) {
    const Value flat =
        builder.Op("Reshape", {value}, {{"shape", std::vector<int64_t>{4}}});
    value = builder.Op("Add", {builder.Op("ReshapeLike", {flat, x}), x});
  }
  builder.AddResult(value);
  builder.AddResult(
      builder.Op("Reshape", {value}, {{"shape", std::vector<int64_t>{1, 4}}}));
  builder.AddResult(x);
  ASSERT_OK_AND_ASSIGN(Graph graph, std::move(builder).Build());
  ASSERT_OK_AND_ASSIGN(
      const auto executable,
      Executable::Compile(std::move(graph), TestOps(), kernels, nullptr));
  const std::vector<Tensor> arguments = {
      Tensor::Full(DType::kFloat32, {2, 2}, 1)};
  std::vector<Tensor> results;
  ASSERT_OK(executable->Run(arguments, {}, &results));
  const int64_t count = AllocationCount();
  EXPECT_GT(count, 0);

  bool all_ok = true;
  for (int step = 0; step < 10; ++step) {
    all_ok &= executable->Run(arguments, {}, &results).ok();
  }
  EXPECT_EQ(AllocationCount(), count);
  EXPECT_TRUE(all_ok);
  EXPECT_EQ(results[1].flat<float>()[0], 51);
}

}  // namespace
}  // namespace muster
