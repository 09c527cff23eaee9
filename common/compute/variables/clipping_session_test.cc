#include "common/compute/variables/clipping_session.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Variables "a" float32[2] and "b" float32[3, 1] that start at zero, and an
// optimizer that subtracts each gradient unchanged.
class ClippingSessionTest : public ::testing::Test {
 protected:
  ClippingSessionTest() {
    EXPECT_OK(store_.SetOptimizer(Sgd({.learning_rate = 1.0})));
    Create("a", {2});
    Create("b", {3, 1});
  }

  void Create(const std::string& name, const Shape& shape) {
    proto::VariableSpec spec;
    spec.set_name(name);
    spec.set_dtype(EncodeDType(DType::kFloat32));
    *spec.mutable_shape() = EncodeShape(shape);
    spec.mutable_initializer()->mutable_constant()->set_value(0);
    spec.set_trainable(true);
    ASSERT_OK(store_.Create(spec));
  }

  // A session that applies a dense gradient to "a" and a sparse one to "b".
  std::unique_ptr<VariableSession> Open(const GradientClipping& clipping) {
    const std::vector<VariableUse> uses = {
        {.name = "a",
         .is_updated = true,
         .updates = {{0, UpdateKind::kApplyGradient, clipping}}},
        {.name = "b",
         .is_updated = true,
         .updates = {{1, UpdateKind::kApplySparseGradient, clipping}}}};
    absl::StatusOr<std::unique_ptr<VariableSession>> session =
        store_.OpenSession(uses);
    EXPECT_OK(session.status());
    return *std::move(session);
  }

  // Passes gradients {3, 0} of "a", and of "b" {0, 0, 4} in two parts.
  void Step(VariableSession& session) {
    ASSERT_OK(session.Begin(0));
    ASSERT_OK(session.Update(0, UpdateKind::kApplyGradient,
                             Tensor::FromValues<float>({2}, {3, 0}), Tensor()));
    ASSERT_OK(session.Update(1, UpdateKind::kApplySparseGradient,
                             Tensor::FromValues<float>({2, 1}, {1, 3}),
                             Tensor::FromValues<int32_t>({2}, {2, 2})));
    ASSERT_OK(session.Commit());
  }

  std::vector<float> Value(absl::string_view name) {
    const absl::StatusOr<Tensor> value = store_.Read(name);
    EXPECT_OK(value.status());
    return {value->flat<float>().begin(), value->flat<float>().end()};
  }

  LocalVariableStore store_;
};

TEST_F(ClippingSessionTest, CutsElements) {
  const auto session = Open({.clipvalue = 2});
  Step(*session);
  EXPECT_THAT(Value("a"), ElementsAre(-2, 0));
  EXPECT_THAT(Value("b"), ElementsAre(0, 0, -2));
}

TEST_F(ClippingSessionTest, ScalesEachGradientToItsNorm) {
  const auto session = Open({.clipnorm = 3.5});
  Step(*session);
  EXPECT_THAT(Value("a"), ElementsAre(-3, 0));
  EXPECT_THAT(Value("b"), ElementsAre(0, 0, -3.5));
}

TEST_F(ClippingSessionTest, ScalesAllGradientsToOneNorm) {
  const auto session = Open({.global_clipnorm = 2.5});
  Step(*session);  // The norm is 5: repeated rows count as their sum.
  EXPECT_THAT(Value("a"), ElementsAre(-1.5, 0));
  EXPECT_THAT(Value("b"), ElementsAre(0, 0, -2));
  Step(*session);
  EXPECT_THAT(Value("a"), ElementsAre(-3, 0));
}

TEST_F(ClippingSessionTest, EachGroupHasANormOfItsOwn) {
  const std::vector<VariableUse> uses = {
      {.name = "a",
       .is_updated = true,
       .updates = {{0,
                    UpdateKind::kApplyGradient,
                    {.global_clipnorm = 1.5, .norm_group = 1}}}},
      {.name = "b",
       .is_updated = true,
       .updates = {{1,
                    UpdateKind::kApplySparseGradient,
                    {.global_clipnorm = 2, .norm_group = 2}}}}};
  ASSERT_OK_AND_ASSIGN(const auto session, store_.OpenSession(uses));
  Step(*session);
  EXPECT_THAT(Value("a"), ElementsAre(-1.5, 0));
  EXPECT_THAT(Value("b"), ElementsAre(0, 0, -2));
}

TEST_F(ClippingSessionTest, LeavesSmallGradientsAlone) {
  for (const GradientClipping& clipping :
       {GradientClipping{.clipvalue = 5}, GradientClipping{.clipnorm = 4},
        GradientClipping{.global_clipnorm = 5}}) {
    const auto session = Open(clipping);
    ASSERT_OK(store_.Assign("a", Tensor::FromValues<float>({2}, {0, 0})));
    ASSERT_OK(store_.Assign("b", Tensor::FromValues<float>({3, 1}, {0, 0, 0})));
    Step(*session);
    EXPECT_THAT(Value("a"), ElementsAre(-3, 0));
    EXPECT_THAT(Value("b"), ElementsAre(0, 0, -4));
  }
}

