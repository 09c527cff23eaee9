#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/kernels/cpu/elementwise.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/cpu/onednn.h"
#include "common/compute/kernels/cpu/onednn_conv.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "dnnl.hpp"

// Gradients of convolution weights by oneDNN: Conv2DBackpropKernel and its
// depthwise variant. The gradients are sums over all images. Each thread sums a
// share of the images; the partial sums are added in a fixed order.
namespace muster {
namespace {

using dnnl::memory;
using internal::ConvDescs;
using internal::ConvGeometry;
using internal::OneDnnCall;
using internal::OneDnnEngine;

struct AddInPlace {
  MUSTER_INLINE static void Run(int64_t count, const float* x, float* sum) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
  }
};

class OneDnnConvWeights : public Kernel {
 public:
  explicit OneDnnConvWeights(int thread_count) : thread_count_(thread_count) {}

  absl::Status Init(const KernelSpec& spec) {
    ASSIGN_OR_RETURN(ConvGeometry geometry, ConvGeometry::Of(spec));
    ASSIGN_OR_RETURN(const auto type,
                     internal::OneDnnType(spec.outputs[0].dtype));
    const bool is_pointwise = internal::IsPointwise(geometry);
    if (is_pointwise) geometry = AsOneRow(geometry);
    const int64_t units =
        is_pointwise ? geometry.width.input_extent : geometry.batch;
    const int64_t part_count = std::min<int64_t>(thread_count_, units);
    const auto bytes_per_unit = [&](const TensorType& images) {
      return images.shape.element_count() / units *
             static_cast<int64_t>(SizeOf(images.dtype));
    };
    UseOpenMpThreads(1);
    for (int64_t i = 0; i < part_count; ++i) {
      const int64_t begin = units * i / part_count;
      const int64_t size = units * (i + 1) / part_count - begin;
      ConvGeometry share = geometry;
      if (is_pointwise) {
        share.width.input_extent = share.width.output_extent = size;
      } else {
        share.batch = size;
      }
      AddPart(ConvDescs(share, type));
      parts_.back().x_offset = begin * bytes_per_unit(spec.inputs[0]);
      parts_.back().y_offset = begin * bytes_per_unit(spec.inputs[1]);
    }
    return absl::OkStatus();
  }

  size_t scratch_bytes() const override { return scratch_.size_bytes(); }

  absl::Status Run(const KernelArguments& arguments) override {
    uint8_t* const output = arguments.outputs[0]->mutable_raw_data();
    uint8_t* const scratch = arguments.scratch.data();
    uint8_t* const total =
        reorder_.is_needed() ? scratch + packed_offset_ : output;
    UseOpenMpThreads(1);
    RunParts(static_cast<int>(parts_.size()), [&](int i) {
      Part& part = parts_[i];
      part.call.SetData(0, arguments.inputs[0]->raw_data() + part.x_offset);
      part.call.SetData(1, arguments.inputs[1]->raw_data() + part.y_offset);
      part.call.SetData(2, i == 0 ? total : scratch + part.sum_offset);
      part.call.SetData(3, scratch + part.scratchpad_offset);
      part.status = part.call.Run();
    });
    for (Part& part : parts_) {
      if (!part.status.ok()) return std::exchange(part.status, {});
    }
    AddSums(scratch, reinterpret_cast<float*>(total));
    return reorder_.is_needed() ? reorder_.Run(total, output)
                                : absl::OkStatus();
  }

 private:
  struct Part {
    OneDnnCall call;
    int64_t x_offset = 0;  // Offsets are in bytes.
    int64_t y_offset = 0;
    size_t sum_offset = 0;  // Unused by the first part.
    size_t scratchpad_offset = 0;
    absl::Status status;
  };

  void AddPart(const ConvDescs& descs) {
    const bool is_first = parts_.empty();
    const dnnl::convolution_backward_weights::primitive_desc desc(
        dnnl::convolution_backward_weights::desc(
            dnnl::algorithm::convolution_direct, descs.x,
            is_first ? WantedWeights(descs) : packed_, descs.y, descs.strides,
            descs.dilations, descs.padding_before, descs.padding_after),
        internal::UserScratchpad(), OneDnnEngine(), descs.Forward(false, {}));
    Part& part = parts_.emplace_back();
    if (is_first) {
      packed_ = desc.diff_weights_desc();
      reorder_.Init(packed_, descs.own_kernel);
      if (reorder_.is_needed()) {
        packed_offset_ = scratch_.Reserve(packed_.get_size());
      }
    } else {
      part.sum_offset = scratch_.Reserve(packed_.get_size());
    }
    part.scratchpad_offset =
        scratch_.Reserve(desc.scratchpad_desc().get_size());
    part.call = OneDnnCall(dnnl::convolution_backward_weights(desc));
    part.call.AddOperand(DNNL_ARG_SRC, descs.x);
    part.call.AddOperand(DNNL_ARG_DIFF_DST, descs.y);
    part.call.AddOperand(DNNL_ARG_DIFF_WEIGHTS, packed_);
    part.call.AddOperand(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
  }

  // Sums are float32, also for bfloat16.
  static memory::desc WantedWeights(const ConvDescs& descs) {
    return {descs.own_kernel.dims(), memory::data_type::f32,
            memory::format_tag::any};
  }

  void AddSums(const uint8_t* scratch, float* total) const {
    if (parts_.size() == 1) return;
    const auto count = static_cast<int64_t>(packed_.get_size() / sizeof(float));
    ForEachPart(thread_count_, count, [&](int64_t begin, int64_t end) {
      for (size_t i = 1; i < parts_.size(); ++i) {
        const auto* const sum =
            reinterpret_cast<const float*>(scratch + parts_[i].sum_offset);
        RunVectorized<AddInPlace>(end - begin, sum + begin, total + begin);
      }
    });
  }

  const int thread_count_;
  std::vector<Part> parts_;
  memory::desc packed_;  // The layout of the weights that oneDNN prefers.
  internal::WeightReorder reorder_;
  size_t packed_offset_ = 0;
  internal::ScratchLayout scratch_;
};

}  // namespace

namespace internal {

void RegisterCpuConvWeightKernels(KernelRegistry* registry) {
  registry->Register("Conv2DBackpropKernel",
                     CreateOneDnnKernel<OneDnnConvWeights>);
  registry->Register("DepthwiseConv2DBackpropKernel",
                     CreateOneDnnKernel<OneDnnConvWeights>);
}

}  // namespace internal
}  // namespace muster
