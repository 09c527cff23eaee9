#ifndef COMMON_COMPUTE_OPTIMIZERS_UPDATE_RULE_H_
#define COMMON_COMPUTE_OPTIMIZERS_UPDATE_RULE_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/functions/update.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/place.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// An array that an update rule keeps per variable, of the variable's dtype. It
// is filled with `initial_value` before the first update, or with the variable.
struct SlotSpec {
  std::string name;  // Keras' name: "momentum", "velocity", "accumulator", ...
  double initial_value = 0;
  // True if the slot starts as a copy of the variable, whose shape it has.
  bool starts_as_variable = false;
  // Absent if it is the shape of the variable. Only the rules that
  // UpdateRule::ForVariable() returns have slots of other shapes.
  std::optional<Shape> shape = std::nullopt;
};

// The value that the function of a pass takes as the gradient.
enum class UpdateOperand : uint8_t {
  // The gradient that the rule takes. The pass changes only the rows that the
  // gradient contains. Passes with other operands change the whole variable.
  kGradient,
  // The mean of the gradients whose sum is in slot accumulator_slot(). The pass
  // resets the sum to 0.
  kMean,
  kLambRatio,  // LambRatio() of the whole variable.
  kNone,
};

// One pass over a variable on a device: a function of
// common/compute/functions/update.h, applied to each element.
struct UpdatePass {
  absl::string_view function;  // The function's name in update.h, a literal.
  // True for functions that need the whole variable, "adafactor" and "muon",
  // with the coefficients in common/compute/functions/whole_update.h.
  bool sees_whole_variable = false;
  UpdateOperand operand = UpdateOperand::kGradient;
  // The index in UpdateRule::slots() of the slot that the pass changes instead
  // of the variable. -1 if the pass changes the variable.
  int target_slot = -1;
  // The index of the function's first slot.
  int first_slot = 0;
  alignas(8) uint8_t coefficients[kUpdateCoefficientBytes] = {};

  template <typename Coefficients>
  void SetCoefficients(const Coefficients& of_function) {
    static_assert(sizeof(of_function) <= kUpdateCoefficientBytes);
    std::memcpy(coefficients, &of_function, sizeof(of_function));
  }
};

// Applies a gradient to a variable. Names, defaults and numerics are those of
// keras.optimizers.
//
// The result of each element depends only on the element, its gradient and its
// slots, and is computed with the same operations on all machines. Parts of a
// variable can therefore be updated in any order and by several threads, with
// the same `step`. The result is bit-identical to updating the whole variable
// at once. Rules with needs_whole_variables() are the exception.
//
// Thread-safe: immutable.
class UpdateRule {
 public:
  // The maximum number of slots of a rule.
  static constexpr int kSlotCountMax = 6;

  // Absent fields of `optimizer` have Keras' defaults. An optimizer with a
  // loss_scale and no rule is the optimizer of the scale itself (loss_scale.h).
  // If there is a rule, this function ignores the loss_scale; callers that
  // compute gradients apply it.
  //   kInvalidArgument  no rule is set, both learning_rate and
  //                     learning_rate_schedule are set, more than one kind of
  //                     clipping is set, or a hyperparameter is out of range;
  //                     the message names the rule and the fields; or
  //                     `gradients_per_step` is less than 1
  static absl::StatusOr<std::unique_ptr<UpdateRule>> Create(
      const Optimizer& optimizer, int64_t gradients_per_step = 1);

  virtual ~UpdateRule() = default;

  // OptimizerKind::rule_name: "sgd", "adam", ...
  virtual absl::string_view name() const = 0;

  virtual absl::Span<const SlotSpec> slots() const = 0;

  // Returns the rule for the variable `name` of `shape` if updates or slots
  // depend on either, and null if this rule applies to all variables. Of a rule
  // that depends on them, only the rule that ForVariable() returns can be
  // applied; if that one needs whole variables, so does this rule. The slots()
  // of the returned rule are the variable's; slots() of this rule lists the
  // slots of all variables. UpdateRuleFor() covers both cases.
  virtual std::shared_ptr<const UpdateRule> ForVariable(
      absl::string_view name, const Shape& shape) const = 0;

  // Readies this rule, which UpdateRuleFor() returned, for gradients of a
  // variable, or of a part of one, of this type at `place`. Call it before the
  // first gradient. Rules whose updates are programs compile them here.
  //   kInvalidArgument  the rule cannot update a variable of this type
  //   kUnimplemented    the rule cannot update variables at `place`
  //   other codes       of the compiler of programs
  virtual absl::Status Prepare(const TensorType&, Place) const {
    return absl::OkStatus();
  }

  // Returns the learning rate at `step`.
  virtual double LearningRate(int64_t step) const = 0;

  // True if an update depends on norms of the variable. Then Apply() must be
  // called with all elements of the variable, and ApplyRows() must not be
  // called.
  virtual bool needs_whole_variables() const = 0;

