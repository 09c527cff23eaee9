#include "common/compute/ops/recurrence_ops.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/control.h"
#include "common/compute/ops/matmul.h"
#include "common/compute/ops/reduction.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/shape_ops.h"
#include "common/compute/ops/slice_ops.h"
#include "common/compute/ops/type_rules.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/recurrence_options.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypesOr;

// Extents that the inputs share. Only `units` is always known.
struct Extents {
  int64_t batch = Shape::kUnknown;
  int64_t time = Shape::kUnknown;
  int64_t units = 0;
};

absl::Status CheckInputCount(const TypeRuleArguments& arguments, int wanted) {
  const int count = static_cast<int>(arguments.inputs.size());
  if (count == wanted) return absl::OkStatus();
  return internal::TypeError("takes ", wanted,
                             " inputs with these attributes, not ", count);
}

absl::Status MergeInto(int64_t extent, int64_t* known) {
  ASSIGN_OR_RETURN(*known, internal::MergeExtents(*known, extent));
  return absl::OkStatus();
}

// Checks inputs one after another against the extents known so far.
class InputChecker {
 public:
  InputChecker(const TypeRuleArguments& arguments, int64_t units)
      : arguments_(arguments), extents_{.units = units} {}

  // [batch, time, width units]
  absl::Status Sequence(int64_t width) {
    RETURN_IF_ERROR(internal::ExpectRank(arguments_, next_, 3, 3));
    const Shape& shape = arguments_.inputs[next_].shape;
    RETURN_IF_ERROR(MergeInto(shape.dim(0), &extents_.batch));
    RETURN_IF_ERROR(MergeInto(shape.dim(1), &extents_.time));
    return Units(shape.dim(2), width);
  }
  // [batch, units]
  absl::Status State() {
    RETURN_IF_ERROR(internal::ExpectRank(arguments_, next_, 2, 2));
    const Shape& shape = arguments_.inputs[next_].shape;
    RETURN_IF_ERROR(MergeInto(shape.dim(0), &extents_.batch));
    return Units(shape.dim(1), 1);
  }
  // [units, width units]
  absl::Status Kernel(int64_t width) {
    RETURN_IF_ERROR(internal::ExpectRank(arguments_, next_, 2, 2));
    const Shape& shape = arguments_.inputs[next_].shape;
    RETURN_IF_ERROR(
        internal::MergeExtents(shape.dim(0), extents_.units).status());
    return Units(shape.dim(1), width);
  }
  // [width units]
  absl::Status Bias(int64_t width) {
    RETURN_IF_ERROR(internal::ExpectRank(arguments_, next_, 1, 1));
    return Units(arguments_.inputs[next_].shape.dim(0), width);
  }
  // bool [batch, time]
  absl::Status Mask() {
    RETURN_IF_ERROR(
        internal::ExpectClass(arguments_, DTypeClass::kBool, next_, next_ + 1));
    RETURN_IF_ERROR(internal::ExpectRank(arguments_, next_, 2, 2));
    const Shape& shape = arguments_.inputs[next_].shape;
    RETURN_IF_ERROR(MergeInto(shape.dim(0), &extents_.batch));
    return MergeInto(shape.dim(1), &extents_.time);
  }

  const Extents& extents() const { return extents_; }

 private:
  absl::Status Units(int64_t extent, int64_t width) {
    const int input = next_++;
    const int64_t wanted = width * extents_.units;
    if (extent == Shape::kUnknown || extent == wanted) return absl::OkStatus();
    return internal::TypeError("the last axis of input ", input, " must have ",
                               wanted, " elements, not ", extent);
  }

  const TypeRuleArguments& arguments_;
  int next_ = 0;
  Extents extents_;
};

// Returns the type of [batch, time, width units].
TensorType SequenceType(DType dtype, const Extents& extents, int64_t width) {
  return {dtype, {extents.batch, extents.time, extents.units * width}};
}
// Returns the type of [batch, units].
TensorType StateType(DType dtype, const Extents& extents) {
  return {dtype, {extents.batch, extents.units}};
}

// Rejects shapes with too many elements.
TypesOr Checked(std::vector<TensorType> types) {
  for (const TensorType& type : types) {
    RETURN_IF_ERROR(internal::OneOutput(type.dtype, type.shape).status());
  }
  return types;
}

absl::Status CheckDTypes(const TypeRuleArguments& arguments,
                         const RecurrenceOptions& options) {
  const int count = static_cast<int>(arguments.inputs.size());
  return internal::ExpectSameClass(arguments, DTypeClass::kFloating, 0,
                                   options.has_mask ? count - 1 : count);
}

