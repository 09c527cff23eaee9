#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/functions/update.h"
#include "common/compute/optimizers/argument_checks.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizer_message.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kLambRuleName = "lamb";

class LambRule final : public PlainRule {
 public:
  LambRule(const proto::Optimizer& optimizer,
           muster::LearningRate learning_rate)
      : lamb_(optimizer.lamb()),
        weight_decay_(optimizer.weight_decay()),
        learning_rate_(std::move(learning_rate)) {}

  absl::string_view name() const override { return kLambRuleName; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }
  double LearningRate(int64_t step) const override {
    return learning_rate_.At(step);
  }
  bool needs_whole_variables() const override { return true; }
  std::shared_ptr<const UpdateRule> ForVariable(absl::string_view,
                                                const Shape&) const override {
    return nullptr;
  }
  void AddPasses(int64_t step, DType dtype,
                 std::vector<UpdatePass>* passes) const override {
    for (const bool is_scaled : {false, true}) {
      UpdatePass& pass = passes->emplace_back();
      pass.function = is_scaled ? "lamb_scaled" : "lamb";
      if (is_scaled) pass.operand = UpdateOperand::kLambRatio;
      if (dtype == DType::kFloat64) {
        pass.SetCoefficients(At<double>(step));
      } else {
        pass.SetCoefficients(At<float>(step));
      }
    }
  }

  void Apply(int64_t step, int64_t count, const float* gradient,
             float* variable, absl::Span<float* const> slots) const override {
    ApplyAll(step, count, gradient, variable, slots);
  }
  void Apply(int64_t step, int64_t count, const double* gradient,
             double* variable, absl::Span<double* const> slots) const override {
    ApplyAll(step, count, gradient, variable, slots);
  }
  void ApplyRows(int64_t, int64_t, absl::Span<const int64_t>, const float*,
                 float*, absl::Span<float* const>) const override {
    MUSTER_CHECK(!needs_whole_variables());
  }
  void ApplyRows(int64_t, int64_t, absl::Span<const int64_t>, const double*,
                 double*, absl::Span<double* const>) const override {
    MUSTER_CHECK(!needs_whole_variables());
  }

 private:
  // The powers are computed in the precision of the variable, as in Keras.
  template <typename T>
  LambCoefficients<T> At(int64_t step) const {
    const auto correction = [step](double beta) {
      return 1 - std::pow(static_cast<T>(beta), static_cast<T>(step + 1));
    };
    return {.rate = static_cast<T>(learning_rate_.At(step)),
            .weight_decay = static_cast<T>(weight_decay_),
            .one_minus_beta_1 = static_cast<T>(1 - lamb_.beta_1()),
            .one_minus_beta_2 = static_cast<T>(1 - lamb_.beta_2()),
            .momentum_correction = correction(lamb_.beta_1()),
            .velocity_correction = correction(lamb_.beta_2()),
            .epsilon = static_cast<T>(lamb_.epsilon())};
  }

  // The norms need all directions, and the new weights need the norms: the
  // second loop computes the directions again, which is cheaper than storing
  // them.
  template <typename T>
  void ApplyAll(int64_t step, int64_t count, const T* gradient, T* variable,
                absl::Span<T* const> slots) const {
    const LambCoefficients<T> coefficients = At<T>(step);
    T* const momentum = slots[0];
    T* const velocity = slots[1];
    double weight_squares = 0;
    double direction_squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      T of_element[] = {momentum[i], velocity[i]};
      const T w =
          LambUpdate::Apply(coefficients, gradient[i], variable[i], of_element);
      momentum[i] = of_element[0];
      velocity[i] = of_element[1];
      variable[i] = w;
      const double direction =
          LambDirection(coefficients, momentum[i], velocity[i]);
      weight_squares += static_cast<double>(w) * w;
      direction_squares += direction * direction;
    }
    const T ratio =
        static_cast<T>(LambRatio(weight_squares, direction_squares));
    for (int64_t i = 0; i < count; ++i) {
      T of_element[] = {momentum[i], velocity[i]};
      variable[i] =
          LambScaledUpdate::Apply(coefficients, ratio, variable[i], of_element);
    }
  }

  const proto::Optimizer::Lamb lamb_;
  const double weight_decay_;
  const muster::LearningRate learning_rate_;
  const SlotSpec slots_[2] = {{.name = "momentum"}, {.name = "velocity"}};
};

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeLamb(
    const proto::Optimizer& optimizer, LearningRate learning_rate) {
  const proto::Optimizer::Lamb& lamb = optimizer.lamb();
  // With a beta of 1, the bias correction would divide by 0.
  constexpr double kBetaMax = 1 - 1e-7;
  RETURN_IF_ERROR(CheckInRange("beta_1", lamb.beta_1(), 0, kBetaMax));
  RETURN_IF_ERROR(CheckInRange("beta_2", lamb.beta_2(), 0, kBetaMax));
  RETURN_IF_ERROR(CheckNotNegative("epsilon", lamb.epsilon()));
  return std::make_unique<LambRule>(optimizer, std::move(learning_rate));
}

}  // namespace

Optimizer Lamb(const LambOptions& options, const OptimizerOptions& shared) {
  proto::Optimizer optimizer = WithOptions(shared);
  auto* const lamb = optimizer.mutable_lamb();
  SetLearningRate(options.learning_rate, lamb, &optimizer);
  lamb->set_beta_1(options.beta_1);
  lamb->set_beta_2(options.beta_2);
  lamb->set_epsilon(options.epsilon);
  return optimizer;
}

const OptimizerKind kLambKind = {
    .rule_case = proto::Optimizer::kLamb,
    .rule_name = kLambRuleName,
    .keras_class = "Lamb",
    .defaults = [] { return Lamb(); },
    .make_rule = MakeLamb,
};

}  // namespace muster
