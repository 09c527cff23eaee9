#include "coordinator/function.h"

#include <vector>

#include "common/compute/graph/graph.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/replica/replica_context.h"
#include "common/net/collectives/reduce_op.h"
#include "coordinator/per_worker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/client/step_signature.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

const TensorType kX = {DType::kFloat32, {-1, 3}};
const TensorType kY = {DType::kInt64, {-1}};

class FunctionTest : public testing::Test {
 protected:
  absl::StatusOr<uint32_t> Resolve(
      const Function& function,
      const std::vector<FunctionArgument>& arguments) {
    return function.Resolve(arguments, [this](const Graph& graph) {
      graphs_.push_back(graph);
      return static_cast<uint32_t>(graphs_.size() - 1);
    });
  }

  std::vector<Graph> graphs_;
};

TEST_F(FunctionTest, IsTracedOnceForEachSignature) {
  int traced_count = 0;
  const Function twice = Function::Of("twice", [&](Value x) {
    ++traced_count;
    return x + x;
  });
  EXPECT_EQ(traced_count, 0);
  const Tensor two = Tensor::FromValues<float>({2}, {1, 2});
  const Tensor three = Tensor::FromValues<float>({3}, {1, 2, 3});
  EXPECT_THAT(Resolve(twice, {two}), IsOkAndHolds(0u));
  EXPECT_THAT(Resolve(twice, {two}), IsOkAndHolds(0u));
  EXPECT_THAT(Resolve(twice, {three}), IsOkAndHolds(1u));
  EXPECT_THAT(Resolve(twice, {PerWorker<Tensor>({two, two})}),
              IsOkAndHolds(0u));
  EXPECT_EQ(traced_count, 2);
}

TEST_F(FunctionTest, EachNextIsAnotherElement) {
  const Function step = Function::Of("step", [](Iterator it, Value scale) {
    const auto [x, y] = it.Next<2>();
    const std::vector<Value> second = it.Next();
    return std::vector<Value>{x * scale, second[0] * scale, y};
  });
  ASSERT_OK(
      Resolve(step, {PerWorker<Iterator>(7, {kX, kY}), Tensor::Scalar(2.0f)}));
  ASSERT_OK_AND_ASSIGN(const StepSignature signature,
                       StepSignature::Create(graphs_[0]));
  ASSERT_EQ(signature.arguments().size(), 2u);
  EXPECT_EQ(signature.arguments()[0].element_count, 2);
  EXPECT_EQ(signature.arguments()[0].component_count, 2);
  EXPECT_EQ(signature.arguments()[1].element_count, 0);
  EXPECT_EQ(graphs_[0].results.size(), 3u);
}

TEST_F(FunctionTest, AWorkerIsItsOnlyReplica) {
  int num_replicas_in_sync = 0;
  const Function step =
      Function::Of("step", [&](const ReplicaContext& replica, Value x) {
        num_replicas_in_sync = replica.num_replicas_in_sync();
        return replica.AllReduce(ReduceOp::kSum, x);
      });
  EXPECT_OK(Resolve(step, {Tensor::Scalar(2.0f)}));
  EXPECT_EQ(num_replicas_in_sync, 1);
  EXPECT_EQ(graphs_[0].nodes.back().op, "AllReduce");
}

TEST_F(FunctionTest, MayTakeTheBuilderAndReturnNothing) {
  const Function step = Function::Of("step", [](GraphBuilder& builder) {
    AssignAddVariable({"v", {DType::kFloat32, {}}},
                      builder.Constant(Tensor::Scalar(1.0f)));
  });
  ASSERT_OK(Resolve(step, {}));
  EXPECT_TRUE(graphs_[0].results.empty());
}

TEST_F(FunctionTest, RefusesArgumentsThatDoNotFit) {
  const Function step =
      Function::Of("step", [](Iterator it) { return it.Next<3>()[0]; });
  EXPECT_THAT(Resolve(step, {}), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("takes 1 arguments")));
  EXPECT_THAT(Resolve(step, {Tensor::Scalar(1.0f)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("takes an Iterator")));
  EXPECT_THAT(Resolve(step, {Tensor()}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("argument 0 is empty")));
  EXPECT_THAT(
      Resolve(step, {PerWorker<Iterator>(0, {kX, kY})}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Next<3>")));
  EXPECT_THAT(Resolve(Function(), {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace muster
