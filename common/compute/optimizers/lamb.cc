#include "common/compute/optimizers/lamb.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/argument_checks.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizer_message.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kRuleName = "lamb";

class LambRule final : public UpdateRule {
 public:
  LambRule(const proto::Optimizer& optimizer,
           muster::LearningRate learning_rate)
      : lamb_(optimizer.lamb()),
        weight_decay_(optimizer.weight_decay()),
        learning_rate_(std::move(learning_rate)) {}

  absl::string_view name() const override { return kRuleName; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }
  double LearningRate(int64_t step) const override {
    return learning_rate_.At(step);
  }
  bool needs_whole_variables() const override { return true; }
  bool has_form() const override { return false; }
  UpdateForm FormAt(int64_t, DType) const override {
    MUSTER_CHECK(has_form());
    return {};
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
  // What is the same for all elements. The powers are computed in the precision
  // of the variable, as in Keras.
  template <typename T>
  struct Correction {
    Correction(const proto::Optimizer::Lamb& lamb, int64_t step)
        : momentum(1 - std::pow(static_cast<T>(lamb.beta_1()),
                                static_cast<T>(step + 1))),
          velocity(1 - std::pow(static_cast<T>(lamb.beta_2()),
                                static_cast<T>(step + 1))),
          epsilon(static_cast<T>(lamb.epsilon())) {}

    T Update(T m, T v) const {
      return (m / momentum) / (std::sqrt(v / velocity) + epsilon);
    }

    const T momentum;
    const T velocity;
    const T epsilon;
  };

  // The norms need all updates, and the new weights need the norms: the second
  // loop computes the updates again, which is cheaper than to keep them.
  template <typename T>
  void ApplyAll(int64_t step, int64_t count, const T* gradient, T* variable,
                absl::Span<T* const> slots) const {
    const Correction<T> correction(lamb_, step);
    const T rate = learning_rate_.At(step);
    const T weight_decay = static_cast<T>(weight_decay_);
    const T one_minus_beta_1 = static_cast<T>(1 - lamb_.beta_1());
    const T one_minus_beta_2 = static_cast<T>(1 - lamb_.beta_2());
    T* const momentum = slots[0];
    T* const velocity = slots[1];
    double weight_squares = 0;
    double update_squares = 0;
    for (int64_t i = 0; i < count; ++i) {
      const T g = gradient[i];
      const T m = momentum[i] + (g - momentum[i]) * one_minus_beta_1;
      const T v = velocity[i] + (g * g - velocity[i]) * one_minus_beta_2;
      const T w = variable[i] - variable[i] * weight_decay * rate;
      momentum[i] = m;
      velocity[i] = v;
      variable[i] = w;
      const double update = correction.Update(m, v);
      weight_squares += static_cast<double>(w) * w;
      update_squares += update * update;
    }
    const T ratio =
        weight_squares > 0 && update_squares > 0
            ? static_cast<T>(std::sqrt(weight_squares / update_squares))
            : T{1};
    for (int64_t i = 0; i < count; ++i) {
      variable[i] -= ratio * rate * correction.Update(momentum[i], velocity[i]);
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
  // At 1, the bias correction would divide by 0.
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
    .rule_name = kRuleName,
    .keras_class = "Lamb",
    .defaults = [] { return Lamb(); },
    .make_rule = MakeLamb,
};

}  // namespace muster
