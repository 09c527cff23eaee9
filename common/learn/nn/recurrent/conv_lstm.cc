#include "common/learn/nn/recurrent/conv_lstm.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/convolve_3d.h"
#include "common/learn/nn/image_input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/masks.h"
#include "common/learn/nn/recurrent/carried_states.h"
#include "common/learn/nn/recurrent/cell_scan.h"
#include "common/learn/nn/recurrent/forget_bias.h"
#include "common/learn/nn/window.h"

namespace muster {
namespace {

constexpr int kGateCount = 4;

std::vector<int64_t> Extents(int64_t size) { return {size}; }
std::vector<int64_t> Extents(Size2D size) { return {size.height, size.width}; }
std::vector<int64_t> Extents(Size3D size) {
  return {size.depth, size.height, size.width};
}

int64_t Least(const std::vector<int64_t>& extents) {
  return *std::min_element(extents.begin(), extents.end());
}

Value Convolve(Value x, Value kernel, int64_t strides, Padding padding,
               int64_t dilations) {
  // A sequence is an image of height 1.
  return Squeeze(Conv2D(ExpandDims(x, 1), ExpandDims(kernel, 0),
                        {.strides = {1, strides},
                         .dilations = {1, dilations},
                         .padding = ToPadding2D(padding)}),
                 {1});
}

Value Convolve(Value x, Value kernel, Size2D strides, Padding padding,
               Size2D dilations) {
  return Conv2D(x, kernel,
                {.strides = strides.extents(),
                 .dilations = dilations.extents(),
                 .padding = ToPadding2D(padding)});
}

Value Convolve(Value x, Value kernel, Size3D strides, Padding padding,
               Size3D dilations) {
  return internal::Convolve3D(
      x, kernel,
      {.strides = strides, .dilations = dilations, .padding = padding});
}

// `x` without elements that dropout drops.
Value Drop(Value x, double rate, uint64_t seed) {
  const Value is_kept = DropoutMask(
      FoldInSeed(StepSeed(*x.builder()), static_cast<int64_t>(seed)), x,
      1 - rate);
  return Select(is_kept, x * (1 / (1 - rate)), ZerosLike(x));
}

// [batch, time, rest...] to [batch * time, rest...].
Value MergeTime(Value x) {
  std::vector<int64_t> dims = {-1};
  dims.insert(dims.end(), x.shape().dims().begin() + 2, x.shape().dims().end());
  return Reshape(x, dims);
}

}  // namespace

template <typename Size>
int ConvLSTMLayer<Size>::Rank() {
  return static_cast<int>(Extents(Size(1)).size());
}

template <typename Size>
void ConvLSTMLayer<Size>::VisitConfig(ConfigVisitor& visitor) {
  visitor.VisitPositive("filters", filters_);
  VisitSize(visitor, "kernel_size", kernel_size_);
  VisitSize(visitor, "strides", options_.strides);
  VisitPadding(visitor, options_.padding);
  VisitSize(visitor, "dilation_rate", options_.dilation_rate);
  visitor.Visit("activation", options_.activation);
  visitor.Visit("recurrent_activation", options_.recurrent_activation);
  visitor.Visit("use_bias", options_.use_bias);
  visitor.VisitWeight("kernel", options_.kernel_initializer,
                      options_.kernel_regularizer, options_.kernel_constraint);
  visitor.VisitWeight("recurrent", options_.recurrent_initializer,
                      options_.recurrent_regularizer,
                      options_.recurrent_constraint);
  visitor.VisitWeight("bias", options_.bias_initializer,
                      options_.bias_regularizer, options_.bias_constraint);
  visitor.Visit("unit_forget_bias", options_.unit_forget_bias);
  visitor.VisitRate("dropout", options_.dropout);
  visitor.VisitRate("recurrent_dropout", options_.recurrent_dropout);
  visitor.Visit("return_sequences", options_.return_sequences);
  visitor.Visit(
      Described("return_state",
                "The last states as further outputs, \"name:1\" and so on."),
      options_.return_state);
  visitor.Visit("go_backwards", options_.go_backwards);
  visitor.Visit(
      Described(
          "zero_output_for_mask",
          "The output of a masked time step is 0, not the previous output."),
      options_.zero_output_for_mask);
  visitor.Visit(Described("stateful",
                          "The states continue in the next batch. Needs "
                          "Input.batch_size and one replica."),
                options_.stateful);
  visitor.Visit("seed", options_.seed);
}

template <typename Size>
void ConvLSTMLayer<Size>::Build(const Shape& input) {
  const int64_t filters = std::max<int64_t>(filters_, 0);
  std::vector<int64_t> extents = Extents(kernel_size_);
  for (int64_t& extent : extents) extent = std::max<int64_t>(extent, 0);
  const auto shape = [&](int64_t channels) {
    std::vector<int64_t> dims = extents;
    dims.push_back(channels);
    dims.push_back(kGateCount * filters);
    return Shape(dims);
  };
  kernel_ =
      AddWeight("conv_lstm_cell/kernel", shape(internal::ChannelCount(input)),
                options_.kernel_initializer,
                {.regularizer = options_.kernel_regularizer,
                 .constraint = options_.kernel_constraint});
  recurrent_kernel_ = AddWeight("conv_lstm_cell/recurrent_kernel",
                                shape(filters), options_.recurrent_initializer,
                                {.regularizer = options_.recurrent_regularizer,
                                 .constraint = options_.recurrent_constraint});
  if (!options_.use_bias) return;
  bias_ =
      AddWeight("conv_lstm_cell/bias", {kGateCount * filters},
                options_.unit_forget_bias
                    ? internal::ForgetBias(options_.bias_initializer, filters)
                    : options_.bias_initializer,
                {.regularizer = options_.bias_regularizer,
                 .constraint = options_.bias_constraint});
}

template <typename Size>
void ConvLSTMLayer<Size>::BuildMany(absl::Span<const Shape> inputs) {
  const Shape& input = inputs.front();
  Build(input);
  if (!options_.stateful || !Mistake(input).empty()) return;
  Shape state(StateDims(input));
  state.InsertDim(0, input.dim(0));
  for (int i = 0; i < 2; ++i) {
    carried_.push_back(AddState(internal::CarriedStateName(i), state));
  }
}

template <typename Size>
std::string ConvLSTMLayer<Size>::Mistake(const Shape& input) const {
  const std::vector<int64_t> strides = Extents(options_.strides);
  const std::vector<int64_t> dilations = Extents(options_.dilation_rate);
  if (std::min({filters_, Least(Extents(kernel_size_)), Least(strides),
                Least(dilations)}) < 1) {
    return "expected filters, kernel_size, strides and dilation_rate of at "
           "least 1";
  }
  const auto is_rate = [](double rate) { return rate >= 0 && rate < 1; };
  if (!is_rate(options_.dropout) || !is_rate(options_.recurrent_dropout)) {
    return "dropout and recurrent_dropout must be in [0, 1)";
  }
  if (input.rank() != Rank() + 3) {
    return absl::StrCat("expected an input of rank ", Rank() + 3,
                        ", [batch, time, extents..., channels]");
  }
  if (options_.padding == Padding::kSame) return "";
  const std::vector<int64_t> kernel = Extents(kernel_size_);
  for (int axis = 0; axis < Rank(); ++axis) {
    const int64_t reach = (kernel[axis] - 1) * dilations[axis] + 1;
    if (input.dim(axis + 2) < reach) {
      return "expected an input that is as large as the kernel";
    }
  }
  return "";
}

template <typename Size>
std::vector<int64_t> ConvLSTMLayer<Size>::StateDims(const Shape& input) const {
  const std::vector<int64_t> kernel = Extents(kernel_size_);
  const std::vector<int64_t> strides = Extents(options_.strides);
  const std::vector<int64_t> dilations = Extents(options_.dilation_rate);
  std::vector<int64_t> dims;
  for (int axis = 0; axis < Rank(); ++axis) {
    const int64_t reach = options_.padding == Padding::kSame
                              ? 1
                              : (kernel[axis] - 1) * dilations[axis] + 1;
    dims.push_back((input.dim(axis + 2) - reach) / strides[axis] + 1);
  }
  dims.push_back(filters_);
  return dims;
}

template <typename Size>
Value ConvLSTMLayer<Size>::ConvolveGates(Value x, Value kernel, double rate,
                                         uint64_t draw, Size strides,
                                         Padding padding, Size dilations,
                                         const CallContext& context) const {
  if (!context.training || rate == 0) {
    return Convolve(x, kernel, strides, padding, dilations);
  }
  const uint64_t seed =
      FoldIn(options_.seed != 0 ? options_.seed : context.seed, path());
  const std::vector<Value> kernels =
      Split(kernel, std::vector<int64_t>(kGateCount, filters_), -1);
  std::vector<Value> gates;
  for (int i = 0; i < kGateCount; ++i) {
    const Value dropped = Drop(x, rate, FoldIn(seed, draw + i));
    gates.push_back(Convolve(dropped, kernels[i], strides, padding, dilations));
  }
  return Concat(gates, -1);
}

template <typename Size>
Value ConvLSTMLayer<Size>::Project(Value x, Value kernel,
                                   const CallContext& context) const {
  return ConvolveGates(x, kernel, options_.dropout, 0, options_.strides,
                       options_.padding, options_.dilation_rate, context);
}

template <typename Size>
Value ConvLSTMLayer<Size>::Recur(Value h, Value kernel,
                                 const CallContext& context) const {
  return ConvolveGates(h, kernel, options_.recurrent_dropout, kGateCount,
                       Size(1), Padding::kSame, Size(1), context);
}

template <typename Size>
std::vector<Value> ConvLSTMLayer<Size>::CallMany(absl::Span<const Value> inputs,
                                                 const CallContext& context) {
  const std::vector<Value> poisoned(output_count());
  if (const std::string mistake = Mistake(inputs[0].shape());
      !mistake.empty()) {
    inputs[0].builder()->ReportError(absl::InvalidArgumentError(
        absl::StrCat(kind(), "(", filters_, "): ", mistake, "; the input is ",
                     inputs[0].type().ToString())));
    return poisoned;
  }
  internal::CellSteps steps{
      .return_sequences = options_.return_sequences,
      .go_backwards = options_.go_backwards,
      .zero_output_for_mask = options_.zero_output_for_mask};
  if (!internal::ParseInputs(*this, inputs, 2, context, &steps)) {
    return poisoned;
  }
  if (!IsFloating(steps.x.dtype())) steps.x = Cast(steps.x, compute_dtype());

  const Shape input = steps.x.shape();
  const std::vector<int64_t> state = StateDims(input);
  const Value zeros =
      internal::ZeroStates(steps.x, Shape(state), steps.x.dtype());
  std::vector<Value> first = {zeros};
  if (steps.initial.empty()) {
    steps.initial.assign(carried_.begin(), carried_.end());
  }
  if (steps.initial.empty()) steps.initial = {zeros, zeros};
  first.insert(first.end(), steps.initial.begin(), steps.initial.end());

  const Value kernel = kernel_;
  const Value recurrent_kernel = recurrent_kernel_;
  // One convolution of all time steps is faster.
  const bool drops = context.training && options_.dropout > 0;
  const bool is_projected = !drops && input.dim(1) != Shape::kUnknown;
  Value x = steps.x;
  if (is_projected) {
    std::vector<int64_t> dims = {-1, input.dim(1)};
    dims.insert(dims.end(), state.begin(), state.end());
    dims.back() = kGateCount * filters_;
    x = Reshape(Project(MergeTime(x), kernel, context), dims);
  }
  const auto step = [&](Value row, absl::Span<const Value> states) {
    const Value projected = is_projected ? row : Project(row, kernel, context);
    Value gates = projected + Recur(states[0], recurrent_kernel, context);
    if (options_.use_bias) gates = gates + Value(bias_);
    const std::vector<Value> parts =
        Split(gates, std::vector<int64_t>(kGateCount, filters_), -1);
    const auto gate = [&](int i) {
      return Activate(options_.recurrent_activation, parts[i]);
    };
    const Value c =
        gate(1) * states[1] + gate(0) * Activate(options_.activation, parts[2]);
    const Value h = gate(3) * Activate(options_.activation, c);
    return std::vector<Value>{h, h, c};
  };
  const internal::CellOutputs outputs =
      internal::ScanSteps(x, first, steps, step);
  if (!outputs.last_output.ok()) return poisoned;
  internal::Carry(outputs.last, carried_);
  std::vector<Value> results = {
      options_.return_sequences ? outputs.outputs : outputs.last_output};
  if (options_.return_sequences) context.masks->Set(results[0], steps.mask);
  if (options_.return_state) {
    results.insert(results.end(), outputs.last.begin(), outputs.last.end());
  }
  return results;
}

template class ConvLSTMLayer<int64_t>;
template class ConvLSTMLayer<Size2D>;
template class ConvLSTMLayer<Size3D>;

LayerPtr ConvLSTM1D(int64_t filters, int64_t kernel_size,
                    const ConvLSTMOptions<int64_t>& options) {
  return std::make_shared<ConvLSTMLayer<int64_t>>(filters, kernel_size,
                                                  options);
}

LayerPtr ConvLSTM2D(int64_t filters, Size2D kernel_size,
                    const ConvLSTMOptions<Size2D>& options) {
  return std::make_shared<ConvLSTMLayer<Size2D>>(filters, kernel_size, options);
}

LayerPtr ConvLSTM3D(int64_t filters, Size3D kernel_size,
                    const ConvLSTMOptions<Size3D>& options) {
  return std::make_shared<ConvLSTMLayer<Size3D>>(filters, kernel_size, options);
}

}  // namespace muster
