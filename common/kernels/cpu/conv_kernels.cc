#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/kernels/cpu/batch_moments.h"
#include "common/kernels/cpu/intra_op_threads.h"
#include "common/kernels/cpu/onednn.h"
#include "common/kernels/cpu/register.h"
#include "common/kernels/cpu/vectorized.h"
#include "common/kernels/image_geometry.h"
#include "common/kernels/kernel.h"
#include "common/tensor/attributes.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"
#include "common/tensor/window.h"
#include "dnnl.hpp"

// Convolutions by oneDNN. Images stay as they are, channels last: oneDNN is as
// fast on them as on its own blocked layouts (bench/convolution_benchmark), and
// nothing has to be converted between kernels. Only weights, which are small,
// are brought into the layout that a primitive asks for.
//
//   Conv2D(x, kernel), its two BackpropOps, and the depthwise ones
//   FusedConv2D{activation}(x, kernel, bias) and
//   FusedConv2D{activation, epsilon}(x, kernel, scale, offset, mean, variance)
//     as the runtime's rewrites make them; the latter is followed by a batch
//     normalization. FusedDepthwiseConv2D the same.
//   Conv2DMoments(x, kernel) -> y, and the mean and variance of each of its
//     channels; DepthwiseConv2DMoments the same.
namespace muster {
namespace {

using dnnl::memory;
using internal::ConvGeometry;
using internal::ConvPart;
using internal::OneDnnCall;
using internal::OneDnnEngine;

enum class Activation { kNone, kRelu, kRelu6 };

absl::StatusOr<Activation> FindActivation(absl::string_view name) {
  if (name.empty()) return Activation::kNone;
  if (name == "Relu") return Activation::kRelu;
  if (name == "Relu6") return Activation::kRelu6;
  return absl::UnimplementedError(absl::StrCat("no activation ", name));
}

// oneDNN's relu makes 0 of NaN, which would let a model that has diverged look
// like one that has died.
struct ReluInPlace {
  MUSTER_INLINE static void Run(int64_t count, float* x) {
    for (int64_t i = 0; i < count; ++i) x[i] = x[i] < 0 ? 0 : x[i];
  }
};
struct Relu6InPlace {
  MUSTER_INLINE static void Run(int64_t count, float* x) {
    for (int64_t i = 0; i < count; ++i) {
      const float positive = x[i] < 0 ? 0 : x[i];
      x[i] = positive > 6 ? 6 : positive;
    }
  }
};

void Activate(Activation activation, int64_t count, float* x) {
  if (activation == Activation::kRelu) RunVectorized<ReluInPlace>(count, x);
  if (activation == Activation::kRelu6) RunVectorized<Relu6InPlace>(count, x);
}

// The kernels of all output channels times the channel's factor.
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

// How oneDNN sees a convolution.
struct ConvDescs {
  ConvDescs(const ConvGeometry& g, memory::data_type type)
      : x({g.batch, g.input_channels, g.height.input_extent,
           g.width.input_extent},
          type, memory::format_tag::nhwc),
        y({g.batch, g.output_channels, g.height.output_extent,
           g.width.output_extent},
          type, memory::format_tag::nhwc),
        bias({g.output_channels}, type, memory::format_tag::a),
        strides{g.height.stride, g.width.stride},
        dilations{g.height.dilation - 1, g.width.dilation - 1},
        padding_before{g.height.padding_before, g.width.padding_before},
        padding_after{g.height.padding_after, g.width.padding_after} {
    const int64_t inputs = g.group_inputs();
    const int64_t outputs = g.group_outputs();
    const int64_t rows = g.height.window_extent;
    const int64_t columns = g.width.window_extent;
    // Ours is [height, width, inputs of a group, groups * outputs].
    const int64_t input_stride = g.output_channels;
    const int64_t column_stride = inputs * input_stride;
    memory::dims dims = {outputs, inputs, rows, columns};
    memory::dims kernel_strides = {1, input_stride, columns * column_stride,
                                   column_stride};
    if (g.groups > 1) {
      dims.insert(dims.begin(), g.groups);
      kernel_strides.insert(kernel_strides.begin(), outputs);
    }
    own_kernel = memory::desc(dims, type, kernel_strides);
    any_kernel = memory::desc(dims, type, memory::format_tag::any);
  }

  dnnl::convolution_forward::primitive_desc Forward(
      bool has_bias, const dnnl::primitive_attr& attributes) const {
    return {dnnl::convolution_forward::desc(
                dnnl::prop_kind::forward_inference,
                dnnl::algorithm::convolution_direct, x, any_kernel,
                has_bias ? bias : memory::desc(), y, strides, dilations,
                padding_before, padding_after),
            attributes, OneDnnEngine()};
  }

