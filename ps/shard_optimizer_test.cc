#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/parameter_server.pb.h"
#include "ps/testing/shard_call.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

using ShardOptimizerTest = ShardFixture;

TEST_F(ShardOptimizerTest, SparseGradientsSumRepeatedRows) {
  const uint32_t x = Create("x", Shape({3, 2}));
  proto::Optimizer adagrad;
  adagrad.mutable_adagrad()->set_learning_rate(1);
  adagrad.mutable_adagrad()->set_initial_accumulator_value(0);
  ASSERT_OK(shard_.SetOptimizer(adagrad));
  // Adagrad's first step depends on the gradient's sign only: 2 moves as far as
  // 1.
  ASSERT_OK(Call()
                .Sparse(x, proto::APPLY_SPARSE_GRADIENT, {2, 0, 2},
                        Floats({3, 2}, {1, 1, 5, 5, 1, 1}))
                .Run(shard_));
  EXPECT_THAT(Values(shard_, x), ElementsAre(-1, -1, 0, 0, -1, -1));
}

// Covers dense gradients and gradients of some rows, which leave the other rows
// unchanged.
TEST_F(ShardOptimizerTest, EveryOptimizerMatchesItsRule) {
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    proto::Optimizer absent;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat(OptimizerName(kind->defaults().message()), " {}"),
        &absent));
    if (kind == &kAdafactorKind) continue;  // Has slots of other shapes.
    ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const UpdateRule> of_all,
                         UpdateRule::Create(kind->defaults()));
    const auto rule = UpdateRuleFor(of_all, "x", Shape({3, 2}));
    std::vector<float> wanted(6, 1.0f);
    std::vector<std::vector<float>> slots;
    std::vector<float*> pointers;
    slots.reserve(rule->slots().size());
    for (const SlotSpec& slot : rule->slots()) {
      slots.emplace_back(6, static_cast<float>(slot.initial_value));
      if (slot.starts_as_variable) slots.back() = wanted;
      pointers.push_back(slots.back().data());
    }
    const std::vector<float> dense = {1, -2, 3, -4, 5, -6};
    const std::vector<float> sparse = {0.5f, -0.5f};
    rule->Apply(0, 6, dense.data(), wanted.data(),
                absl::MakeConstSpan(pointers));
    if (rule->needs_whole_variables()) {
      const std::vector<float> all_rows = {0, 0, 0.5f, -0.5f, 0, 0};
      rule->Apply(1, 6, all_rows.data(), wanted.data(),
                  absl::MakeConstSpan(pointers));
    } else {
      rule->ApplyRows(1, 2, {1}, sparse.data(), wanted.data(),
                      absl::MakeConstSpan(pointers));
    }

    shard_.Clear();
    const uint32_t x = Create("x", Shape({3, 2}), 1);
    ASSERT_OK(shard_.SetOptimizer(absent));
    ASSERT_OK(Call()
                  .Update(x, proto::APPLY_GRADIENT, Floats({3, 2}, dense))
                  .Sparse(x, proto::APPLY_SPARSE_GRADIENT, {1},
                          Floats({1, 2}, sparse))
                  .Run(shard_));
    EXPECT_THAT(Values(shard_, x), ElementsAreArray(wanted))
        << absent.ShortDebugString();
    EXPECT_NE(wanted, std::vector<float>(6, 1.0f)) << absent.ShortDebugString();
  }
}

// The variable has several stripes, and the gradients overlap in time.
TEST_F(ShardOptimizerTest, UpdatesWholeVariablesOneAfterTheOther) {
  constexpr int64_t kRows = 1000;
  const Shape shape({kRows, 256});
  const uint32_t x = Create("x", shape, 1);
  ASSERT_OK(shard_.SetOptimizer(Lamb().message()));
  const std::vector<float> gradient(kRows * 256, 0.5f);
  constexpr int kPushCount = 4;
  std::vector<std::thread> pushes;
  for (int i = 0; i < kPushCount; ++i) {
    pushes.emplace_back([&] {
      EXPECT_OK(Call()
                    .Update(x, proto::APPLY_GRADIENT, Floats(shape, gradient))
                    .Run(shard_));
    });
  }
  for (std::thread& push : pushes) push.join();

  ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(Lamb()));
  std::vector<float> wanted(gradient.size(), 1.0f);
  std::vector<float> momentum(gradient.size());
  std::vector<float> velocity(gradient.size());
  for (int i = 0; i < kPushCount; ++i) {
    rule->Apply(i, static_cast<int64_t>(gradient.size()), gradient.data(),
                wanted.data(), {momentum.data(), velocity.data()});
  }
  EXPECT_EQ(Values(shard_, x), wanted);
}

