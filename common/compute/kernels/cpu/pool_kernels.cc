#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/window.h"

// Pooling of float32 images. Processes all channels of a pixel together,
// because they are contiguous. Each thread processes separate images.
namespace muster {
namespace {

using internal::PoolGeometry;

// The part of window `i` within the image.
struct Range {
  Range(const WindowAxis& axis, int64_t i) {
    const int64_t first = i * axis.stride - axis.padding_before;
    begin = std::max<int64_t>(first, 0);
    end = std::min(first + axis.window_extent, axis.input_extent);
  }
  int64_t size() const { return end - begin; }

  int64_t begin;
  int64_t end;
};

struct Image {
  PoolGeometry g;

  int64_t input_elements() const {
    return g.height.input_extent * g.width.input_extent * g.channels;
  }
  int64_t output_elements() const {
    return g.height.output_extent * g.width.output_extent * g.channels;
  }

  // Calls visit(output position, rows, columns) for every window.
  template <typename Visit>
  MUSTER_INLINE void ForEachWindow(Visit visit) const {
    int64_t output = 0;
    for (int64_t h = 0; h < g.height.output_extent; ++h) {
      const Range rows(g.height, h);
      for (int64_t w = 0; w < g.width.output_extent; ++w) {
        visit(output, rows, Range(g.width, w));
        output += g.channels;
      }
    }
  }

  // Calls visit(input position) for every element of the window, row by row.
  template <typename Visit>
  MUSTER_INLINE void ForEachElement(const Range& rows, const Range& columns,
                                    Visit visit) const {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        visit((row * g.width.input_extent + column) * g.channels);
      }
    }
  }
};

// Prefers NaN, and the first of equal elements.
MUSTER_INLINE bool IsGreaterForMax(float candidate, float best) {
  return !(candidate <= best) & (best == best);
}

// In the functions below, `best` and `at` hold one entry for each channel: the
// maximum of a window so far, and its position.

struct MaxImage {
  MUSTER_INLINE static void Run(const Image& image, const float* x,
                                const float*, float*, int32_t*, float* y) {
    const int64_t channels = image.g.channels;
    image.ForEachWindow([&](int64_t output, const Range& rows,
                            const Range& columns) {
      float* const best = y + output;
      const int64_t first =
          (rows.begin * image.g.width.input_extent + columns.begin) * channels;
      std::copy_n(x + first, channels, best);
      image.ForEachElement(rows, columns, [&](int64_t input) {
        const float* const row = x + input;
        MUSTER_INDEPENDENT_ITERATIONS
        for (int64_t c = 0; c < channels; ++c) {
          best[c] = IsGreaterForMax(row[c], best[c]) ? row[c] : best[c];
        }
      });
    });
  }
};

// Passes the positions of each window's maxima to visit(output, positions).
template <typename Visit>
MUSTER_INLINE void FindMaxima(const Image& image, const float* x, float* best,
                              int32_t* at, Visit visit) {
  const int64_t channels = image.g.channels;
  image.ForEachWindow([&](int64_t output, const Range& rows,
                          const Range& columns) {
    const int64_t first =
        (rows.begin * image.g.width.input_extent + columns.begin) * channels;
    std::copy_n(x + first, channels, best);
    std::fill_n(at, channels, static_cast<int32_t>(first));
    image.ForEachElement(rows, columns, [&](int64_t input) {
      const float* const row = x + input;
      const auto position = static_cast<int32_t>(input);
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < channels; ++c) {
        const bool is_better = IsGreaterForMax(row[c], best[c]);
        best[c] = is_better ? row[c] : best[c];
        at[c] = is_better ? position : at[c];
      }
    });
    visit(output);
  });
}

// For MaxPool2DGrad(gradient, x).
struct MaxGradImage {
  MUSTER_INLINE static void Run(const Image& image, const float* gradient,
                                const float* x, float* best, int32_t* at,
                                float* dx) {
    std::fill_n(dx, image.input_elements(), 0.0f);
    FindMaxima(image, x, best, at, [&](int64_t output) {
      for (int64_t c = 0; c < image.g.channels; ++c) {
        dx[at[c] + c] += gradient[output + c];
      }
    });
  }
};

// For MaxPool2DSelect(values, x).
struct MaxSelectImage {
  MUSTER_INLINE static void Run(const Image& image, const float* values,
                                const float* x, float* best, int32_t* at,
                                float* y) {
    FindMaxima(image, x, best, at, [&](int64_t output) {
      for (int64_t c = 0; c < image.g.channels; ++c) {
        y[output + c] = values[at[c] + c];
      }
    });
  }
};