  memory::desc x, y, bias, own_kernel, any_kernel;
  memory::dims strides, dilations, padding_before, padding_after;
};

class OneDnnConv : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec,
                                                        ThreadPool* pool) {
    for (const TensorType& type : spec.inputs) {
      if (type.shape.element_count() == 0) {
        return absl::UnimplementedError("nothing to convolve");
      }
    }
    if (spec.outputs[0].shape.element_count() == 0) {
      return absl::UnimplementedError("nothing to convolve");
    }
    auto kernel = std::unique_ptr<OneDnnConv>(new OneDnnConv(pool));
    try {
      RETURN_IF_ERROR(kernel->Init(spec));
    } catch (const dnnl::error& error) {
      return absl::UnimplementedError(absl::StrCat("oneDNN: ", error.what()));
    }
    return kernel;
  }

  size_t scratch_bytes() const override { return scratch_bytes_; }

  absl::Status Run(const KernelArguments& arguments) override {
    UseOpenMpThreads(thread_count_);
    if (geometry_.part == ConvPart::kBackpropKernel) {
      return RunBackpropKernel(arguments);
    }
    uint8_t* const scratch = arguments.scratch.data();
    const void* kernel = arguments.inputs[1]->raw_data();
    if (input_count_ == 6) {
      FoldNormalization(arguments, scratch);
      kernel = scratch + folded_offset_;
    }
    if (reorders_kernel_) {
      reorder_.SetData(0, kernel);
      reorder_.SetData(1, scratch + packed_offset_);
      RETURN_IF_ERROR(reorder_.Run());
      kernel = scratch + packed_offset_;
    }
    const void* bias = nullptr;
    if (input_count_ == 6) bias = scratch + bias_offset_;
    if (input_count_ == 3) bias = arguments.inputs[2]->raw_data();
    return RunSlices(arguments, kernel, bias);
  }