// Recurrence(projected, kernel, states..., [recurrent_bias], [scale], [mask])
//   -> outputs, last output, last states..., and with keep_steps the states
//      before each step and the kept values of each step.
TypesOr ForwardRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const RecurrenceOptions options,
                   ReadRecurrenceOptions(arguments.attributes));
  RETURN_IF_ERROR(CheckInputCount(arguments, options.forward_input_count()));
  RETURN_IF_ERROR(CheckDTypes(arguments, options));
  InputChecker inputs(arguments, options.units);
  RETURN_IF_ERROR(inputs.Sequence(options.gate_count()));
  RETURN_IF_ERROR(inputs.Kernel(options.gate_count()));
  for (int s = 0; s < options.state_count(); ++s) {
    RETURN_IF_ERROR(inputs.State());
  }
  if (options.has_recurrent_bias()) {
    RETURN_IF_ERROR(inputs.Bias(options.gate_count()));
  }
  if (options.has_scale) RETURN_IF_ERROR(inputs.State());
  if (options.has_mask) RETURN_IF_ERROR(inputs.Mask());

  const DType dtype = arguments.inputs[0].dtype;
  const Extents& extents = inputs.extents();
  std::vector<TensorType> types = {SequenceType(dtype, extents, 1)};
  types.resize(2 + options.state_count(), StateType(dtype, extents));
  if (options.keep_steps) {
    types.resize(types.size() + options.state_count(), types[0]);
    types.push_back(SequenceType(dtype, extents, options.kept_count()));
  }
  return Checked(std::move(types));
}

// RecurrenceGrad(gradient of outputs, kernel, gradients of the last output and
//                of the last states..., states before each step..., kept,
//                [scale], [mask])
//   -> the gradients of projected, [of the product], of the initial states...,
//      [of scale]
TypesOr BackwardRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const RecurrenceOptions options,
                   ReadRecurrenceOptions(arguments.attributes));
  RETURN_IF_ERROR(CheckInputCount(arguments, options.backward_input_count()));
  RETURN_IF_ERROR(CheckDTypes(arguments, options));
  InputChecker inputs(arguments, options.units);
  RETURN_IF_ERROR(inputs.Sequence(1));
  RETURN_IF_ERROR(inputs.Kernel(options.gate_count()));
  RETURN_IF_ERROR(inputs.State());
  for (int s = 0; s < options.state_count(); ++s) {
    RETURN_IF_ERROR(inputs.State());
  }
  for (int s = 0; s < options.state_count(); ++s) {
    RETURN_IF_ERROR(inputs.Sequence(1));
  }
  RETURN_IF_ERROR(inputs.Sequence(options.kept_count()));
  if (options.has_scale) RETURN_IF_ERROR(inputs.State());
  if (options.has_mask) RETURN_IF_ERROR(inputs.Mask());

  const DType dtype = arguments.inputs[0].dtype;
  const Extents& extents = inputs.extents();
  std::vector<TensorType> types = {
      SequenceType(dtype, extents, options.gate_count())};
  if (options.product_count() > 0) {
    types.push_back(SequenceType(dtype, extents, options.product_count()));
  }
  types.resize(types.size() + options.state_count() + options.has_scale,
               StateType(dtype, extents));
  return Checked(std::move(types));
}

// Returns [n, width] of [batch, time, width].
Value AsRows(Value sequence) {
  return Reshape(sequence, {-1, sequence.shape().dim(2)});
}

// Returns the gradient of the kernel by which `x` was multiplied at each step.
Value KernelGradient(Value x, Value gradient) {
  return MatMul(AsRows(x), AsRows(gradient), {.transpose_a = true});
}

// The inputs and outputs of a Recurrence node by name.
class ForwardNode {
 public:
  ForwardNode(const RecurrenceOptions& options,
              const std::vector<Value>& inputs,
              const std::vector<Value>& outputs)
      : options_(options), inputs_(inputs), outputs_(outputs) {}

  int bias_index() const { return 2 + options_.state_count(); }
  int scale_index() const {
    return bias_index() + options_.has_recurrent_bias();
  }
  Value kernel() const { return inputs_[1]; }
  Value scale() const { return inputs_[scale_index()]; }
  Value mask() const { return inputs_.back(); }
  // State 0 or 1 before each step.
  Value before(int state) const {
    return outputs_[2 + options_.state_count() + state];
  }
  Value kept() const { return outputs_.back(); }
  // The previous output of each step, as the products with the kernel use it.
  Value scaled_outputs() const {
    return options_.has_scale ? before(0) * ExpandDims(scale(), 1) : before(0);
  }

 private:
  const RecurrenceOptions& options_;
  const std::vector<Value>& inputs_;
  const std::vector<Value>& outputs_;
};

// Returns the outputs of the node, with the values that its gradient needs.
std::vector<Value> RecurrenceOutputsWithSteps(
    const GradientContext& context, const RecurrenceOptions& options) {
  if (options.keep_steps) return context.outputs;
  Attributes attributes = context.node.attributes;
  attributes.Set("keep_steps", true);
  return internal::ApplyWithOutputs("Recurrence", context.inputs,
                                    std::move(attributes),
                                    3 + 2 * options.state_count());
}