proto::Optimizer SgdWith(const std::string& options) {
  proto::Optimizer optimizer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "sgd { learning_rate: 1 } " + options, &optimizer));
  return optimizer;
}

TEST_F(ShardOptimizerTest, AppliesTheMeanOfAccumulatedGradients) {
  const uint32_t x = Create("x", Shape({3, 2}));
  ASSERT_OK(shard_.SetOptimizer(SgdWith("gradient_accumulation_steps: 3")));
  ASSERT_OK(
      Call()
          .Update(x, proto::APPLY_GRADIENT, Floats({3, 2}, {3, 3, 3, 3, 3, 3}))
          .Run(shard_));
  // Row 0 has a gradient in an earlier push only. The last push of the group
  // applies it nevertheless.
  ASSERT_OK(
      Call()
          .Sparse(x, proto::APPLY_SPARSE_GRADIENT, {0}, Floats({1, 2}, {6, 9}))
          .Run(shard_));
  EXPECT_THAT(Values(shard_, x), ElementsAre(0, 0, 0, 0, 0, 0));
  ASSERT_OK(Call()
                .Sparse(x, proto::APPLY_SPARSE_GRADIENT, {2, 2},
                        Floats({2, 2}, {1, 2, 5, 4}))
                .Run(shard_));
  EXPECT_THAT(Values(shard_, x), ElementsAre(-3, -4, -1, -1, -3, -3));
  // The next update begins with an empty sum.
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(Call()
                  .Sparse(x, proto::APPLY_SPARSE_GRADIENT, {1},
                          Floats({1, 2}, {1, 1}))
                  .Run(shard_));
  }
  EXPECT_THAT(Values(shard_, x), ElementsAre(-3, -4, -2, -2, -3, -3));
}

TEST_F(ShardOptimizerTest, AveragesAllRowsAndAssignsTheAverages) {
  const uint32_t x = Create("x", Shape({2, 1}));
  const uint32_t without = Create("without", Shape({1}), 7);
  ASSERT_OK(shard_.SetOptimizer(SgdWith("use_ema: true ema_momentum: 0.5")));
  ASSERT_OK(Call()
                .Update(x, proto::APPLY_GRADIENT, Floats({2, 1}, {-4, -8}))
                .Run(shard_));
  // The average is 4, 8; row 1 becomes 16, and the average 4, 12.
  ASSERT_OK(
      Call()
          .Sparse(x, proto::APPLY_SPARSE_GRADIENT, {1}, Floats({1, 1}, {-8}))
          .Run(shard_));
  EXPECT_THAT(Values(shard_, x), ElementsAre(4, 16));
  const int64_t version = shard_.Describe().shards(0).version();
  ASSERT_OK(shard_.AssignAverages());
  EXPECT_THAT(Values(shard_, x), ElementsAre(4, 12));
  EXPECT_GT(shard_.Describe().shards(0).version(), version);
  EXPECT_THAT(Values(shard_, without), ElementsAre(7));
}

TEST_F(ShardOptimizerTest, GradientNeedsAnOptimizerAndAFloatVariable) {
  const uint32_t x = Create("x", Shape({1}));
  Call call;
  call.Update(x, proto::APPLY_GRADIENT, Floats({1}, {1}));
  EXPECT_THAT(call.Run(shard_), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("no optimizer was set")));
  const uint32_t n =
      shard_.Create(Spec("n", DType::kInt64, Shape({1}))).value();
  ASSERT_OK(shard_.SetOptimizer(SgdOf(1)));
  EXPECT_THAT(
      Call()
          .Update(n, proto::APPLY_GRADIENT,
                  Tensor::FromValues<int64_t>({1}, {1}))
          .Run(shard_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is of int64")));
}

TEST_F(ShardOptimizerTest, OptimizerCannotChangeItsKindDuringAJob) {
  Create("x", Shape({2}));
  ASSERT_OK(shard_.SetOptimizer(SgdOf(1)));
  EXPECT_OK(shard_.SetOptimizer(SgdOf(0.5)));
  proto::Optimizer momentum = SgdOf(1);
  momentum.mutable_sgd()->set_momentum(0.9);
  EXPECT_THAT(shard_.SetOptimizer(momentum),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("during a job")));
  shard_.Clear();
  EXPECT_OK(shard_.SetOptimizer(momentum));
}

}  // namespace
}  // namespace muster