 private:
  explicit OneDnnConv(ThreadPool* pool)
      : thread_count_(IntraOpThreadCount(pool)) {}

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
    ASSIGN_OR_RETURN(
        activation_,
        FindActivation(spec.attributes.GetOr<std::string>("activation", "")));
    epsilon_ = spec.attributes.GetOr("epsilon", 0.0);
    ChooseSlices(SizeOf(spec.outputs[0].dtype));
    const ConvDescs descs(sliced_, type);
    UseOpenMpThreads(team_size_ > 1 ? 1 : thread_count_);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    switch (geometry_.part) {
      case ConvPart::kForward:
        InitForward(descs, attributes);
        break;
      case ConvPart::kBackpropInput:
        InitBackpropInput(descs, attributes);
        break;
      case ConvPart::kBackpropKernel:
        InitBackpropKernel(descs, attributes);
        break;
    }
    UseOpenMpThreads(thread_count_);
    if (has_moments_) {
      const int64_t rows = ResultElements() / sliced_.output_channels;
      const int64_t most = MomentsBlockRows(sliced_.output_channels);
      blocks_per_slice_ = (rows + most - 1) / most;
      means_offset_ = Reserve(2 * slice_count_ * blocks_per_slice_ *
                              sliced_.output_channels * sizeof(float));
    }
    return absl::OkStatus();
  }

  // Each thread goes through images of its own, a few at a time: what comes
  // after the convolution finds its results in the thread's cache, and threads
  // wait for each other once. A window of one element sees nothing but its own
  // pixel, and then any run of pixels will do. Where there is too little to
  // divide, oneDNN divides the work.
  void ChooseSlices(size_t element_bytes) {
    sliced_ = geometry_;
    if (geometry_.part == ConvPart::kBackpropKernel) return;
    if (IsPointwise()) {
      sliced_.width.input_extent = geometry_.batch *
                                   geometry_.height.input_extent *
                                   geometry_.width.input_extent;
      sliced_.width.output_extent = sliced_.width.input_extent;
      sliced_.height.input_extent = sliced_.height.output_extent = 1;
      sliced_.batch = 1;
    }
    int64_t& units = IsPointwise() ? sliced_.width.input_extent : sliced_.batch;
    const int64_t unit_count = units;
    const auto unit_bytes =
        static_cast<int64_t>(OutputElements() / unit_count * element_bytes);
    units = std::clamp<int64_t>(kSliceBytes / unit_bytes, 1, unit_count);
    while (!DividesWell(unit_count, units)) --units;
    slice_count_ = unit_count / units;
    if (slice_count_ < thread_count_) {
      slice_count_ = 1;
      units = unit_count;
    }
    if (IsPointwise()) sliced_.width.output_extent = units;
    team_size_ =
        static_cast<int>(std::min<int64_t>(thread_count_, slice_count_));
  }

  // Whether slices of so many units are alike, and no thread is left with much
  // more than another.
  bool DividesWell(int64_t unit_count, int64_t units) const {
    if (units == 1) return true;
    const int64_t slices = unit_count / units;
    return unit_count % units == 0 &&
           (slices % thread_count_ == 0 || slices >= 8 * thread_count_);
  }

  bool IsPointwise() const {
    const auto is_single = [](const WindowAxis& axis) {
      return axis.window_extent == 1 && axis.stride == 1 &&
             axis.padding_before == 0 && axis.padding_after == 0;
    };
    return is_single(geometry_.height) && is_single(geometry_.width);
  }

  // Of one slice.
  int64_t InputElements() const {
    return sliced_.batch * sliced_.height.input_extent *
           sliced_.width.input_extent * sliced_.input_channels;
  }
  int64_t ResultElements() const {
    return sliced_.batch * sliced_.height.output_extent *
           sliced_.width.output_extent * sliced_.output_channels;
  }
  // Of what this kernel writes, and of what it reads.
  int64_t OutputElements() const {
    return geometry_.part == ConvPart::kBackpropInput ? InputElements()
                                                      : ResultElements();
  }
  int64_t SourceElements() const {
    return geometry_.part == ConvPart::kBackpropInput ? ResultElements()
                                                      : InputElements();
  }

  size_t Reserve(size_t bytes) {
    const size_t offset = scratch_bytes_;
    scratch_bytes_ += (bytes + 63) / 64 * 64;
    return offset;
  }

  // Between our layout of the kernel and `packed`.
  void InitReorder(const memory::desc& from, const memory::desc& to,
                   const memory::desc& packed) {
    reorders_kernel_ = from != to;
    if (!reorders_kernel_) return;
    packed_offset_ = Reserve(packed.get_size());
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::reorder::primitive_desc desc(OneDnnEngine(), from,
                                             OneDnnEngine(), to, attributes);
    reorder_ = OneDnnCall(dnnl::reorder(desc));
    reorder_.AddOperand(DNNL_ARG_FROM, from);
    reorder_.AddOperand(DNNL_ARG_TO, to);
    if (const size_t bytes = desc.scratchpad_desc().get_size(); bytes > 0) {
      reorder_scratchpad_ = memory(desc.scratchpad_desc(), OneDnnEngine());
      const int operand =
          reorder_.AddOperand(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
      reorder_.SetData(operand, reorder_scratchpad_.get_data_handle());
    }
  }

  // One call for each thread of the team; operands 0 to 2 are those given, 3
  // the scratchpad, 4 the bias.
  void InitCalls(const dnnl::primitive& primitive,
                 const std::vector<std::pair<int, memory::desc>>& operands,
                 const memory::desc& scratchpad) {
    for (int thread = 0; thread < team_size_; ++thread) {
      OneDnnCall& call = calls_.emplace_back(primitive);
      for (const auto& [argument, desc] : operands) {
        call.AddOperand(argument, desc);
        if (argument == operands[2].first) {
          call.AddOperand(DNNL_ARG_SCRATCHPAD, scratchpad);
        }
      }
      scratchpad_offsets_.push_back(Reserve(scratchpad.get_size()));
    }
  }

  void InitForward(const ConvDescs& descs,
                   const dnnl::primitive_attr& attributes) {
    const bool has_bias = input_count_ > 2;
    const auto desc = descs.Forward(has_bias, attributes);
    if (input_count_ == 6) {
      folded_offset_ = Reserve(descs.own_kernel.get_size());
      bias_offset_ = Reserve(descs.bias.get_size());
      factors_offset_ = Reserve(descs.bias.get_size());
    }
    InitReorder(descs.own_kernel, desc.weights_desc(), desc.weights_desc());
    std::vector<std::pair<int, memory::desc>> operands = {
        {DNNL_ARG_SRC, descs.x},
        {DNNL_ARG_WEIGHTS, desc.weights_desc()},
        {DNNL_ARG_DST, descs.y}};
    if (has_bias) operands.push_back({DNNL_ARG_BIAS, descs.bias});
    InitCalls(dnnl::convolution_forward(desc), operands,
              desc.scratchpad_desc());
  }

  void InitBackpropInput(const ConvDescs& descs,
                         const dnnl::primitive_attr& attributes) {
    const dnnl::convolution_backward_data::primitive_desc desc(
        dnnl::convolution_backward_data::desc(
            dnnl::algorithm::convolution_direct, descs.x, descs.any_kernel,
            descs.y, descs.strides, descs.dilations, descs.padding_before,
            descs.padding_after),
        attributes, OneDnnEngine(), descs.Forward(false, {}));
    InitReorder(descs.own_kernel, desc.weights_desc(), desc.weights_desc());
    InitCalls(dnnl::convolution_backward_data(desc),
              {{DNNL_ARG_DIFF_DST, descs.y},
               {DNNL_ARG_WEIGHTS, desc.weights_desc()},
               {DNNL_ARG_DIFF_SRC, descs.x}},
              desc.scratchpad_desc());
  }

  void InitBackpropKernel(const ConvDescs& descs,
                          const dnnl::primitive_attr& attributes) {
    const dnnl::convolution_backward_weights::primitive_desc desc(
        dnnl::convolution_backward_weights::desc(
            dnnl::algorithm::convolution_direct, descs.x, descs.any_kernel,
            descs.y, descs.strides, descs.dilations, descs.padding_before,
            descs.padding_after),
        attributes, OneDnnEngine(), descs.Forward(false, {}));
    InitReorder(desc.diff_weights_desc(), descs.own_kernel,
                desc.diff_weights_desc());
    InitCalls(dnnl::convolution_backward_weights(desc),
              {{DNNL_ARG_SRC, descs.x},
               {DNNL_ARG_DIFF_DST, descs.y},
               {DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc()}},
              desc.scratchpad_desc());
  }

  // y = (x * kernel - mean) / sqrt(variance + epsilon) * scale + offset as one
  // convolution with a bias.
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
    UseOpenMpThreads(thread_count_);
    RunOnOpenMpThreads(team_size_, [&](int thread) {
      OneDnnCall& call = calls_[thread];
      call.SetData(1, kernel);
      call.SetData(3, arguments.scratch.data() + scratchpad_offsets_[thread]);
      if (bias != nullptr) call.SetData(4, bias);
      const int64_t end = slice_count_ * (thread + 1) / team_size_;
      for (int64_t i = slice_count_ * thread / team_size_; i < end; ++i) {
        statuses_[thread] = RunSlice(arguments, i, &call);
        if (!statuses_[thread].ok()) return;
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
    Tensor& output = *arguments.outputs[0];
    const auto element_bytes = static_cast<int64_t>(SizeOf(output.dtype()));
    uint8_t* const out =
        output.mutable_raw_data() + slice * OutputElements() * element_bytes;
    call->SetData(0, arguments.inputs[0]->raw_data() +
                         slice * SourceElements() * element_bytes);
    call->SetData(2, out);
    RETURN_IF_ERROR(call->Run());
    Activate(activation_, OutputElements(), reinterpret_cast<float*>(out));
    if (has_moments_) {
      FindMoments(arguments, slice, reinterpret_cast<const float*>(out));
    }
    return absl::OkStatus();
  }

  // Blocks do not reach from one slice into the next.
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

  absl::Status RunBackpropKernel(const KernelArguments& arguments) {
    uint8_t* const output = arguments.outputs[0]->mutable_raw_data();
    uint8_t* const packed = arguments.scratch.data() + packed_offset_;
    OneDnnCall& call = calls_[0];
    call.SetData(0, arguments.inputs[0]->raw_data());
    call.SetData(1, arguments.inputs[1]->raw_data());
    call.SetData(2, reorders_kernel_ ? packed : output);
    call.SetData(3, arguments.scratch.data() + scratchpad_offsets_[0]);
    RETURN_IF_ERROR(call.Run());
    if (!reorders_kernel_) return absl::OkStatus();
    reorder_.SetData(0, packed);
    reorder_.SetData(1, output);
    return reorder_.Run();
  }

  // What of a slice is written stays in a second-level cache of 1 MiB or more.
  static constexpr int64_t kSliceBytes = 512 << 10;

  const int thread_count_;
  ConvGeometry geometry_;
  ConvGeometry sliced_;  // Of one slice.
  int64_t slice_count_ = 1;
  int input_count_ = 2;
  Activation activation_ = Activation::kNone;
  double epsilon_ = 0;

  bool has_moments_ = false;
  int64_t blocks_per_slice_ = 0;

  int team_size_ = 1;              // Threads that have slices of their own.
  std::vector<OneDnnCall> calls_;  // By thread.
  std::vector<absl::Status> statuses_ =
      std::vector<absl::Status>(thread_count_);

  bool reorders_kernel_ = false;
  OneDnnCall reorder_;
  memory reorder_scratchpad_;

  size_t scratch_bytes_ = 0;
  size_t folded_offset_ = 0;
  size_t bias_offset_ = 0;
  size_t factors_offset_ = 0;
  size_t packed_offset_ = 0;
  size_t means_offset_ = 0;
  std::vector<size_t> scratchpad_offsets_;  // By thread.
};

}  // namespace

namespace internal {

void RegisterCpuConvKernels(KernelRegistry* registry) {
  for (const char* op :
       {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropKernel",
        "DepthwiseConv2D", "DepthwiseConv2DBackpropInput",
        "DepthwiseConv2DBackpropKernel", "FusedConv2D", "FusedDepthwiseConv2D",
        "Conv2DMoments", "DepthwiseConv2DMoments"}) {
    registry->Register(op, OneDnnConv::Create);
  }
}

}  // namespace internal
}  // namespace muster
