#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "common/compute/kernels/cpu/batch_moments.h"
#include "common/compute/kernels/cpu/fused_relu.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/cpu/onednn.h"
#include "common/compute/kernels/cpu/onednn_conv.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "dnnl.hpp"

// Convolutions by oneDNN:
//
//   Conv2D(x, kernel), Conv2DBackpropInput, and the depthwise ones
//   FusedConv2D{activation}(x, kernel, bias) and
//   FusedConv2D{activation, epsilon}(x, kernel, scale, offset, mean, variance),
//     which the runtime's rewrites create; the latter includes a batch
//     normalization. Likewise FusedDepthwiseConv2D.
//   Conv2DMoments(x, kernel) -> y, and the mean and variance of each of its
//     channels. Likewise DepthwiseConv2DMoments.
namespace muster {
namespace {

using dnnl::memory;
using internal::ConvDescs;
using internal::ConvGeometry;
using internal::ConvPart;
using internal::ConvStrip;
using internal::FusedRelu;
using internal::OneDnnCall;
using internal::OneDnnEngine;
using internal::WeightReorder;

// Multiplies the kernel of each output channel by the channel's factor.
struct ScaleColumns {
  MUSTER_INLINE static void Run(int64_t row_count, int64_t channel_count,
                                const float* kernel, const float* factors,
                                float* out) {
    for (int64_t row = 0; row < row_count; ++row) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < channel_count; ++c) {
        out[row * channel_count + c] =
            kernel[row * channel_count + c] * factors[c];
      }
    }
  }
};

class OneDnnConv : public Kernel {
 public:
  explicit OneDnnConv(int thread_count) : thread_count_(thread_count) {}

  absl::Status Init(const KernelSpec& spec) {
    ASSIGN_OR_RETURN(geometry_, ConvGeometry::Of(spec));
    ASSIGN_OR_RETURN(const auto type,
                     internal::OneDnnType(spec.outputs[0].dtype));
    const bool is_fused = absl::StartsWith(spec.op, "Fused");
    input_count_ = is_fused ? static_cast<int>(spec.inputs.size()) : 2;
    has_moments_ = spec.outputs.size() == 3;
    if ((is_fused || has_moments_) &&
        spec.outputs[0].dtype != DType::kFloat32) {
      return absl::UnimplementedError("fused in float32 only");
    }
    ASSIGN_OR_RETURN(relu_,
                     internal::FindFusedRelu(
                         spec.attributes.GetOr<std::string>("activation", "")));
    epsilon_ = spec.attributes.GetOr("epsilon", 0.0);
    element_bytes_ = static_cast<int64_t>(SizeOf(spec.outputs[0].dtype));
    ChooseSlices();
    UseOpenMpThreads(1);
    if (strips_.empty()) InitSlice(ConvDescs(sliced_, type));
    for (const ConvStrip& strip : strips_) {
      InitSlice(ConvDescs(strip.geometry, type));
    }
    if (has_moments_) {
      const int64_t rows = ResultElements() / sliced_.output_channels;
      const int64_t most = MomentsBlockRows(sliced_.output_channels);
      blocks_per_slice_ = (rows + most - 1) / most;
      means_offset_ = scratch_.Reserve(2 * slice_count_ * blocks_per_slice_ *
                                       sliced_.output_channels * sizeof(float));
    }
    return absl::OkStatus();
  }

  size_t scratch_bytes() const override { return scratch_.size_bytes(); }

  absl::Status Run(const KernelArguments& arguments) override {
    UseOpenMpThreads(1);
    uint8_t* const scratch = arguments.scratch.data();
    const void* kernel = arguments.inputs[1]->raw_data();
    if (input_count_ == 6) {
      FoldNormalization(arguments, scratch);
      kernel = scratch + folded_offset_;
    }
    if (reorder_.is_needed()) {
      RETURN_IF_ERROR(reorder_.Run(kernel, scratch + packed_offset_));
      kernel = scratch + packed_offset_;
    }
    const void* bias = nullptr;
    if (input_count_ == 6) bias = scratch + bias_offset_;
    if (input_count_ == 3) bias = arguments.inputs[2]->raw_data();
    return RunSlices(arguments, kernel, bias);
  }

