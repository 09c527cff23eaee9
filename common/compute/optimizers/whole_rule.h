#ifndef COMMON_COMPUTE_OPTIMIZERS_WHOLE_RULE_H_
#define COMMON_COMPUTE_OPTIMIZERS_WHOLE_RULE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/check.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {

// Implements UpdateRule for the arithmetic in `Math`, which needs the shape of
// a variable and all of its elements.
//
//   // Returns the slots of all variables or, after Bind(), of the bound one.
//   std::vector<SlotSpec> slots() const;
//   // Restricts the rule to this variable.
//   void Bind(absl::string_view name, const Shape& shape);
//   // T is float or double. Called after Bind().
//   template <typename T>
//   void Apply(int64_t step, float learning_rate, const T* gradient,
//              T* variable, absl::Span<T* const> slots) const;
//   // Returns the pass of a device that is equivalent to Apply().
//   template <typename T>
//   UpdatePass PassAt(int64_t step, float learning_rate) const;
template <typename Math>
class WholeRule final : public PlainRule {
 public:
  WholeRule(absl::string_view name, muster::LearningRate learning_rate,
            Math math)
      : name_(name),
        learning_rate_(std::move(learning_rate)),
        math_(std::move(math)),
        slots_(math_.slots()) {}

  absl::string_view name() const override { return name_; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }
  double LearningRate(int64_t step) const override {
    return learning_rate_.At(step);
  }
  bool needs_whole_variables() const override { return true; }
  std::shared_ptr<const UpdateRule> ForVariable(
      absl::string_view name, const Shape& shape) const override {
    Math bound = math_;
    bound.Bind(name, shape);
    return std::make_shared<WholeRule>(name_, learning_rate_, std::move(bound));
  }

  void AddPasses(int64_t step, DType dtype,
                 std::vector<UpdatePass>* passes) const override {
    const float rate = static_cast<float>(learning_rate_.At(step));
    passes->push_back(dtype == DType::kFloat64
                          ? math_.template PassAt<double>(step, rate)
                          : math_.template PassAt<float>(step, rate));
  }
  void Apply(int64_t step, int64_t, const float* gradient, float* variable,
             absl::Span<float* const> slots) const override {
    math_.template Apply<float>(step, learning_rate_.At(step), gradient,
                                variable, slots);
  }
  void Apply(int64_t step, int64_t, const double* gradient, double* variable,
             absl::Span<double* const> slots) const override {
    math_.template Apply<double>(step, learning_rate_.At(step), gradient,
                                 variable, slots);
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
  const absl::string_view name_;  // A literal.
  const muster::LearningRate learning_rate_;
  const Math math_;
  const std::vector<SlotSpec> slots_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_WHOLE_RULE_H_