TEST_F(ClippingSessionTest, ANormThatIsNoNumberSpoilsAllGradients) {
  const auto session = Open({.global_clipnorm = 1});
  ASSERT_OK(session->Begin(0));
  ASSERT_OK(session->Update(0, UpdateKind::kApplyGradient,
                            Tensor::FromValues<float>({2}, {INFINITY, 1}),
                            Tensor()));
  ASSERT_OK(session->Commit());
  EXPECT_TRUE(std::isnan(Value("a")[1]));
}

TEST_F(ClippingSessionTest, RejectsReadsAfterAHeldGradient) {
  const auto session = Open({.global_clipnorm = 1});
  ASSERT_OK(session->Begin(0));
  ASSERT_OK(session->Update(0, UpdateKind::kApplyGradient,
                            Tensor::FromValues<float>({2}, {3, 0}), Tensor()));
  EXPECT_THAT(session->Read(0),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("\"a\"")));
  EXPECT_OK(session->Read(1).status());
  EXPECT_OK(session->Commit());
  EXPECT_OK(session->Read(0).status());
}

TEST_F(ClippingSessionTest, TheStoreReportsInvalidGradients) {
  for (const GradientClipping& clipping :
       {GradientClipping{.clipnorm = 1}, GradientClipping{.clipvalue = 1}}) {
    const auto session = Open(clipping);
    ASSERT_OK(session->Begin(0));
    EXPECT_THAT(session->Update(1, UpdateKind::kApplySparseGradient,
                                Tensor::FromValues<float>({1}, {3}),
                                Tensor::FromValues<int32_t>({2}, {0, 0})),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(session->Update(1, UpdateKind::kApplySparseGradient,
                                Tensor::FromValues<float>({2, 1}, {1, 3}),
                                Tensor::FromValues<int32_t>({2}, {0, 9})),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

// Records the calls that it receives.
class RecordingSession final : public VariableSession {
 public:
  explicit RecordingSession(std::vector<std::string>* calls) : calls_(calls) {}

  absl::Status BeginPart(uint64_t step_id, int part) override {
    calls_->push_back(absl::StrCat("begin ", step_id, " part ", part));
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> Read(int) override { return Tensor(); }
  absl::Status Gather(int, const Tensor&, Tensor*) override {
    return absl::OkStatus();
  }
  absl::Status Update(int, UpdateKind, const Tensor&, const Tensor&) override {
    return absl::OkStatus();
  }
  absl::Status SetLossDenominator(double weight) override {
    calls_->push_back(absl::StrCat("weight ", weight));
    return absl::OkStatus();
  }
  bool needs_loss_denominator() const override { return false; }
  absl::Status DataError(int call) override {
    return absl::OutOfRangeError(absl::StrCat("call ", call));
  }
  GradientAccumulator* accumulator() override { return nullptr; }
  GatedSteps* UseGate(StepGate*) override { return nullptr; }
  absl::Status Commit() override { return absl::OkStatus(); }

 private:
  std::vector<std::string>* const calls_;
};

// A device detects errors in indices later. The caller asks for them by call
// number, which differs from the number of the same call in the inner session.
TEST(WithClippingTest, DataErrorsAreThoseOfTheSameCall) {
  std::vector<std::string> calls;
  const std::vector<VariableUse> uses = {
      {.name = "a",
       .is_updated = true,
       .updates = {{0, UpdateKind::kApplyGradient, {.global_clipnorm = 1}}}},
      {.name = "b", .is_gathered = true, .is_updated = true}};
  const auto session =
      WithClipping(std::make_unique<RecordingSession>(&calls), uses);
  EXPECT_FALSE(session->needs_loss_denominator());
  const Tensor value = Tensor::FromValues<float>({1}, {3});
  const Tensor indices = Tensor::FromValues<int32_t>({1}, {0});
  Tensor rows;
  for (int step = 0; step < 2; ++step) {
    ASSERT_OK(session->Begin(0));
    // This gradient is held until the end of the step.
    ASSERT_OK(session->Update(0, UpdateKind::kApplyGradient, value, Tensor()));
    ASSERT_OK(session->Gather(1, indices, &rows));
    ASSERT_OK(session->Update(1, UpdateKind::kScatterAdd, value, indices));
    EXPECT_OK(session->DataError(0));
    ASSERT_OK(session->Commit());
    for (const auto& [outer, inner] :
         {std::pair(0, 2), std::pair(1, 0), std::pair(2, 1)}) {
      EXPECT_THAT(session->DataError(outer),
                  StatusIs(absl::StatusCode::kOutOfRange,
                           absl::StrCat("call ", inner)));
    }
    EXPECT_OK(session->DataError(3));
  }
}

TEST(WithClippingTest, PartsAndWeightsReachTheInnerSession) {
  std::vector<std::string> calls;
  const std::vector<VariableUse> uses = {
      {.name = "a",
       .is_updated = true,
       .updates = {{0, UpdateKind::kApplyGradient, {.clipnorm = 1}}}}};
  const auto session =
      WithClipping(std::make_unique<RecordingSession>(&calls), uses);
  ASSERT_OK(session->BeginPart(7, 3));
  ASSERT_OK(session->SetLossDenominator(4));
  EXPECT_THAT(calls, ElementsAre("begin 7 part 3", "weight 4"));
}

}  // namespace
}  // namespace muster
