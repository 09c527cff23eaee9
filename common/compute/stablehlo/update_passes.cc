#include "common/compute/stablehlo/update_passes.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/functions/update.h"
#include "common/compute/stablehlo/hlo_operators.h"
#include "common/core/base/check.h"

namespace muster {
namespace {

// Applies the function of `pass`, whose coefficients are `c`, to all elements.
using ApplyFunction = HloValue (*)(const UpdatePass& pass, const HloValue* c,
                                   const HloValue& g, const HloValue& w,
                                   HloValue* slots);

// The coefficients of the pass as a rule on the host has them.
template <typename Coefficients>
Coefficients Given(const UpdatePass& pass) {
  Coefficients coefficients;
  std::memcpy(&coefficients, pass.coefficients, sizeof(coefficients));
  return coefficients;
}

template <bool kMomentum>
HloValue ApplySgd(const UpdatePass& pass, const HloValue* c, const HloValue& g,
                  const HloValue& w, HloValue* slots) {
  const bool nesterov = Given<SgdCoefficients<float>>(pass).nesterov;
  return SgdUpdate<kMomentum>::template Apply<HloValue>(
      {c[0], c[1], c[2], nesterov}, g, w, slots);
}

HloValue ApplyAdam(const UpdatePass&, const HloValue* c, const HloValue& g,
                   const HloValue& w, HloValue* slots) {
  return AdamUpdate<false>::Apply<HloValue>(
      {c[0], c[1], c[2], c[3], c[4], c[5], false}, g, w, slots);
}

template <bool kCentered, bool kMomentum>
HloValue ApplyRmsProp(const UpdatePass&, const HloValue* c, const HloValue& g,
                      const HloValue& w, HloValue* slots) {
  return RmsPropUpdate<kCentered, kMomentum>::template Apply<HloValue>(
      {c[0], c[1], c[2], c[3], c[4], c[5], kCentered}, g, w, slots);
}

HloValue ApplyAdagrad(const UpdatePass&, const HloValue* c, const HloValue& g,
                      const HloValue& w, HloValue* slots) {
  return AdagradUpdate::Apply<HloValue>({c[0], c[1], c[2]}, g, w, slots);
}

HloValue ApplyAdadelta(const UpdatePass&, const HloValue* c, const HloValue& g,
                       const HloValue& w, HloValue* slots) {
  return AdadeltaUpdate::Apply<HloValue>({c[0], c[1], c[2], c[3], c[4]}, g, w,
                                         slots);
}

HloValue ApplyAccumulate(const UpdatePass&, const HloValue*, const HloValue& g,
                         const HloValue& w, HloValue* slots) {
  return AccumulateUpdate::Apply<HloValue>({}, g, w, slots);
}

HloValue ApplyAverage(const UpdatePass& pass, const HloValue* c,
                      const HloValue& g, const HloValue& w, HloValue* slots) {
  const bool overwrites = Given<AverageCoefficients<float>>(pass).overwrites;
  return AverageUpdate::Apply<HloValue>({c[0], c[1], overwrites}, g, w, slots);
}

struct PassFunction {
  absl::string_view name;
  // The numbers with which the coefficients of the function begin.
  int coefficient_count = 0;
  int slot_count = 0;
  ApplyFunction apply = nullptr;
  // The offset of a flag of the coefficients on which the program depends.
  size_t flag_offset = 0;
};

constexpr PassFunction kFunctions[] = {
    {"sgd", 3, 0, ApplySgd<false>, offsetof(SgdCoefficients<float>, nesterov)},
    {"sgd_momentum", 3, 1, ApplySgd<true>,
     offsetof(SgdCoefficients<float>, nesterov)},
    {"adam", 6, 2, ApplyAdam},
    {"rmsprop", 6, 1, ApplyRmsProp<false, false>},
    {"rmsprop_momentum", 6, 2, ApplyRmsProp<false, true>},
    {"rmsprop_centered", 6, 2, ApplyRmsProp<true, false>},
    {"rmsprop_centered_momentum", 6, 3, ApplyRmsProp<true, true>},
    {"adagrad", 3, 1, ApplyAdagrad},
    {"adadelta", 5, 2, ApplyAdadelta},
    {"accumulate", 0, 0, ApplyAccumulate},
    {"average", 2, 1, ApplyAverage,
     offsetof(AverageCoefficients<float>, overwrites)}};

const PassFunction* FindFunction(absl::string_view name) {
  for (const PassFunction& function : kFunctions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

// Returns `value` in the rows that change, and `old` in the others.
HloValue InRows(const HloValue& rows, const HloValue& value,
                const HloValue& old) {
  return rows.builder == nullptr ? value : Select(rows, value, old);
}

}  // namespace

absl::Status CheckPasses(absl::Span<const UpdatePass> passes) {
  for (const UpdatePass& pass : passes) {
    if (FindFunction(pass.function) != nullptr) continue;
    return absl::UnimplementedError(absl::StrCat(
        "the update \"", pass.function,
        "\" has no translation to StableHLO; use SGD, Adam, RMSprop, Adagrad "
        "or Adadelta"));
  }
  return absl::OkStatus();
}

std::vector<float> PassCoefficients(absl::Span<const UpdatePass> passes) {
  std::vector<float> all;
  for (const UpdatePass& pass : passes) {
    const PassFunction* const function = FindFunction(pass.function);
    MUSTER_CHECK(function != nullptr);
    const size_t first = all.size();
    all.resize(first + function->coefficient_count);
    if (all.size() == first) continue;
    std::memcpy(all.data() + first, pass.coefficients,
                function->coefficient_count * sizeof(float));
  }
  return all;
}

std::string PassStructure(absl::Span<const UpdatePass> passes) {
  std::string text;
  for (const UpdatePass& pass : passes) {
    const PassFunction* const function = FindFunction(pass.function);
    MUSTER_CHECK(function != nullptr);
    const int flag = function->flag_offset == 0
                         ? 0
                         : pass.coefficients[function->flag_offset];
    absl::StrAppend(&text, pass.function, "/", static_cast<int>(pass.operand),
                    "/", pass.target_slot, "/", pass.first_slot, "/", flag,
                    " ");
  }
  return text;
}

void ApplyPasses(const VariablePasses& rule, const HloValues& coefficients,
                 const HloGradient& gradient, HloVariableState* state) {
  const HloValue* c = coefficients.data();
  for (const UpdatePass& pass : rule.passes) {
    const PassFunction* const function = FindFunction(pass.function);
    MUSTER_CHECK(function != nullptr);
    const bool takes_gradient = pass.operand == UpdateOperand::kGradient;
    const HloValue rows = takes_gradient ? gradient.rows : HloValue();
    HloValue g = gradient.value;
    if (pass.operand == UpdateOperand::kMean) {
      HloValue& sum = state->slots[rule.accumulator_slot];
      g = sum / static_cast<double>(rule.gradients_per_update);
      sum = FilledLike(sum, 0);
    }
    HloValue& target =
        pass.target_slot < 0 ? state->value : state->slots[pass.target_slot];
    HloValues slots(
        state->slots.begin() + pass.first_slot,
        state->slots.begin() + pass.first_slot + function->slot_count);
    const HloValue changed = function->apply(pass, c, g, target, slots.data());
    target = InRows(rows, changed, target);
    for (int i = 0; i < function->slot_count; ++i) {
      HloValue& slot = state->slots[pass.first_slot + i];
      slot = InRows(rows, slots[i], slot);
    }
    c += function->coefficient_count;
  }
}

}  // namespace muster
