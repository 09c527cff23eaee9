#include "common/compute/optimizers/staged_rule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/functions/update.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/check.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/place.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

class StagedRule final : public UpdateRule {
 public:
  StagedRule(std::unique_ptr<UpdateRule> rule,
             muster::LearningRate learning_rate,
             const proto::Optimizer& optimizer, int64_t gradients_per_step)
      : rule_(std::move(rule)),
        learning_rate_(std::move(learning_rate)),
        gradients_per_step_(gradients_per_step),
        gradients_per_update_(gradients_per_step_ *
                              GradientsPerUpdate(optimizer)),
        averages_(optimizer.use_ema()),
        momentum_(optimizer.ema_momentum()),
        overwrite_frequency_(optimizer.ema_overwrite_frequency()) {
    MakeSlots();
  }
  // Wraps another rule in the same stages.
  StagedRule(const StagedRule& other, std::shared_ptr<const UpdateRule> rule)
      : rule_(std::move(rule)),
        learning_rate_(other.learning_rate_),
        gradients_per_step_(other.gradients_per_step_),
        gradients_per_update_(other.gradients_per_update_),
        averages_(other.averages_),
        momentum_(other.momentum_),
        overwrite_frequency_(other.overwrite_frequency_) {
    MakeSlots();
  }

  absl::string_view name() const override { return rule_->name(); }
  absl::Span<const SlotSpec> slots() const override { return slots_; }
  std::shared_ptr<const UpdateRule> ForVariable(
      absl::string_view name, const Shape& shape) const override {
    std::shared_ptr<const UpdateRule> rule = rule_->ForVariable(name, shape);
    if (rule == nullptr) return nullptr;
    return std::make_shared<StagedRule>(*this, std::move(rule));
  }
  absl::Status Prepare(const TensorType& type, Place place) const override {
    return rule_->Prepare(type, place);
  }
  double LearningRate(int64_t step) const override {
    return learning_rate_.At(step / gradients_per_step_);
  }
  bool needs_whole_variables() const override {
    return rule_->needs_whole_variables();
  }
  void AddPasses(int64_t step, DType dtype,
                 std::vector<UpdatePass>* passes) const override;
  int64_t gradients_per_update() const override {
    return gradients_per_update_;
  }
  int64_t gradients_per_step() const override { return gradients_per_step_; }
  int accumulator_slot() const override { return accumulator_slot_; }
  bool ChangesAllRows(int64_t step) const override {
    return (averages_ && EndsStep(step)) || (accumulates() && IsLast(step));
  }

  void Apply(int64_t step, int64_t count, const float* gradient,
             float* variable, absl::Span<float* const> slots) const override {
    ApplyAll(step, count, gradient, variable, slots);
  }
  void Apply(int64_t step, int64_t count, const double* gradient,
             double* variable, absl::Span<double* const> slots) const override {
    ApplyAll(step, count, gradient, variable, slots);
  }
  void ApplyMean(int64_t step, int64_t count, const float* mean,
                 float* variable,
                 absl::Span<float* const> slots) const override {
    ApplyMeanOf(step, count, mean, variable, slots);
  }
  void ApplyMean(int64_t step, int64_t count, const double* mean,
                 double* variable,
                 absl::Span<double* const> slots) const override {
    ApplyMeanOf(step, count, mean, variable, slots);
  }
  void ApplyRows(int64_t step, int64_t row_elements,
                 absl::Span<const int64_t> rows, const float* gradients,
                 float* variable,
                 absl::Span<float* const> slots) const override {
    ApplyEach(step, row_elements, rows, gradients, variable, slots);
  }
  void ApplyRows(int64_t step, int64_t row_elements,
                 absl::Span<const int64_t> rows, const double* gradients,
                 double* variable,
                 absl::Span<double* const> slots) const override {
    ApplyEach(step, row_elements, rows, gradients, variable, slots);
  }
  void FinishRows(int64_t step, int64_t count, float* variable,
                  absl::Span<float* const> slots) const override {
    Finish(step, count, variable, slots);
  }
  void FinishRows(int64_t step, int64_t count, double* variable,
                  absl::Span<double* const> slots) const override {
    Finish(step, count, variable, slots);
  }

 private:
  void MakeSlots() {
    slots_.assign(rule_->slots().begin(), rule_->slots().end());
    if (accumulates()) {
      accumulator_slot_ = static_cast<int>(slots_.size());
      slots_.push_back({.name = kGradientAccumulatorSlot});
    }
    if (averages_) slots_.push_back({.name = kAverageSlot});
    MUSTER_CHECK(slots_.size() <= kSlotCountMax);
  }

  bool accumulates() const { return gradients_per_update_ > 1; }
  // Returns the number of updates before the one that gradient `step` belongs
  // to.
  int64_t UpdateOf(int64_t step) const { return step / gradients_per_update_; }
  bool IsLast(int64_t step) const {
    return (step + 1) % gradients_per_update_ == 0;
  }
  bool EndsStep(int64_t step) const {
    return (step + 1) % gradients_per_step_ == 0;
  }
  template <typename T>
  absl::Span<T* const> RuleSlots(absl::Span<T* const> slots) const {
    return slots.first(rule_->slots().size());
  }

