#include "common/learn/nn/recurrent/cell_scan.h"

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/check.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"
#include "common/learn/nn/recurrent/rnn_cell.h"

namespace muster::internal {
namespace {

// Swaps batch and time.
Value SwapLeading(Value x) {
  std::vector<int64_t> axes(x.shape().rank());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[0], axes[1]);
  return Transpose(x, axes);
}

// `kept` where the time step of an example, `is_step` [batch], is masked.
Value Masked(Value is_step, Value value, Value kept) {
  while (is_step.shape().rank() < value.shape().rank()) {
    is_step = ExpandDims(is_step, -1);
  }
  return Select(is_step, value, kept);
}

// `results` of a step, or what `carry` has where the step is masked.
void MaskStep(Value is_step, bool zero_output, const std::vector<Value>& carry,
              std::vector<Value>* results) {
  for (size_t i = 0; i < results->size(); ++i) {
    const bool is_zero = i == 0 && zero_output;
    (*results)[i] = Masked(is_step, (*results)[i],
                           is_zero ? ZerosLike(carry[i]) : carry[i]);
  }
}

}  // namespace

bool ParseInputs(const Layer& layer, absl::Span<const Value> inputs,
                 int state_count, const CallContext& context,
                 CellSteps* steps) {
  const Value x = inputs[0];
  const auto refuse = [&](absl::string_view why) {
    x.builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat(layer.kind(), " ", layer.name(), ": ", why,
                     "; the input is ", x.type().ToString())));
    return false;
  };
  bool is_known = x.shape().rank() >= 3;
  for (int axis = 2; is_known && axis < x.shape().rank(); ++axis) {
    is_known = x.shape().dim(axis) != Shape::kUnknown;
  }
  if (!is_known || x.shape().dim(1) == 0) {
    return refuse(
        "expected [batch, time, ...] with at least one time step and known "
        "extents but the batch's and the time's");
  }
  steps->x = x;
  inputs.remove_prefix(1);
  if (!inputs.empty() && inputs.back().dtype() == DType::kBool) {
    steps->mask = inputs.back();
    inputs.remove_suffix(1);
    if (steps->mask.shape().rank() != 2) {
      return refuse("expected a mask [batch, time]");
    }
  } else {
    steps->mask = context.masks->Find(x);
  }
  steps->initial.assign(inputs.begin(), inputs.end());
  if (inputs.empty() || static_cast<int>(inputs.size()) == state_count) {
    return true;
  }
  return refuse(absl::StrCat("expected ", state_count,
                             " initial states or none, got ", inputs.size()));
}

Value ZeroStates(Value x, const Shape& shape, DType dtype) {
  const std::vector<int64_t> begin(x.shape().rank(), 0);
  std::vector<int64_t> size(x.shape().rank(), 1);
  size[0] = -1;
  std::vector<int64_t> column(shape.rank() + 1, 1);
  column[0] = -1;
  std::vector<int64_t> one = {1};
  one.insert(one.end(), shape.dims().begin(), shape.dims().end());
  const Value zeros = ZerosLike(Reshape(Slice(x, begin, size), column));
  return Cast(zeros, dtype) +
         Cast(x.builder()->Constant(Tensor::Zeros(DType::kFloat32, Shape(one))),
              dtype);
}

CellOutputs ScanSteps(Value x, const std::vector<Value>& first,
                      const CellSteps& steps, StepFunction step) {
  // Rows are x, and the mask if there is one.
  std::vector<Value> rows = {SwapLeading(x)};
  if (steps.mask.ok()) rows.push_back(SwapLeading(steps.mask));
  const auto body = [&](const ScanStep& now) {
    std::vector<Value> results =
        step(now.rows[0], absl::MakeConstSpan(now.carry).subspan(1));
    results.resize(now.carry.size());
    if (now.rows.size() > 1) {
      MaskStep(now.rows[1], steps.zero_output_for_mask, now.carry, &results);
    }
    ScanStep next{.carry = results};
    if (steps.return_sequences) next.rows = {results[0]};
    return next;
  };
  const ScanStep last =
      Scan(first, rows, body, {.reverse = steps.go_backwards});
  if (last.carry.empty()) return {};
  CellOutputs outputs{.last_output = last.carry[0],
                      .last = {last.carry.begin() + 1, last.carry.end()}};
  if (steps.return_sequences && outputs.last_output.ok()) {
    outputs.outputs = SwapLeading(last.rows[0]);
    if (steps.go_backwards) outputs.outputs = Reverse(outputs.outputs, {1});
  }
  return outputs;
}

CellOutputs ScanCell(Layer& cell, const CellSteps& steps,
                     const CallContext& context) {
  const auto* const recurrent = dynamic_cast<const RNNCell*>(&cell);
  MUSTER_CHECK(recurrent != nullptr);
  std::vector<int64_t> dims(steps.x.shape().dims().begin(),
                            steps.x.shape().dims().end());
  dims.erase(dims.begin() + 1);
  const Shape step_shape(dims);
  const DType dtype = cell.dtype_policy().compute;
  std::vector<Value> carry = {
      ZeroStates(steps.x, recurrent->OutputShape(step_shape), dtype)};
  if (steps.initial.empty()) {
    for (const Shape& shape : recurrent->StateShapes(step_shape)) {
      carry.push_back(ZeroStates(steps.x, shape, dtype));
    }
  } else {
    carry.insert(carry.end(), steps.initial.begin(), steps.initial.end());
  }
  CallContext inner = context;
  // They would be values of the loop's graph.
  inner.losses = nullptr;
  return ScanSteps(steps.x, carry, steps,
                   [&](Value x, absl::Span<const Value> states) {
                     std::vector<Value> inputs = {x};
                     inputs.insert(inputs.end(), states.begin(), states.end());
                     return cell.CallAll(inputs, inner);
                   });
}

}  // namespace muster::internal
