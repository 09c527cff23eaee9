#include "common/learn/nn/layers/convolution.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/activations.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image_input.h"
#include "common/learn/nn/layer.h"

namespace muster {
namespace {

using internal::AtLeastZero;
using internal::Divides;

std::string Expectation(int64_t filters, int64_t groups, int64_t channels) {
  return absl::StrCat(
      "expected filters, kernel_size, strides and dilation_rate of at least 1, "
      "and groups that divide filters and channels; there are ",
      filters, " filters, ", groups, " groups and ", channels, " channels");
}

void VisitPadding(ConfigVisitor& visitor, SequencePadding& padding) {
  enum class Choice { kValid, kSame, kCausal };
  static constexpr absl::string_view kNames[] = {"valid", "same", "causal"};
  Choice choice = Choice::kValid;
  if (padding.is_causal()) choice = Choice::kCausal;
  if (padding.padding() == Padding::kSame) choice = Choice::kSame;
  visitor.Visit(Described("padding",
                          "CAUSAL: zeros before the sequence only, so that no "
                          "step reads later ones."),
                choice, kNames);
  padding = choice == Choice::kSame ? Padding::kSame : Padding::kValid;
  if (choice == Choice::kCausal) padding = SequencePadding::Causal();
}

// Conv1D and Conv2D differ only in the number of spatial axes.
template <typename Size, typename Options>
void VisitConvolution(ConfigVisitor& visitor, int64_t& filters,
                      Size& kernel_size, Options& options) {
  visitor.VisitPositive("filters", filters);
  VisitSize(visitor, "kernel_size", kernel_size);
  VisitSize(visitor, "strides", options.strides);
  VisitPadding(visitor, options.padding);
  VisitSize(visitor, "dilation_rate", options.dilation_rate);
  visitor.Visit("groups", options.groups);
  visitor.Visit("activation", options.activation);
  visitor.Visit("use_bias", options.use_bias);
  visitor.VisitWeight("kernel", options.kernel_initializer,
                      options.kernel_regularizer, options.kernel_constraint);
  visitor.VisitWeight("bias", options.bias_initializer,
                      options.bias_regularizer, options.bias_constraint);
}

}  // namespace

Conv2DLayer::Conv2DLayer(int64_t filters, Size2D kernel_size,
                         const Conv2DLayerOptions& options)
    : Layer(options.name),
      filters_(filters),
      kernel_size_(kernel_size),
      options_(options) {}

void Conv2DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitConvolution(visitor, filters_, kernel_size_, options_);
}

void Conv2DLayer::Build(const Shape& input) {
  const int64_t channels = internal::ChannelCount(input);
  const int64_t groups = std::max<int64_t>(options_.groups, 1);
  kernel_ = AddWeight(
      "kernel",
      {AtLeastZero(kernel_size_.height), AtLeastZero(kernel_size_.width),
       channels == Shape::kUnknown ? channels : channels / groups,
       AtLeastZero(filters_)},
      options_.kernel_initializer,
      {.regularizer = options_.kernel_regularizer,
       .constraint = options_.kernel_constraint});
  if (options_.use_bias) {
    bias_ =
        AddWeight("bias", {AtLeastZero(filters_)}, options_.bias_initializer,
                  {.regularizer = options_.bias_regularizer,
                   .constraint = options_.bias_constraint});
  }
}

Value Conv2DLayer::Call(Value x, const CallContext&) {
  const int64_t channels = internal::ChannelCount(x.shape());
  const int64_t least =
      std::min({filters_, kernel_size_.height, kernel_size_.width,
                options_.strides.height, options_.strides.width,
                options_.dilation_rate.height, options_.dilation_rate.width});
  x = internal::ToFloatImage(x, 4, absl::StrCat("Conv2D ", name()),
                             least >= 1 && Divides(options_.groups, filters_) &&
                                 Divides(options_.groups, channels),
                             Expectation(filters_, options_.groups, channels));
  if (!x.ok()) return x;
  Value y = Conv2D(x, kernel_,
                   {.strides = options_.strides.extents(),
                    .dilations = options_.dilation_rate.extents(),
                    .padding = ToPadding2D(options_.padding),
                    .groups = options_.groups});
  if (options_.use_bias) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr Conv2D(int64_t filters, Size2D kernel_size,
                const Conv2DLayerOptions& options) {
  return std::make_shared<Conv2DLayer>(filters, kernel_size, options);
}

Conv1DLayer::Conv1DLayer(int64_t filters, int64_t kernel_size,
                         const Conv1DLayerOptions& options)
    : Layer(options.name),
      filters_(filters),
      kernel_size_(kernel_size),
      options_(options) {}

void Conv1DLayer::VisitConfig(ConfigVisitor& visitor) {
  VisitConvolution(visitor, filters_, kernel_size_, options_);
}

void Conv1DLayer::Build(const Shape& input) {
  const int64_t channels = internal::ChannelCount(input);
  const int64_t groups = std::max<int64_t>(options_.groups, 1);
  kernel_ =
      AddWeight("kernel",
                {AtLeastZero(kernel_size_),
                 channels == Shape::kUnknown ? channels : channels / groups,
                 AtLeastZero(filters_)},
                options_.kernel_initializer,
                {.regularizer = options_.kernel_regularizer,
                 .constraint = options_.kernel_constraint});
  if (options_.use_bias) {
    bias_ =
        AddWeight("bias", {AtLeastZero(filters_)}, options_.bias_initializer,
                  {.regularizer = options_.bias_regularizer,
                   .constraint = options_.bias_constraint});
  }
}

Value Conv1DLayer::Call(Value x, const CallContext&) {
  const int64_t channels = internal::ChannelCount(x.shape());
  const int64_t least = std::min(
      {filters_, kernel_size_, options_.strides, options_.dilation_rate});
  x = internal::ToFloatImage(x, 3, absl::StrCat("Conv1D ", name()),
                             least >= 1 && Divides(options_.groups, filters_) &&
                                 Divides(options_.groups, channels),
                             Expectation(filters_, options_.groups, channels));
  if (!x.ok()) return x;
  if (options_.padding.is_causal()) {
    const int64_t earlier = (kernel_size_ - 1) * options_.dilation_rate;
    x = Pad(x, {0, 0, earlier, 0, 0, 0});
  }
  // A sequence is an image of height 1.
  Value y = Conv2D(ExpandDims(x, 1), ExpandDims(kernel_, 0),
                   {.strides = {1, options_.strides},
                    .dilations = {1, options_.dilation_rate},
                    .padding = ToPadding2D(options_.padding.padding()),
                    .groups = options_.groups});
  y = Squeeze(y, {1});
  if (options_.use_bias) y = y + bias_;
  return Activate(options_.activation, y);
}

LayerPtr Conv1D(int64_t filters, int64_t kernel_size,
                const Conv1DLayerOptions& options) {
  return std::make_shared<Conv1DLayer>(filters, kernel_size, options);
}

}  // namespace muster
