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
#include "common/learn/nn/convolve_3d.h"
#include "common/learn/nn/image_input.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/window.h"

namespace muster {
namespace {

using internal::AtLeastZero;

// Returns false for a `divisor` below 1.
bool Divides(int64_t divisor, int64_t number) {
  return divisor > 0 && number % divisor == 0;
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

internal::Convolve3DOptions VolumeOptions(const Conv3DLayerOptions& options) {
  return {.strides = options.strides,
          .dilations = options.dilation_rate,
          .padding = options.padding,
          .groups = options.groups};
}

// Each Convolve() convolves `x` without bias. The kernel has the shape that
// ConvLayer::Build() gives it.

Value Convolve(Value x, Value kernel, const Conv1DLayerOptions& options) {
  if (options.padding.is_causal()) {
    const int64_t earlier = (kernel.shape().dim(0) - 1) * options.dilation_rate;
    x = Pad(x, {0, 0, earlier, 0, 0, 0});
  }
  // A sequence is an image of height 1.
  return Squeeze(Conv2D(ExpandDims(x, 1), ExpandDims(kernel, 0),
                        {.strides = {1, options.strides},
                         .dilations = {1, options.dilation_rate},
                         .padding = ToPadding2D(options.padding.padding()),
                         .groups = options.groups}),
                 {1});
}

Value Convolve(Value x, Value kernel, const Conv2DLayerOptions& options) {
  return Conv2D(x, kernel,
                {.strides = options.strides.extents(),
                 .dilations = options.dilation_rate.extents(),
                 .padding = ToPadding2D(options.padding),
                 .groups = options.groups});
}

Value Convolve(Value x, Value kernel, const Conv3DLayerOptions& options) {
  return internal::Convolve3D(x, kernel, VolumeOptions(options));
}

// Each IsDeepEnough() returns true if Convolve() can convolve `input`.

bool IsDeepEnough(const Shape& input, const Size3D& kernel_size,
                  const Conv3DLayerOptions& options) {
  return input.rank() == 5 && internal::HasKnownExtents(input) &&
         internal::OutputDepth(input.dim(1), kernel_size.depth,
                               VolumeOptions(options)) >= 1;
}

bool IsDeepEnough(const Shape&, const auto&, const auto&) { return true; }

template <typename Size, typename Options>
class ConvLayer : public Layer {
 public:
  ConvLayer(int64_t filters, Size kernel_size, const Options& options)
      : Layer(options.name),
        filters_(filters),
        kernel_size_(kernel_size),
        options_(options) {}

  std::string kind() const override {
    return absl::StrCat("Conv", kAxisCount<Size>, "D");
  }

  void VisitConfig(ConfigVisitor& visitor) override {
    visitor.VisitPositive("filters", filters_);
    VisitSize(visitor, "kernel_size", kernel_size_);
    VisitSize(visitor, "strides", options_.strides);
    VisitPadding(visitor, options_.padding);
    VisitSize(visitor, "dilation_rate", options_.dilation_rate);
    visitor.Visit("groups", options_.groups);
    visitor.Visit("activation", options_.activation);
    visitor.Visit("use_bias", options_.use_bias);
    visitor.VisitWeight("kernel", options_.kernel_initializer,
                        options_.kernel_regularizer,
                        options_.kernel_constraint);
    visitor.VisitWeight("bias", options_.bias_initializer,
                        options_.bias_regularizer, options_.bias_constraint);
  }

 protected:
  void Build(const Shape& input) override {
    const int64_t channels = internal::ChannelCount(input);
    const int64_t groups = std::max<int64_t>(options_.groups, 1);
    kernel_ = AddWeight(
        "kernel",
        internal::KernelShape(
            kernel_size_,
            {channels == Shape::kUnknown ? channels : channels / groups,
             AtLeastZero(filters_)}),
        options_.kernel_initializer,
        {.regularizer = options_.kernel_regularizer,
         .constraint = options_.kernel_constraint});
    if (!options_.use_bias) return;
    bias_ =
        AddWeight("bias", {AtLeastZero(filters_)}, options_.bias_initializer,
                  {.regularizer = options_.bias_regularizer,
                   .constraint = options_.bias_constraint});
  }

  Value Call(Value x, const CallContext&) override {
    const int64_t channels = internal::ChannelCount(x.shape());
    const bool is_valid =
        std::min({filters_, SmallestExtent(kernel_size_),
                  SmallestExtent(options_.strides),
                  SmallestExtent(options_.dilation_rate)}) >= 1 &&
        Divides(options_.groups, filters_) &&
        Divides(options_.groups, channels) &&
        IsDeepEnough(x.shape(), kernel_size_, options_);
    x = internal::ToFloatImage(x, kAxisCount<Size> + 2,
                               absl::StrCat(kind(), " ", name()), is_valid,
                               Expectation(channels));
    if (!x.ok()) return x;
    Value y = Convolve(x, kernel_, options_);
    if (!y.ok()) return y;
    if (options_.use_bias) y = y + bias_;
    return Activate(options_.activation, y);
  }

 private:
  std::string Expectation(int64_t channels) const {
    return absl::StrCat(
        "expected filters, kernel_size, strides and dilation_rate of at least "
        "1, ",
        kAxisCount<Size> == 3 ? "volumes of known extents that are as deep as "
                                "the kernel, "
                              : "",
        "and groups that divide filters and channels; there are ", filters_,
        " filters, ", options_.groups, " groups and ", channels, " channels");
  }

  int64_t filters_;
  Size kernel_size_;
  Options options_;
  Weight kernel_;
  Weight bias_;
};

}  // namespace

LayerPtr Conv1D(int64_t filters, int64_t kernel_size,
                const Conv1DLayerOptions& options) {
  return std::make_shared<ConvLayer<int64_t, Conv1DLayerOptions>>(
      filters, kernel_size, options);
}

LayerPtr Conv2D(int64_t filters, Size2D kernel_size,
                const Conv2DLayerOptions& options) {
  return std::make_shared<ConvLayer<Size2D, Conv2DLayerOptions>>(
      filters, kernel_size, options);
}

LayerPtr Conv3D(int64_t filters, Size3D kernel_size,
                const Conv3DLayerOptions& options) {
  return std::make_shared<ConvLayer<Size3D, Conv3DLayerOptions>>(
      filters, kernel_size, options);
}

}  // namespace muster