 private:
  // Each thread processes separate images, a few at a time. The steps after the
  // convolution then find their input in the thread's cache, and threads
  // synchronize only once. Pointwise convolutions are divided into ranges of
  // pixels. With few images, threads process strips of rows.
  void ChooseSlices() {
    const bool is_pointwise = internal::IsPointwise(geometry_);
    sliced_ = is_pointwise ? internal::AsOneRow(geometry_) : geometry_;
    int64_t& units = is_pointwise ? sliced_.width.input_extent : sliced_.batch;
    const int64_t unit_count = units;
    const auto unit_bytes = OutputElements() / unit_count * element_bytes_;
    units = std::clamp<int64_t>(kSliceBytes / unit_bytes, 1, unit_count);
    while (!DividesWell(unit_count, units)) --units;
    slice_count_ = unit_count / units;
    if (slice_count_ < thread_count_ && !is_pointwise) CutIntoStrips();
    if (is_pointwise) sliced_.width.output_extent = units;
    team_size_ =
        static_cast<int>(std::min<int64_t>(thread_count_, slice_count_));
  }

  // Divides images into strips of equally many rows, if possible.
  void CutIntoStrips() {
    const bool makes_input = geometry_.part == ConvPart::kBackpropInput;
    const int64_t rows = makes_input ? geometry_.height.input_extent
                                     : geometry_.height.output_extent;
    int64_t count = (thread_count_ + geometry_.batch - 1) / geometry_.batch;
    while (count < rows && rows % count != 0) ++count;
    if (count > rows) return;
    std::vector<ConvStrip> strips;
    for (int64_t i = 0; i < count; ++i) {
      const auto strip = internal::StripOf(geometry_, rows / count * i,
                                           rows / count * (i + 1));
      if (!strip) return;
      strips.push_back(*strip);
      strips.back().geometry.batch = 1;
    }
    sliced_ = strips[0].geometry;
    slice_count_ = geometry_.batch * count;
    strips_ = std::move(strips);
  }

  // True if slices of `units` units are equal and balance the load of the
  // threads.
  bool DividesWell(int64_t unit_count, int64_t units) const {
    if (units == 1) return true;
    const int64_t slices = unit_count / units;
    return unit_count % units == 0 &&
           (slices % thread_count_ == 0 || slices >= 8 * thread_count_);
  }

  // Returns the number of elements for one slice.
  int64_t InputElements() const {
    return sliced_.batch * sliced_.height.input_extent *
           sliced_.width.input_extent * sliced_.input_channels;
  }
  int64_t ResultElements() const {
    return sliced_.batch * sliced_.height.output_extent *
           sliced_.width.output_extent * sliced_.output_channels;
  }
  // Return the number of elements of this kernel's output and source for one
  // slice.
  int64_t OutputElements() const {
    return geometry_.part == ConvPart::kBackpropInput ? InputElements()
                                                      : ResultElements();
  }
  int64_t SourceElements() const {
    return geometry_.part == ConvPart::kBackpropInput ? ResultElements()
                                                      : InputElements();
  }
  // Returns the offset of a slice's source in elements.
  int64_t SourceOffset(int64_t slice) const {
    if (strips_.empty()) return slice * SourceElements();
    const bool makes_input = geometry_.part == ConvPart::kBackpropInput;
    const int64_t rows = makes_input ? geometry_.height.output_extent
                                     : geometry_.height.input_extent;
    const int64_t row_elements =
        makes_input ? geometry_.width.output_extent * geometry_.output_channels
                    : geometry_.width.input_extent * geometry_.input_channels;
    const auto strip_count = static_cast<int64_t>(strips_.size());
    return (slice / strip_count * rows +
            strips_[slice % strip_count].source_begin) *
           row_elements;
  }

  int64_t CallOf(int64_t slice, int part) const {
    if (strips_.empty()) return part;
    const auto strip_count = static_cast<int64_t>(strips_.size());
    return slice % strip_count * geometry_.batch + slice / strip_count;
  }

  // Creates the calls for one kind of slice. All kinds use weights in the same
  // layout.
  void InitSlice(ConvDescs descs) {
    const bool is_first = calls_.empty();
    if (!is_first) {
      descs.kernel = packed_;
    } else if (input_count_ == 6) {
      folded_offset_ = scratch_.Reserve(descs.own_kernel.get_size());
      bias_offset_ = scratch_.Reserve(descs.bias.get_size());
      factors_offset_ = scratch_.Reserve(descs.bias.get_size());
    }
    if (geometry_.part == ConvPart::kBackpropInput) {
      InitBackpropInput(descs);
    } else {
      InitForward(descs);
    }
    if (!is_first) return;
    reorder_.Init(descs.own_kernel, packed_);
    if (reorder_.is_needed()) {
      packed_offset_ = scratch_.Reserve(packed_.get_size());
    }
  }

