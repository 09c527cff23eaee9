#ifndef COMMON_COMPUTE_OPTIMIZERS_FUSED_RULE_H_
#define COMMON_COMPUTE_OPTIMIZERS_FUSED_RULE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/functions/update.h"
#include "common/compute/optimizers/learning_rate.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/tensor/dtype.h"

namespace muster {

// The arrays of one pass. All have `count` elements.
template <typename T>
struct UpdateArrays {
  int64_t count;
  const T* gradient;
  T* variable;
  T* const* slots;
};

// Applies `Function`, one of common/compute/functions/update.h, to each
// element. Inlined always: see MUSTER_MULTIVERSION.
template <typename Function, typename T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void UpdateEach(
    const typename Function::template Coefficients<T>& coefficients,
    const UpdateArrays<T>& arrays) {
  constexpr int kSlotCount = Function::kSlotCount;
  static_assert(kSlotCount <= 3);
  const auto c = coefficients;
  // Separate variables, not an array, so that the compiler can assume that they
  // do not overlap.
  const T* __restrict gradient = arrays.gradient;
  T* __restrict variable = arrays.variable;
  T* __restrict slot_0 = kSlotCount > 0 ? arrays.slots[0] : nullptr;
  T* __restrict slot_1 = kSlotCount > 1 ? arrays.slots[1] : nullptr;
  T* __restrict slot_2 = kSlotCount > 2 ? arrays.slots[2] : nullptr;
  for (int64_t i = 0; i < arrays.count; ++i) {
    T slots[3];
    if constexpr (kSlotCount > 0) slots[0] = slot_0[i];
    if constexpr (kSlotCount > 1) slots[1] = slot_1[i];
    if constexpr (kSlotCount > 2) slots[2] = slot_2[i];
    variable[i] =
        Function::template Apply<T>(c, gradient[i], variable[i], slots);
    if constexpr (kSlotCount > 0) slot_0[i] = slots[0];
    if constexpr (kSlotCount > 1) slot_1[i] = slots[1];
    if constexpr (kSlotCount > 2) slot_2[i] = slots[2];
  }
}

// Implements UpdateRule for the arithmetic in `Math`:
//
//   // Returns UpdatePass::function.
//   absl::string_view function() const;
//   // Returns the coefficients of all elements. T is float or double.
//   template <typename T>
//   Coefficients<T> At(int64_t step, float learning_rate) const;
//   template <typename T>
//   static void Apply(const Coefficients<T>&, const UpdateArrays<T>&);
template <typename Math>
class FusedRule final : public PlainRule {
 public:
  FusedRule(absl::string_view name, muster::LearningRate learning_rate,
            std::vector<SlotSpec> slots, Math math)
      : name_(name),
        learning_rate_(std::move(learning_rate)),
        slots_(std::move(slots)),
        math_(std::move(math)) {}

  absl::string_view name() const override { return name_; }
  absl::Span<const SlotSpec> slots() const override { return slots_; }
  double LearningRate(int64_t step) const override {
    return learning_rate_.At(step);
  }
  bool needs_whole_variables() const override { return false; }
  std::shared_ptr<const UpdateRule> ForVariable(absl::string_view,
                                                const Shape&) const override {
    return nullptr;
  }
  void AddPasses(int64_t step, DType dtype,
                 std::vector<UpdatePass>* passes) const override {
    UpdatePass& pass = passes->emplace_back();
    pass.function = math_.function();
    const float rate = learning_rate_.At(step);
    if (dtype == DType::kFloat64) {
      pass.SetCoefficients(math_.template At<double>(step, rate));
    } else {
      pass.SetCoefficients(math_.template At<float>(step, rate));
    }
  }

  void Apply(int64_t step, int64_t count, const float* gradient,
             float* variable, absl::Span<float* const> slots) const override {
    ApplyAll<float>(step, {count, gradient, variable, slots.data()});
  }
  void Apply(int64_t step, int64_t count, const double* gradient,
             double* variable, absl::Span<double* const> slots) const override {
    ApplyAll<double>(step, {count, gradient, variable, slots.data()});
  }
  void ApplyRows(int64_t step, int64_t row_elements,
                 absl::Span<const int64_t> rows, const float* gradients,
                 float* variable,
                 absl::Span<float* const> slots) const override {
    ApplyEach<float>(step, row_elements, rows, gradients, variable, slots);
  }
  void ApplyRows(int64_t step, int64_t row_elements,
                 absl::Span<const int64_t> rows, const double* gradients,
                 double* variable,
                 absl::Span<double* const> slots) const override {
    ApplyEach<double>(step, row_elements, rows, gradients, variable, slots);
  }

 private:
  template <typename T>
  void ApplyAll(int64_t step, const UpdateArrays<T>& arrays) const {
    Math::Apply(math_.template At<T>(step, learning_rate_.At(step)), arrays);
  }

  template <typename T>
  void ApplyEach(int64_t step, int64_t row_elements,
                 absl::Span<const int64_t> rows, const T* gradients,
                 T* variable, absl::Span<T* const> slots) const {
    const auto coefficients =
        math_.template At<T>(step, learning_rate_.At(step));
    // The table is much larger than the caches and the rows are scattered, so
    // the loop prefetches the next rows while it computes this one.
    constexpr size_t kRowsAhead = 4;
    const auto prefetch = [row_elements](const T* row) {
      constexpr int64_t kElementsPerLine = 64 / sizeof(T);
      constexpr int64_t kLinesMax = 8;
      const int64_t end = std::min(row_elements, kLinesMax * kElementsPerLine);
      for (int64_t i = 0; i < end; i += kElementsPerLine) {
        __builtin_prefetch(row + i, 1);
      }
    };
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i + kRowsAhead < rows.size()) {
        const int64_t ahead = rows[i + kRowsAhead] * row_elements;
        prefetch(variable + ahead);
        for (T* const slot : slots) prefetch(slot + ahead);
      }
      const int64_t offset = rows[i] * row_elements;
      T* row_slots[kSlotCountMax] = {};
      for (size_t s = 0; s < slots.size(); ++s) {
        row_slots[s] = slots[s] + offset;
      }
      Math::Apply(coefficients,
                  UpdateArrays<T>{row_elements, gradients + i * row_elements,
                                  variable + offset, row_slots});
    }
  }

  const absl::string_view name_;  // A literal.
  const muster::LearningRate learning_rate_;
  const std::vector<SlotSpec> slots_;
  const Math math_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_OPTIMIZERS_FUSED_RULE_H_
