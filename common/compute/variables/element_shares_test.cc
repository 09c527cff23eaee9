#include "common/compute/variables/element_shares.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/local_variable.h"
#include "common/compute/variables/row_sums.h"
#include "common/compute/variables/update_kind.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensor.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Of the 6 elements of a variable, rank 0 has 1, rank 1 has 3, rank 2 has 2.
ElementShares SharesOf(int rank) { return {.rank = rank, .ends = {1, 4, 6}}; }

proto::VariableSpec Spec() {
  proto::VariableSpec spec;
  spec.set_name("v");
  spec.set_dtype(proto::DT_FLOAT);
  spec.mutable_shape()->add_dim(2);
  spec.mutable_shape()->add_dim(3);
  return spec;
}

Tensor Six(float a, float b, float c, float d, float e, float f) {
  return Tensor::FromValues<float>({2, 3}, {a, b, c, d, e, f});
}

std::vector<float> Flat(const Tensor& tensor) {
  return {tensor.flat<float>().begin(), tensor.flat<float>().end()};
}

std::shared_ptr<const UpdateRule> Rule(const Optimizer& optimizer) {
  return UpdateRule::Create(optimizer).value();
}

std::shared_ptr<const UpdateRule> Momentum() {
  return Rule(Sgd({.learning_rate = 1, .momentum = 0.5}));
}

class DividedVariableTest : public ::testing::Test {
 protected:
  absl::Status Apply(const std::shared_ptr<const UpdateRule>& rule,
                     const Tensor& gradient) {
    RowSums row_sums;
    return variable_->Update(UpdateKind::kApplyGradient, gradient, Tensor(),
                             rule, &row_sums);
  }

  const std::unique_ptr<LocalVariable> variable_ =
      LocalVariable::Create(Spec()).value();
};

TEST_F(DividedVariableTest, GradientsChangeTheShareAndSlotsCoverIt) {
  ASSERT_OK(variable_->Divide(SharesOf(1)));
  ASSERT_OK(Apply(Momentum(), Six(1, 2, 3, 4, 5, 6)));
  EXPECT_THAT(Flat(variable_->Read()), ElementsAre(0, -2, -3, -4, 0, 0));
  EXPECT_EQ(variable_->update_count(), 1);
  const VariableState state = variable_->ReadState();
  ASSERT_THAT(state.slots, SizeIs(1));
  EXPECT_TRUE(state.slots[0].is_share);
  EXPECT_EQ(state.slots[0].value.shape(), Shape({3}));
  EXPECT_THAT(Flat(state.slots[0].value), ElementsAre(-2, -3, -4));
}

TEST_F(DividedVariableTest, ARankWithoutElementsCountsGradients) {
  ASSERT_OK(variable_->Divide({.rank = 1, .ends = {6, 6}}));
  ASSERT_OK(Apply(Rule(Lamb()), Six(1, 2, 3, 4, 5, 6)));
  EXPECT_THAT(Flat(variable_->Read()), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(variable_->update_count(), 1);
  for (const VariableState::Slot& slot : variable_->ReadSlots()) {
    EXPECT_EQ(slot.value.element_count(), 0);
  }
}

TEST_F(DividedVariableTest, WholeSlotsAreReducedToTheShare) {
  const Tensor slot = Six(1, 2, 3, 4, 5, 6);
  ASSERT_OK(variable_->Restore(2, {{"momentum", slot}}));
  ASSERT_OK(variable_->Divide(SharesOf(2)));
  EXPECT_THAT(Flat(variable_->ReadSlots()[0].value), ElementsAre(5, 6));
  ASSERT_OK(variable_->Divide(SharesOf(2)));  // Changes nothing.
  ASSERT_OK(variable_->Restore(
      {.value = slot, .slots = {{"momentum", slot}}, .update_count = 2}));
  EXPECT_THAT(Flat(variable_->ReadSlots()[0].value), ElementsAre(5, 6));
  // The state of the same rank remains.
  ASSERT_OK(variable_->Restore(variable_->ReadState()));
  ASSERT_OK(Apply(Momentum(), Six(0, 0, 0, 0, 0, 0)));
  EXPECT_THAT(Flat(variable_->ReadSlots()[0].value), ElementsAre(2.5, 3));
  EXPECT_THAT(Flat(variable_->Read()), ElementsAre(1, 2, 3, 4, 7.5, 9));
}

TEST_F(DividedVariableTest, AWholeAccumulatorYieldsTheWholeMean) {
  ElementShares shares = SharesOf(1);
  shares.has_whole_accumulator = true;
  ASSERT_OK(variable_->Divide(shares));
  const std::shared_ptr<const UpdateRule> rule =
      Rule(Sgd({.learning_rate = 1}, {.gradient_accumulation_steps = 2}));
  RowSums row_sums;
  const auto accumulate = [&] {
    return variable_->Accumulate(UpdateKind::kApplyGradient,
                                 Six(1, 2, 3, 4, 5, 6), Tensor(), rule,
                                 &row_sums);
  };
  ASSERT_OK_AND_ASSIGN(Tensor mean, accumulate());
  EXPECT_FALSE(mean.IsValid());
  ASSERT_OK_AND_ASSIGN(mean, accumulate());
  EXPECT_THAT(Flat(mean), ElementsAre(1, 2, 3, 4, 5, 6));
  ASSERT_OK(variable_->ApplyMean(mean, rule));
  EXPECT_THAT(Flat(variable_->Read()), ElementsAre(0, -2, -3, -4, 0, 0));
}

TEST_F(DividedVariableTest, ElementsOfOtherRanksAreAssigned) {
  const Tensor read = variable_->Read();
  const std::vector<float> values = {7, 8, 9};
  const auto* const data = reinterpret_cast<const uint8_t*>(values.data());
  ASSERT_OK(variable_->AssignElements(
      std::vector<ElementValues>{{.begin = 0, .count = 1, .data = data},
                                 {.begin = 4, .count = 2, .data = data + 4}}));
  EXPECT_THAT(Flat(variable_->Read()), ElementsAre(7, 0, 0, 0, 8, 9));
  EXPECT_THAT(Flat(read), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(variable_->AssignElements(std::vector<ElementValues>{
                  {.begin = 5, .count = 2, .data = data}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"v\""), HasSubstr("6 elements"))));
}

TEST_F(DividedVariableTest, SharesAreThoseOfTheVariableAndFinal) {
  EXPECT_THAT(variable_->Divide({.rank = 0, .ends = {1, 5}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK(variable_->Divide(SharesOf(0)));
  EXPECT_EQ(variable_->shares(), SharesOf(0));
  EXPECT_THAT(variable_->Divide(SharesOf(1)),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(variable_->Restore(
                  1, {{"momentum", Tensor::FromValues<float>({2}, {1, 2}),
                       /*is_share=*/true}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("this rank has 1")));
}

TEST_F(DividedVariableTest, RulesForWholeVariablesNeedAllElements) {
  ASSERT_OK(variable_->Divide(SharesOf(0)));
  EXPECT_THAT(Apply(Rule(Lamb()), Six(1, 2, 3, 4, 5, 6)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("lamb"), HasSubstr("whole variables"))));
}

TEST(DividedVariable, AConstraintNeedsAllElements) {
  proto::VariableSpec spec = Spec();
  spec.mutable_constraint()->mutable_max_norm()->set_max_value(1);
  const auto variable = LocalVariable::Create(spec).value();
  EXPECT_THAT(
      variable->Divide(SharesOf(0)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("constraint")));
  EXPECT_OK(variable->Divide({.rank = 0, .ends = {0, 6}}));
}

}  // namespace
}  // namespace muster