  // Creates a call for each thread of the team, or for the strip of each image.
  // Operands 0 to 2 are those in `operands`, 3 the scratchpad, 4 the bias.
  void InitCalls(const dnnl::primitive& primitive,
                 const std::vector<std::pair<int, memory::desc>>& operands,
                 const memory::desc& scratchpad) {
    const int64_t count = strips_.empty() ? team_size_ : geometry_.batch;
    for (int64_t i = 0; i < count; ++i) {
      OneDnnCall& call = calls_.emplace_back(primitive);
      for (const auto& [argument, desc] : operands) {
        call.AddOperand(argument, desc);
        if (argument == operands[2].first) {
          call.AddOperand(DNNL_ARG_SCRATCHPAD, scratchpad);
        }
      }
      scratchpad_offsets_.push_back(scratch_.Reserve(scratchpad.get_size()));
    }
  }

  void InitForward(const ConvDescs& descs) {
    const bool has_bias = input_count_ > 2;
    const auto desc = descs.Forward(has_bias, internal::UserScratchpad());
    packed_ = desc.weights_desc();
    std::vector<std::pair<int, memory::desc>> operands = {
        {DNNL_ARG_SRC, descs.x},
        {DNNL_ARG_WEIGHTS, desc.weights_desc()},
        {DNNL_ARG_DST, descs.y}};
    if (has_bias) operands.push_back({DNNL_ARG_BIAS, descs.bias});
    InitCalls(dnnl::convolution_forward(desc), operands,
              desc.scratchpad_desc());
  }

  void InitBackpropInput(const ConvDescs& descs) {
    const dnnl::convolution_backward_data::primitive_desc desc(
        dnnl::convolution_backward_data::desc(
            dnnl::algorithm::convolution_direct, descs.x, descs.kernel, descs.y,
            descs.strides, descs.dilations, descs.padding_before,
            descs.padding_after),
        internal::UserScratchpad(), OneDnnEngine(), descs.Forward(false, {}));
    packed_ = desc.weights_desc();
    InitCalls(dnnl::convolution_backward_data(desc),
              {{DNNL_ARG_DIFF_DST, descs.y},
               {DNNL_ARG_WEIGHTS, desc.weights_desc()},
               {DNNL_ARG_DIFF_SRC, descs.x}},
              desc.scratchpad_desc());
  }

  // Folds y = (x * kernel - mean) / sqrt(variance + epsilon) * scale + offset
  // into one convolution with a bias.
  void FoldNormalization(const KernelArguments& arguments, uint8_t* scratch) {
    const auto input = [&](int i) {
      return arguments.inputs[i]->flat<float>().data();
    };
    const int64_t channels = geometry_.output_channels;
    auto* const factors = reinterpret_cast<float*>(scratch + factors_offset_);
    auto* const bias = reinterpret_cast<float*>(scratch + bias_offset_);
    for (int64_t c = 0; c < channels; ++c) {
      const double factor = input(2)[c] / std::sqrt(input(5)[c] + epsilon_);
      factors[c] = static_cast<float>(factor);
      bias[c] = static_cast<float>(input(3)[c] - input(4)[c] * factor);
    }
    const int64_t rows = arguments.inputs[1]->element_count() / channels;
    RunVectorized<ScaleColumns>(
        rows, channels, input(1), static_cast<const float*>(factors),
        reinterpret_cast<float*>(scratch + folded_offset_));
  }

  absl::Status RunSlices(const KernelArguments& arguments, const void* kernel,
                         const void* bias) {
    RunParts(team_size_, [&](int part) {
      const int64_t end = slice_count_ * (part + 1) / team_size_;
      for (int64_t i = slice_count_ * part / team_size_; i < end; ++i) {
        const int64_t call = CallOf(i, part);
        calls_[call].SetData(1, kernel);
        calls_[call].SetData(
            3, arguments.scratch.data() + scratchpad_offsets_[call]);
        if (bias != nullptr) calls_[call].SetData(4, bias);
        statuses_[part] = RunSlice(arguments, i, &calls_[call]);
        if (!statuses_[part].ok()) return;
      }
    });
    for (absl::Status& status : statuses_) {
      if (!status.ok()) return std::exchange(status, absl::OkStatus());
    }
    if (has_moments_) {
      CombineMoments(
          slice_count_ * blocks_per_slice_, sliced_.output_channels,
          SliceMeans(arguments, 0), SliceSquares(arguments, 0),
          [this](int64_t block) { return BlockRows(block); },
          arguments.outputs[1]->mutable_flat<float>().data(),
          arguments.outputs[2]->mutable_flat<float>().data());
    }
    return absl::OkStatus();
  }