std::vector<Value> BackwardInputs(const GradientContext& context,
                                  const RecurrenceOptions& options,
                                  const ForwardNode& node) {
  const auto gradient_of = [&](int output) {
    const Value gradient = context.output_gradients[output];
    return gradient.ok() ? gradient : ZerosLike(context.outputs[output]);
  };
  std::vector<Value> inputs = {gradient_of(0), node.kernel(), gradient_of(1)};
  for (int s = 0; s < options.state_count(); ++s) {
    inputs.push_back(gradient_of(2 + s));
  }
  for (int s = 0; s < options.state_count(); ++s) {
    inputs.push_back(node.before(s));
  }
  inputs.push_back(node.kept());
  if (options.has_scale) inputs.push_back(node.scale());
  if (options.has_mask) inputs.push_back(node.mask());
  return inputs;
}

void RecurrenceGradient(GradientContext& context) {
  const auto read = ReadRecurrenceOptions(context.node.attributes);
  if (!read.ok()) return context.builder.ReportError(read.status());
  const RecurrenceOptions& options = *read;
  for (size_t i = 2 + options.state_count(); i < context.outputs.size(); ++i) {
    if (!context.output_gradients[i].ok()) continue;
    return context.builder.ReportError(absl::UnimplementedError(
        "the values that a recurrence keeps for its gradient cannot be "
        "differentiated"));
  }
  const std::vector<Value> outputs =
      RecurrenceOutputsWithSteps(context, options);
  const ForwardNode node(options, context.inputs, outputs);
  const int state_count = options.state_count();
  const bool has_product = options.product_count() > 0;
  const std::vector<Value> gradients = internal::ApplyWithOutputs(
      "RecurrenceGrad", BackwardInputs(context, options, node),
      context.node.attributes,
      1 + has_product + state_count + options.has_scale);
  if (!gradients[0].ok()) return;
  const Value projected = gradients[0];
  context.input_gradients[0] = projected;
  const Value h = node.scaled_outputs();
  Value& kernel = context.input_gradients[1];
  switch (options.cell) {
    case RecurrentCell::kSimpleRnn:
    case RecurrentCell::kLstm:
      kernel = KernelGradient(h, projected);
      break;
    case RecurrentCell::kGruResetAfter:
      kernel = KernelGradient(h, gradients[1]);
      context.input_gradients[node.bias_index()] = Sum(gradients[1], {0, 1});
      break;
    case RecurrentCell::kGruResetBefore: {
      const std::vector<Value> parts =
          Split(projected, {2 * options.units, options.units}, 2);
      kernel = Concat(
          {KernelGradient(h, parts[0]), KernelGradient(gradients[1], parts[1])},
          1);
      break;
    }
  }
  for (int s = 0; s < state_count; ++s) {
    context.input_gradients[2 + s] = gradients[1 + has_product + s];
  }
  if (options.has_scale) {
    context.input_gradients[node.scale_index()] = gradients.back();
  }
}

}  // namespace

RecurrenceOutputs Recurrence(const RecurrenceArguments& arguments) {
  std::vector<Value> inputs = {arguments.projected, arguments.kernel};
  inputs.insert(inputs.end(), arguments.initial.begin(),
                arguments.initial.end());
  for (const Value& optional :
       {arguments.recurrent_bias, arguments.scale, arguments.mask}) {
    if (optional.ok()) inputs.push_back(optional);
  }
  const int state_count = static_cast<int>(arguments.initial.size());
  const std::vector<Value> outputs = internal::ApplyWithOutputs(
      "Recurrence", inputs,
      {{"cell", arguments.cell},
       {"units", arguments.units},
       {"activation", arguments.activation},
       {"recurrent_activation", arguments.recurrent_activation},
       {"go_backwards", arguments.go_backwards},
       {"zero_output_for_mask", arguments.zero_output_for_mask},
       {"keep_steps", arguments.keep_steps},
       {"has_scale", arguments.scale.ok()},
       {"has_mask", arguments.mask.ok()}},
      2 + state_count + (arguments.keep_steps ? state_count + 1 : 0));
  return {outputs[0],
          outputs[1],
          {outputs.begin() + 2, outputs.begin() + 2 + state_count}};
}

namespace internal {

void RegisterRecurrenceOps(OpRegistry* registry) {
  registry->Register({.name = "Recurrence",
                      .input_count_min = 3,
                      .input_count_max = 6,
                      .type_rule = ForwardRule,
                      .gradient_rule = RecurrenceGradient,
                      .golden_exemption = GoldenExemption::kLayer});
  registry->Register({.name = "RecurrenceGrad",
                      .input_count_min = 6,
                      .input_count_max = 10,
                      .type_rule = BackwardRule,
                      .gradient_refusal = "the gradient of a recurrence "
                                          "cannot be differentiated again",
                      .golden_exemption = GoldenExemption::kGradientHelper});
}

}  // namespace internal
}  // namespace muster
