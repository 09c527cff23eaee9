#include "common/variables/local_variable_store.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/allocation_counter.h"
#include "common/base/status_matchers.h"
#include "common/optimizers/optimizers.h"
#include "common/tensor/tensor.h"
#include "common/tensor/tensor_codec.h"
#include "common/variables/variable_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

proto::VariableSpec Spec(const std::string& name, DType dtype,
                         const Shape& shape, double value = 0) {
  proto::VariableSpec spec;
  spec.set_name(name);
  spec.set_dtype(EncodeDType(dtype));
  *spec.mutable_shape() = EncodeShape(shape);
  spec.mutable_initializer()->mutable_constant()->set_value(value);
  spec.set_trainable(true);
  return spec;
}

TEST(LocalVariableStore, KeepsVariablesInTheOrderOfCreation) {
  LocalVariableStore store;
  ASSERT_OK(store.Create(Spec("b", DType::kFloat32, {2}, 1)));
  ASSERT_OK(store.Create(Spec("a", DType::kInt64, {})));
  ASSERT_EQ(store.List().size(), 2u);
  EXPECT_EQ(store.List()[0].name(), "b");
  EXPECT_EQ(store.List()[1].name(), "a");
}

TEST(LocalVariableStore, CreatingAgainChangesNothing) {
  LocalVariableStore store;
  ASSERT_OK(store.Create(Spec("w", DType::kFloat32, {2}, 1)));
  ASSERT_OK(store.Assign("w", Tensor::FromValues<float>({2}, {5, 6})));
  ASSERT_OK(store.Create(Spec("w", DType::kFloat32, {2}, 1)));
  ASSERT_OK_AND_ASSIGN(const Tensor value, store.Read("w"));
  EXPECT_THAT(value.flat<float>(), ElementsAre(5, 6));
  EXPECT_THAT(
      store.Create(Spec("w", DType::kFloat32, {3})),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("float32[2]")));
  EXPECT_EQ(store.List().size(), 1u);
}

TEST(LocalVariableStore, NamesThatAreNotThereAreNotFound) {
  LocalVariableStore store;
  const auto not_found =
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"w\""));
  EXPECT_THAT(store.Read("w"), not_found);
  EXPECT_THAT(store.Assign("w", Tensor::Scalar(1.0f)), not_found);
  EXPECT_THAT(store.UpdateCount("w"), not_found);
  const std::vector<VariableUse> uses = {{.name = "w"}};
  EXPECT_THAT(store.OpenSession(uses), not_found);
}

TEST(LocalVariableStore, AStepSeesItsOwnUpdates) {
  LocalVariableStore store;
  ASSERT_OK(store.Create(Spec("w", DType::kFloat32, {2}, 3)));
  ASSERT_OK(store.Create(Spec("n", DType::kInt64, {})));
  ASSERT_OK(store.SetOptimizer(Sgd({.learning_rate = 1.0})));
  const std::vector<VariableUse> uses = {{.name = "n"}, {.name = "w"}};
  ASSERT_OK_AND_ASSIGN(const auto session, store.OpenSession(uses));
  ASSERT_OK(session->Begin(1));
  ASSERT_OK(session->Update(1, UpdateKind::kApplyGradient,
                            Tensor::FromValues<float>({2}, {1, 2}), {}));
  ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd,
                            Tensor::Scalar<int64_t>(1), {}));
  ASSERT_OK_AND_ASSIGN(const Tensor w, session->Read(1));
  EXPECT_THAT(w.flat<float>(), ElementsAre(2, 1));
  Tensor row;
  ASSERT_OK(session->Gather(1, Tensor::Scalar<int64_t>(1), &row));
  EXPECT_EQ(row.scalar<float>(), 1);
  ASSERT_OK(session->Commit());
  EXPECT_THAT(store.UpdateCount("w"), IsOkAndHolds(1));
  EXPECT_THAT(store.UpdateCount("n"), IsOkAndHolds(0));
}

TEST(LocalVariableStore, HyperparametersMayChangeTheRuleMayNot) {
  LocalVariableStore store;
  ASSERT_OK(store.Create(Spec("w", DType::kFloat32, {1})));
  ASSERT_OK(store.SetOptimizer(Sgd({.learning_rate = 1.0})));
  const std::vector<VariableUse> uses = {{.name = "w"}};
  ASSERT_OK_AND_ASSIGN(const auto session, store.OpenSession(uses));
  const Tensor gradient = Tensor::FromValues<float>({1}, {1});
  ASSERT_OK(session->Begin(1));
  ASSERT_OK(session->Update(0, UpdateKind::kApplyGradient, gradient, {}));
  ASSERT_OK(session->Commit());
  ASSERT_OK(store.SetOptimizer(Sgd({.learning_rate = 0.5})));
  ASSERT_OK(session->Begin(2));
  ASSERT_OK(session->Update(0, UpdateKind::kApplyGradient, gradient, {}));
  ASSERT_OK(session->Commit());
  ASSERT_OK_AND_ASSIGN(const Tensor value, store.Read("w"));
  EXPECT_EQ(value.flat<float>()[0], -1.5f);
  EXPECT_THAT(store.SetOptimizer(Adam()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the optimizer is sgd")));
  EXPECT_THAT(store.SetOptimizer(Sgd({.momentum = 7})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("momentum is 7")));
}

TEST(LocalVariableStore, AStepThatRepeatsAllocatesNothing) {
  LocalVariableStore store;
  ASSERT_OK(store.Create(Spec("w", DType::kFloat32, {50, 8}, 1)));
  ASSERT_OK(store.Create(Spec("table", DType::kFloat32, {100, 4}, 1)));
  ASSERT_OK(store.SetOptimizer(Adam()));
  const std::vector<VariableUse> uses = {{.name = "w"}, {.name = "table"}};
  ASSERT_OK_AND_ASSIGN(const auto session, store.OpenSession(uses));
  const Tensor gradient = Tensor::Full(DType::kFloat32, {50, 8}, 0.1);
  const Tensor indices = Tensor::FromValues<int64_t>({3}, {5, 99, 5});
  const Tensor rows_gradient = Tensor::Full(DType::kFloat32, {3, 4}, 0.1);
  Tensor rows;
  int64_t before = 0;
  for (int step = 0; step < 10; ++step) {
    if (step == 3) before = AllocationCount();
    ASSERT_TRUE(session->Begin(step).ok());
    // Held over the update on purpose: then two buffers take turns.
    const auto w = session->Read(0);
    ASSERT_TRUE(session->Gather(1, indices, &rows).ok());
    ASSERT_TRUE(
        session->Update(0, UpdateKind::kApplyGradient, gradient, {}).ok());
    ASSERT_TRUE(session
                    ->Update(1, UpdateKind::kApplySparseGradient,
                             rows_gradient, indices)
                    .ok());
    ASSERT_TRUE(session->Commit().ok());
  }
  EXPECT_EQ(AllocationCount() - before, 0);
}

}  // namespace
}  // namespace muster