  absl::Status RunSlice(const KernelArguments& arguments, int64_t slice,
                        OneDnnCall* call) {
    uint8_t* const out = arguments.outputs[0]->mutable_raw_data() +
                         slice * OutputElements() * element_bytes_;
    call->SetData(0, arguments.inputs[0]->raw_data() +
                         SourceOffset(slice) * element_bytes_);
    call->SetData(2, out);
    RETURN_IF_ERROR(call->Run());
    ApplyInPlace(relu_, OutputElements(), reinterpret_cast<float*>(out));
    if (has_moments_) {
      FindMoments(arguments, slice, reinterpret_cast<const float*>(out));
    }
    return absl::OkStatus();
  }

  // Blocks do not span slices.
  int64_t BlockRows(int64_t block) const {
    const int64_t rows = ResultElements() / sliced_.output_channels;
    const int64_t most = MomentsBlockRows(sliced_.output_channels);
    return std::min(most, rows - block % blocks_per_slice_ * most);
  }
  float* SliceMeans(const KernelArguments& arguments, int64_t slice) const {
    auto* const means =
        reinterpret_cast<float*>(arguments.scratch.data() + means_offset_);
    return means + slice * blocks_per_slice_ * sliced_.output_channels;
  }
  float* SliceSquares(const KernelArguments& arguments, int64_t slice) const {
    return SliceMeans(arguments, slice_count_ + slice);
  }

  void FindMoments(const KernelArguments& arguments, int64_t slice,
                   const float* y) {
    const int64_t channels = sliced_.output_channels;
    float* means = SliceMeans(arguments, slice);
    float* squares = SliceSquares(arguments, slice);
    for (int64_t block = 0; block < blocks_per_slice_; ++block) {
      const int64_t rows = BlockRows(block);
      BlockMoments(rows, channels, y, means, squares);
      y += rows * channels;
      means += channels;
      squares += channels;
    }
  }

  // The output of a slice fits into an L2 cache of 1 MiB or more.
  static constexpr int64_t kSliceBytes = 512 << 10;

  const int thread_count_;
  ConvGeometry geometry_;
  // The geometry of one slice; the source geometry of strips is in strips_.
  ConvGeometry sliced_;
  // The strips of an image; empty if all slices are equal.
  std::vector<ConvStrip> strips_;
  int64_t slice_count_ = 1;
  int64_t element_bytes_ = 0;
  int input_count_ = 2;
  FusedRelu relu_ = FusedRelu::kNone;
  double epsilon_ = 0;

  bool has_moments_ = false;
  int64_t blocks_per_slice_ = 0;

  int team_size_ = 1;              // The number of threads that process slices.
  std::vector<OneDnnCall> calls_;  // See CallOf().
  std::vector<absl::Status> statuses_ =
      std::vector<absl::Status>(thread_count_);

  memory::desc packed_;  // The layout of the weights that oneDNN prefers.
  WeightReorder reorder_;
  internal::ScratchLayout scratch_;
  size_t folded_offset_ = 0;
  size_t bias_offset_ = 0;
  size_t factors_offset_ = 0;
  size_t packed_offset_ = 0;
  size_t means_offset_ = 0;
  std::vector<size_t> scratchpad_offsets_;  // In the order of calls_.
};

}  // namespace

namespace internal {

void RegisterCpuConvKernels(KernelRegistry* registry) {
  for (const char* op :
       {"Conv2D", "Conv2DBackpropInput", "DepthwiseConv2D",
        "DepthwiseConv2DBackpropInput", "FusedConv2D", "FusedDepthwiseConv2D",
        "Conv2DMoments", "DepthwiseConv2DMoments"}) {
    registry->Register(op, CreateOneDnnKernel<OneDnnConv>);
  }
}

}  // namespace internal
}  // namespace muster