  // Appends the passes that are equivalent to Apply(), or to ApplyRows() and
  // FinishRows(), for a variable of `dtype`, float32 or float64. A device runs
  // them in this order.
  virtual void AddPasses(int64_t step, DType dtype,
                         std::vector<UpdatePass>* passes) const = 0;

  // ---- Gradient accumulation. Each call of Apply() or ApplyRows() takes one
  // gradient. After every gradients_per_update() gradients, their mean is
  // applied as one gradient.

  virtual int64_t gradients_per_update() const = 0;

  // How many of these gradients count as one step: those of a round of
  // synchronous training on parameter servers.
  virtual int64_t gradients_per_step() const { return 1; }

  // The index in slots() of the sum of the gradients that were taken and not
  // applied; -1 if gradients_per_update() is 1.
  virtual int accumulator_slot() const = 0;

  // Takes the last gradient of an update, at `step`, for a caller that has
  // computed the mean itself and has reset the sum to 0, because it limits the
  // norm of the mean.
  virtual void ApplyMean(int64_t step, int64_t count, const float* mean,
                         float* variable,
                         absl::Span<float* const> slots) const = 0;
  virtual void ApplyMean(int64_t step, int64_t count, const double* mean,
                         double* variable,
                         absl::Span<double* const> slots) const = 0;

  // Updates `count` elements. `step` is the number of gradients that the
  // variable has taken before this one. slots[i] belongs to slots()[i]. The
  // arrays must not overlap.
  virtual void Apply(int64_t step, int64_t count, const float* gradient,
                     float* variable, absl::Span<float* const> slots) const = 0;
  virtual void Apply(int64_t step, int64_t count, const double* gradient,
                     double* variable,
                     absl::Span<double* const> slots) const = 0;

  // Applies the gradients of some rows. Row i of `gradients`, which has
  // rows.size() rows of `row_elements`, belongs to row rows[i] of the variable
  // and its slots. The row indices must be valid and distinct: the caller sums
  // the gradients of repeated rows first.
  //
  // Other rows keep their values and slots: neither momentum, nor the decay of
  // running means, nor weight decay applies to them. `step` counts the
  // gradients of the variable, not of the row. In Keras 3, the gradient of
  // other rows is 0, so that slots decay and weights move in all rows. The cost
  // of an update here depends on the rows of the batch, not on the size of the
  // table. Steps with ChangesAllRows() are the exception: they do what Keras
  // does.
  virtual void ApplyRows(int64_t step, int64_t row_elements,
                         absl::Span<const int64_t> rows, const float* gradients,
                         float* variable,
                         absl::Span<float* const> slots) const = 0;
  virtual void ApplyRows(int64_t step, int64_t row_elements,
                         absl::Span<const int64_t> rows,
                         const double* gradients, double* variable,
                         absl::Span<double* const> slots) const = 0;

  // True if ApplyRows() of this step leaves work to FinishRows(), which must be
  // called afterwards for all elements of the variable, once, in any parts: an
  // update of accumulated gradients, or of moving averages.
  virtual bool ChangesAllRows(int64_t step) const = 0;
  virtual void FinishRows(int64_t step, int64_t count, float* variable,
                          absl::Span<float* const> slots) const = 0;
  virtual void FinishRows(int64_t step, int64_t count, double* variable,
                          absl::Span<double* const> slots) const = 0;
};

// A rule that applies each gradient at once, without a stage of staged_rule.h.
class PlainRule : public UpdateRule {
 public:
  int64_t gradients_per_update() const final { return 1; }
  int accumulator_slot() const final { return -1; }
  void ApplyMean(int64_t step, int64_t count, const float* mean,
                 float* variable, absl::Span<float* const> slots) const final {
    Apply(step, count, mean, variable, slots);
  }
  void ApplyMean(int64_t step, int64_t count, const double* mean,
                 double* variable,
                 absl::Span<double* const> slots) const final {
    Apply(step, count, mean, variable, slots);
  }
  bool ChangesAllRows(int64_t) const final { return false; }
  // ApplyRows() leaves no work to FinishRows().
  void FinishRows(int64_t, int64_t, float*,
                  absl::Span<float* const>) const final {}
  void FinishRows(int64_t, int64_t, double*,
                  absl::Span<double* const>) const final {}
};

// Returns the rule that updates the variable `name` of `shape`: its
// ForVariable() if there is one, otherwise `rule` itself.
inline std::shared_ptr<const UpdateRule> UpdateRuleFor(
    const std::shared_ptr<const UpdateRule>& rule, absl::string_view name,
    const Shape& shape) {
  std::shared_ptr<const UpdateRule> of_variable =
      rule->ForVariable(name, shape);
  return of_variable == nullptr ? rule : of_variable;
}

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_UPDATE_RULE_H_
