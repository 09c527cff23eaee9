#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/image_sampling.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/resize.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

// Blends two rows of floats.
struct BlendRows {
  MUSTER_INLINE static void Run(int64_t count, const float* lower,
                                const float* upper, float upper_weight,
                                float* out) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      out[i] = lower[i] + (upper[i] - lower[i]) * upper_weight;
    }
  }
};

// Blends the pixels of one row. A constant number of channels is unrolled.
template <int kChannels>
void BlendPixels(const std::vector<BilinearTap>& taps, int64_t channels,
                 const float* row, float* out) {
  const int64_t count = kChannels > 0 ? kChannels : channels;
  for (const BilinearTap& tap : taps) {
    const float* const lower = row + tap.lower * count;
    const float* const upper = row + tap.upper * count;
    for (int64_t c = 0; c < count; ++c) {
      out[c] = lower[c] + (upper[c] - lower[c]) * tap.upper_weight;
    }
    out += count;
  }
}

// Blends rows first, because whole rows are vectorized; then pixels within
// rows.
class ResizeKernel : public Kernel {
 public:
  ResizeKernel(const KernelSpec& spec, bool is_bilinear)
      : from_(spec.inputs[0].shape),
        to_(spec.outputs[0].shape),
        rows_(internal::ResizeTaps(from_.dim(1), to_.dim(1), is_bilinear)),
        columns_(internal::ResizeTaps(from_.dim(2), to_.dim(2), is_bilinear)),
        blended_(from_.dim(2) * from_.dim(3)) {}

  absl::Status Run(const KernelArguments& arguments) override {
    const float* in = arguments.inputs[0]->flat<float>().data();
    float* out = arguments.outputs[0]->mutable_flat<float>().data();
    const int64_t row_size = from_.dim(2) * from_.dim(3);
    for (int64_t image = 0; image < to_.dim(0); ++image) {
      for (const BilinearTap& tap : rows_) {
        const float* row = in + tap.lower * row_size;
        if (tap.upper_weight != 0) {
          RunVectorized<BlendRows>(row_size, row, in + tap.upper * row_size,
                                   tap.upper_weight, blended_.data());
          row = blended_.data();
        }
        ResizeRow(row, out);
        out += to_.dim(2) * to_.dim(3);
      }
      in += from_.dim(1) * row_size;
    }
    return absl::OkStatus();
  }

 private:
  void ResizeRow(const float* row, float* out) const {
    const int64_t channels = to_.dim(3);
    switch (channels) {
      case 1:
        return BlendPixels<1>(columns_, channels, row, out);
      case 3:
        return BlendPixels<3>(columns_, channels, row, out);
      default:
        return BlendPixels<0>(columns_, channels, row, out);
    }
  }

  const Shape from_;
  const Shape to_;
  const std::vector<BilinearTap> rows_;
  const std::vector<BilinearTap> columns_;
  std::vector<float> blended_;
};

}  // namespace

namespace internal {

void RegisterCpuImageKernels(KernelRegistry* registry) {
  registry->Register("ResizeImage",
                     [](const KernelSpec& spec,
                        int) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                       if (spec.inputs[0].dtype != DType::kFloat32) {
                         return absl::UnimplementedError("float32 only");
                       }
                       const auto interpolation =
                           spec.attributes.GetOr<std::string>("interpolation",
                                                              "");
                       return std::make_unique<ResizeKernel>(
                           spec, interpolation == "bilinear");
                     });
}

}  // namespace internal
}  // namespace muster
