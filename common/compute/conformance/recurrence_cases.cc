#include "common/compute/conformance/recurrence_cases.h"

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/conformance/case_types.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

Attributes RecurrenceAttributes(const std::string& cell, int64_t units,
                                const std::string& activation, bool has_scale,
                                bool has_mask) {
  return {{"cell", cell},
          {"units", units},
          {"activation", activation},
          {"recurrent_activation", std::string("sigmoid")},
          {"go_backwards", has_mask},
          {"zero_output_for_mask", has_mask && has_scale},
          {"keep_steps", true},
          {"has_scale", has_scale},
          {"has_mask", has_mask}};
}

void AddRecurrence(const std::string& cell, DType dtype, const Shape& outputs,
                   const Attributes& attributes, std::vector<OpCase>* cases) {
  const int64_t units = outputs.dim(2);
  const int64_t gates = cell == "simple_rnn" ? 1 : cell == "lstm" ? 4 : 3;
  const int64_t kept = cell == "gru_reset_after" ? 4 : gates;
  const auto sequence = [&](int64_t width) -> OpInput {
    return {dtype, {outputs.dim(0), outputs.dim(1), width * units}, -1, 1};
  };
  const OpInput state = {dtype, {outputs.dim(0), units}, -1, 1};
  const OpInput kernel = {dtype, {units, gates * units}, -0.2, 0.2};
  const std::vector<OpInput> states(cell == "lstm" ? 2 : 1, state);
  std::vector<OpInput> forward = {sequence(gates), kernel};
  std::vector<OpInput> backward = {sequence(1), kernel, state};
  forward.insert(forward.end(), states.begin(), states.end());
  backward.insert(backward.end(), states.begin(), states.end());
  backward.insert(backward.end(), states.size(), sequence(1));
  backward.push_back(sequence(kept));
  if (cell == "gru_reset_after") {
    forward.push_back({dtype, {gates * units}, -1, 1});
  }
  for (std::vector<OpInput>* const inputs : {&forward, &backward}) {
    if (attributes.GetOr("has_scale", false)) inputs->push_back(state);
    if (attributes.GetOr("has_mask", false)) {
      inputs->push_back({DType::kBool, {outputs.dim(0), outputs.dim(1)}});
    }
  }
  cases->push_back({"Recurrence", attributes, forward});
  cases->push_back({"RecurrenceGrad", attributes, backward});
}

}  // namespace

// The cases include batches that device kernels divide into blocks of 1, 2 and
// 4 rows, and states that do and do not fit into the memory of a block.
void AddRecurrenceCases(std::vector<OpCase>* cases) {
  for (const char* cell :
       {"simple_rnn", "lstm", "gru_reset_after", "gru_reset_before"}) {
    const auto add = [&](DType dtype, const Shape& outputs,
                         const std::string& activation, bool has_scale,
                         bool has_mask) {
      AddRecurrence(cell, dtype, outputs,
                    RecurrenceAttributes(cell, outputs.dim(2), activation,
                                         has_scale, has_mask),
                    cases);
    };
    for (const bool has_mask : {false, true}) {
      add(kF32, {5, 4, 3}, "tanh", false, has_mask);
      add(kF32, {33, 7, 40}, "tanh", true, has_mask);
    }
    add(kF32, {200, 2, 3}, "tanh", false, true);
    add(kF32, {300, 2, 3}, "tanh", true, false);
    add(kF32, {2, 2, 520}, "tanh", false, false);
    add(kF32, {2, 3, 17}, "gelu", false, true);
    add(kF32, {2, 3, 17}, "softmax", false, false);
    add(kF32, {0, 3, 4}, "tanh", false, false);
    add(kF32, {2, 0, 4}, "tanh", false, true);
    add(DType::kFloat64, {3, 2, 5}, "relu", true, true);
    add(DType::kBfloat16, {3, 2, 5}, "tanh", false, false);
    add(DType::kFloat16, {3, 2, 5}, "tanh", false, false);
  }
}

}  // namespace muster
