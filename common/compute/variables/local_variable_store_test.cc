#include "common/compute/variables/local_variable_store.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/local_variable.h"
#include "common/compute/variables/variable_state.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/testing/allocations/allocation_counter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/storage/disk.h"
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
  proto::VariableSpec constrained = Spec("w", DType::kFloat32, {2});
  constrained.mutable_constraint()->mutable_non_neg();
  EXPECT_THAT(store.Create(constrained),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("exists with constraint {}; {non_neg { }}")));
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
  EXPECT_THAT(
      store.SetOptimizer(Sgd({.momentum = 7})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("momentum is 7")));
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
    // Holds the value over the update on purpose: the variable then alternates
    // between two buffers.
    const auto w = session->Read(0);
    ASSERT_TRUE(session->Gather(1, indices, &rows).ok());
    ASSERT_TRUE(
        session->Update(0, UpdateKind::kApplyGradient, gradient, {}).ok());
    ASSERT_TRUE(session
                    ->Update(1, UpdateKind::kApplySparseGradient, rows_gradient,
                             indices)
                    .ok());
    ASSERT_TRUE(session->Commit().ok());
  }
  EXPECT_EQ(AllocationCount() - before, 0);
}

// A store of two trained variables and a count.
class SavedStore : public testing::Test {
 protected:
  void SetUp() override {
    Make(&store_);
    for (int i = 0; i < 3; ++i) Step(&store_);
  }

  static void Make(LocalVariableStore* store) {
    ASSERT_OK(store->SetOptimizer(Adam({.learning_rate = 0.5})));
    ASSERT_OK(store->Create(Spec("dense/kernel", DType::kFloat32, {2, 2}, 1)));
    ASSERT_OK(store->Create(Spec("dense/bias", DType::kFloat32, {2})));
    ASSERT_OK(store->Create(Spec("seen", DType::kInt64, {}, 4)));
  }

  static void Step(LocalVariableStore* store) {
    ASSERT_OK_AND_ASSIGN(
        const auto session,
        store->OpenSession({{.name = "dense/kernel", .is_updated = true},
                            {.name = "dense/bias", .is_updated = true}}));
    ASSERT_OK(session->Begin(0));
    ASSERT_OK(session->Update(0, UpdateKind::kApplyGradient,
                              Tensor::FromValues<float>({2, 2}, {1, -2, 3, 4}),
                              Tensor()));
    ASSERT_OK(session->Update(1, UpdateKind::kApplyGradient,
                              Tensor::FromValues<float>({2}, {5, -6}),
                              Tensor()));
    ASSERT_OK(session->Commit());
  }

  static void ExpectEqual(const LocalVariableStore& a,
                          const LocalVariableStore& b) {
    for (const proto::VariableSpec& spec : a.List()) {
      ASSERT_OK_AND_ASSIGN(const LocalVariable* in_a, a.Find(spec.name()));
      ASSERT_OK_AND_ASSIGN(const LocalVariable* in_b, b.Find(spec.name()));
      const VariableState state_a = in_a->ReadState();
      const VariableState state_b = in_b->ReadState();
      EXPECT_TRUE(BitwiseEqual(state_a.value, state_b.value)) << spec.name();
      EXPECT_EQ(state_a.update_count, state_b.update_count);
    }
  }

  std::string Save(VariableSnapshot* snapshot) {
    const std::string prefix = absl::StrCat(testing::TempDir(), "/ckpt");
    EXPECT_OK(snapshot->WriteShards(Disk::Real(), prefix, 1));
    EXPECT_OK(PublishTensorBundle(Disk::Real(), prefix, 1));
    return prefix;
  }

  LocalVariableStore store_;
};

TEST_F(SavedStore, RestoredTrainingContinuesIdentically) {
  const std::string prefix = absl::StrCat(testing::TempDir(), "/ckpt");
  ASSERT_OK(store_.SaveShards(prefix, 1));
  ASSERT_OK(PublishTensorBundle(Disk::Real(), prefix, 1));
  LocalVariableStore restored;
  Make(&restored);
  ASSERT_OK(restored.Restore(prefix, /*values_only=*/false));
  ExpectEqual(store_, restored);
  Step(&store_);
  Step(&restored);
  ExpectEqual(store_, restored);
}

TEST_F(SavedStore, SnapshotsKeepTheirMomentWhileStepsGoOn) {
  LocalVariableStore then;
  Make(&then);
  for (int i = 0; i < 3; ++i) Step(&then);
  ASSERT_OK_AND_ASSIGN(const auto snapshot, store_.TakeSnapshot());
  Step(&store_);
  EXPECT_EQ(snapshot->entries()[0].variable, "dense/kernel");
  EXPECT_EQ(snapshot->entries()[0].update_count, 3);
  EXPECT_THAT(snapshot->entries()[0].slots,
              ElementsAre("momentum", "velocity"));
  LocalVariableStore restored;
  Make(&restored);
  ASSERT_OK(restored.Restore(Save(snapshot.get()), /*values_only=*/false));
  ExpectEqual(then, restored);
  Step(&then);
  Step(&restored);
  ExpectEqual(then, restored);
}

TEST_F(SavedStore, ValuesOnlyRestoreKeepsOptimizerState) {
  ASSERT_OK_AND_ASSIGN(const auto snapshot, store_.TakeSnapshot());
  LocalVariableStore restored;
  Make(&restored);
  Step(&restored);
  ASSERT_OK(restored.Restore(Save(snapshot.get()), /*values_only=*/true));
  ASSERT_OK_AND_ASSIGN(const Tensor value, store_.Read("dense/bias"));
  ASSERT_OK_AND_ASSIGN(const Tensor restored_value,
                       restored.Read("dense/bias"));
  EXPECT_TRUE(BitwiseEqual(value, restored_value));
  EXPECT_THAT(restored.UpdateCount("dense/bias"), IsOkAndHolds(1));
}

TEST_F(SavedStore, RestoreOfOtherTypesChangesNothing) {
  ASSERT_OK_AND_ASSIGN(const auto snapshot, store_.TakeSnapshot());
  const std::string prefix = Save(snapshot.get());
  LocalVariableStore other;
  Make(&other);
  LocalVariableStore untouched;
  Make(&untouched);
  ASSERT_OK(other.Create(Spec("dense/kernal", DType::kFloat32, {2})));
  EXPECT_THAT(other.Restore(prefix, /*values_only=*/false),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("\"dense/kernal\"; did you mean "
                                 "\"dense/kernel\"?")));
  ExpectEqual(untouched, other);
}

}  // namespace
}  // namespace muster