  template <typename T>
  static void Add(int64_t count, const T* gradient, T* sum) {
    for (int64_t i = 0; i < count; ++i) {
      sum[i] = AccumulateUpdate::Apply<T>({}, gradient[i], sum[i], nullptr);
    }
  }

  template <typename T>
  void ApplyAll(int64_t step, int64_t count, const T* gradient, T* variable,
                absl::Span<T* const> slots) const {
    if (!accumulates()) {
      ApplyMeanOf(step, count, gradient, variable, slots);
      return;
    }
    Add(count, gradient, slots[accumulator_slot_]);
    Finish(step, count, variable, slots);
  }

  template <typename T>
  void ApplyEach(int64_t step, int64_t row_elements,
                 absl::Span<const int64_t> rows, const T* gradients,
                 T* variable, absl::Span<T* const> slots) const {
    if (!accumulates()) {
      rule_->ApplyRows(step, row_elements, rows, gradients, variable,
                       RuleSlots(slots));
      return;
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      Add(row_elements, gradients + i * row_elements,
          slots[accumulator_slot_] + rows[i] * row_elements);
    }
  }

  template <typename T>
  void Finish(int64_t step, int64_t count, T* variable,
              absl::Span<T* const> slots) const {
    if (accumulates() && IsLast(step)) {
      T* const sum = slots[accumulator_slot_];
      const T divisor = static_cast<T>(gradients_per_update_);
      for (int64_t i = 0; i < count; ++i) sum[i] /= divisor;
      rule_->Apply(UpdateOf(step), count, sum, variable, RuleSlots(slots));
      std::fill_n(sum, count, T{0});
    }
    Average(step, count, variable, slots);
  }

  template <typename T>
  void ApplyMeanOf(int64_t step, int64_t count, const T* mean, T* variable,
                   absl::Span<T* const> slots) const {
    rule_->Apply(UpdateOf(step), count, mean, variable, RuleSlots(slots));
    Average(step, count, variable, slots);
  }

  template <typename T>
  void Average(int64_t step, int64_t count, T* variable,
               absl::Span<T* const> slots) const {
    if (!averages_ || !EndsStep(step)) return;
    const AverageCoefficients<T> coefficients = AverageAt<T>(step);
    T* const average = slots[slots_.size() - 1];
    for (int64_t i = 0; i < count; ++i) {
      variable[i] =
          AverageUpdate::Apply<T>(coefficients, T{0}, variable[i], average + i);
    }
  }

  template <typename T>
  AverageCoefficients<T> AverageAt(int64_t step) const {
    const int64_t update = UpdateOf(step);
    // Gradients of the first update make the average equal to the variable.
    const T momentum = update == 0 ? T{0} : static_cast<T>(momentum_);
    return {.momentum = momentum,
            .one_minus_momentum = 1 - momentum,
            // As in Keras, each gradient of such an update overwrites.
            .overwrites = overwrite_frequency_ > 0 &&
                          (update + 1) % overwrite_frequency_ == 0};
  }

  const std::shared_ptr<const UpdateRule> rule_;
  const muster::LearningRate learning_rate_;
  const int64_t gradients_per_step_;
  const int64_t gradients_per_update_;
  const bool averages_;
  const double momentum_;
  const int64_t overwrite_frequency_;
  std::vector<SlotSpec> slots_;  // Constant after construction.
  int accumulator_slot_ = -1;    // Constant after construction.
};

void StagedRule::AddPasses(int64_t step, DType dtype,
                           std::vector<UpdatePass>* passes) const {
  if (accumulates()) {
    UpdatePass& pass = passes->emplace_back();
    pass.function = "accumulate";
    pass.target_slot = accumulator_slot_;
  }
  if (!accumulates() || IsLast(step)) {
    const size_t first = passes->size();
    rule_->AddPasses(UpdateOf(step), dtype, passes);
    for (size_t i = first; i < passes->size(); ++i) {
      UpdateOperand& operand = (*passes)[i].operand;
      if (accumulates() && operand == UpdateOperand::kGradient) {
        operand = UpdateOperand::kMean;
      }
    }
  }
  if (!averages_) return;
  UpdatePass& pass = passes->emplace_back();
  pass.function = "average";
  pass.operand = UpdateOperand::kNone;
  pass.first_slot = static_cast<int>(slots_.size()) - 1;
  if (dtype == DType::kFloat64) {
    pass.SetCoefficients(AverageAt<double>(step));
  } else {
    pass.SetCoefficients(AverageAt<float>(step));
  }
}

}  // namespace

std::unique_ptr<UpdateRule> MakeStagedRule(std::unique_ptr<UpdateRule> rule,
                                           LearningRate learning_rate,
                                           const proto::Optimizer& optimizer,
                                           int64_t gradients_per_step) {
  return std::make_unique<StagedRule>(std::move(rule), std::move(learning_rate),
                                      optimizer, gradients_per_step);
}

}  // namespace muster