struct AverageImage {
  MUSTER_INLINE static void Run(const Image& image, const float* x,
                                const float*, float*, int32_t*, float* y) {
    const int64_t channels = image.g.channels;
    image.ForEachWindow(
        [&](int64_t output, const Range& rows, const Range& columns) {
          float* const mean = y + output;
          std::fill_n(mean, channels, 0.0f);
          image.ForEachElement(rows, columns, [&](int64_t input) {
            const float* const row = x + input;
            MUSTER_INDEPENDENT_ITERATIONS
            for (int64_t c = 0; c < channels; ++c) mean[c] += row[c];
          });
          const auto count = static_cast<float>(rows.size() * columns.size());
          for (int64_t c = 0; c < channels; ++c) mean[c] /= count;
        });
  }
};

// For AveragePool2DGrad(gradient, like).
struct AverageGradImage {
  MUSTER_INLINE static void Run(const Image& image, const float* gradient,
                                const float*, float*, int32_t*, float* dx) {
    const int64_t channels = image.g.channels;
    std::fill_n(dx, image.input_elements(), 0.0f);
    image.ForEachWindow(
        [&](int64_t output, const Range& rows, const Range& columns) {
          const auto count = static_cast<float>(rows.size() * columns.size());
          image.ForEachElement(rows, columns, [&](int64_t input) {
            float* const row = dx + input;
            MUSTER_INDEPENDENT_ITERATIONS
            for (int64_t c = 0; c < channels; ++c) {
              row[c] += gradient[output + c] / count;
            }
          });
        });
  }
};

// kIsGradient: input 0 has the type of the pooled images, the output that of
// the images. kSeesImages: input 1 holds the images.
template <typename Body, bool kIsGradient, bool kSeesImages>
class PoolKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec,
                                                        int thread_count) {
    const TensorType& images = kIsGradient ? spec.outputs[0] : spec.inputs[0];
    ASSIGN_OR_RETURN(const PoolGeometry geometry,
                     PoolGeometry::Of(spec, images));
    const Image image = {geometry};
    if (images.dtype != DType::kFloat32 || geometry.batch == 0 ||
        image.output_elements() == 0 || image.input_elements() > INT32_MAX) {
      return absl::UnimplementedError(
          "float32 and fewer than 2^31 elements only");
    }
    return std::unique_ptr<Kernel>(new PoolKernel(image, thread_count));
  }

  size_t scratch_bytes() const override {
    return kSeesImages ? thread_count_ * PartScratchBytes() : 0;
  }

  absl::Status Run(const KernelArguments& arguments) override {
    const int64_t pooled = image_.output_elements();
    const int64_t whole = image_.input_elements();
    const int64_t batch = image_.g.batch;
    const float* const in = arguments.inputs[0]->flat<float>().data();
    const float* const x =
        kSeesImages ? arguments.inputs[1]->flat<float>().data() : nullptr;
    float* const out = arguments.outputs[0]->mutable_flat<float>().data();
    RunParts(thread_count_, [&](int part) {
      float* best = nullptr;
      int32_t* at = nullptr;
      if (kSeesImages) {
        uint8_t* const scratch =
            arguments.scratch.data() + part * PartScratchBytes();
        best = reinterpret_cast<float*>(scratch);
        at = reinterpret_cast<int32_t*>(best + image_.g.channels);
      }
      const int64_t end = batch * (part + 1) / thread_count_;
      for (int64_t n = batch * part / thread_count_; n < end; ++n) {
        RunVectorized<OneImage>(&image_,
                                in + n * (kIsGradient ? pooled : whole),
                                x == nullptr ? nullptr : x + n * whole, best,
                                at, out + n * (kIsGradient ? whole : pooled));
      }
    });
    return absl::OkStatus();
  }

 private:
  struct OneImage {
    MUSTER_INLINE static void Run(const Image* image, const float* in,
                                  const float* x, float* best, int32_t* at,
                                  float* out) {
      Body::Run(*image, in, x, best, at, out);
    }
  };

  PoolKernel(const Image& image, int thread_count)
      : image_(image),
        thread_count_(static_cast<int>(std::min<int64_t>(
            IntraOpThreadCount(thread_count), image.g.batch))) {}

  // Rounded up to cache lines.
  size_t PartScratchBytes() const {
    const size_t bytes = image_.g.channels * (sizeof(float) + sizeof(int32_t));
    return (bytes + 63) / 64 * 64;
  }

  const Image image_;
  const int thread_count_;
};

}  // namespace

namespace internal {

void RegisterCpuPoolKernels(KernelRegistry* registry) {
  registry->Register("MaxPool2D", PoolKernel<MaxImage, false, false>::Create);
  registry->Register("MaxPool2DGrad",
                     PoolKernel<MaxGradImage, true, true>::Create);
  registry->Register("MaxPool2DSelect",
                     PoolKernel<MaxSelectImage, false, true>::Create);
  registry->Register("AveragePool2D",
                     PoolKernel<AverageImage, false, false>::Create);
  registry->Register("AveragePool2DGrad",
                     PoolKernel<AverageGradImage, true, false>::Create);
}

}  // namespace internal
}  // namespace muster
