#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/cpu/lanes.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/float16.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// Layer normalization, computed in float32.
//
//   LayerNorm(x, scale, offset) -> y, mean, inverse
//   LayerNormGrad(gradient, x, scale, mean, inverse)
//     -> gradients of x, scale, offset
//
// A row stays in the L1 cache between the passes over it. Sums over rows are
// computed block by block. The blocks, and so the bits of the result, do not
// depend on the number of threads.
namespace muster {
namespace {

MUSTER_INLINE FloatLanes LoadLanes(const float* x) {
  FloatLanes lanes;
  std::memcpy(&lanes, x, sizeof(lanes));
  return lanes;
}

MUSTER_INLINE float SumOfLanes(FloatLanes lanes) {
  for (int64_t width = kLaneCount / 2; width > 0; width /= 2) {
    for (int64_t k = 0; k < width; ++k) lanes[k] = lanes[k] + lanes[k + width];
  }
  return lanes[0];
}

// Returns a row of float32: `in` itself, or its elements converted into `room`.
template <typename T>
MUSTER_INLINE const float* WidenRow(int64_t count, const T* in, float* room) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < count; ++i) room[i] = static_cast<float>(in[i]);
  return room;
}
template <>
MUSTER_INLINE const float* WidenRow(int64_t, const float* in, float*) {
  return in;
}

MUSTER_INLINE float SumDistances(int64_t count, const float* x, float center) {
  FloatLanes lanes = {};
  int64_t i = 0;
  for (; i + kLaneCount <= count; i += kLaneCount) {
    lanes += LoadLanes(x + i) - center;
  }
  float sum = SumOfLanes(lanes);
  for (; i < count; ++i) sum += x[i] - center;
  return sum;
}

MUSTER_INLINE float SumSquares(int64_t count, const float* x, float center) {
  FloatLanes lanes = {};
  int64_t i = 0;
  for (; i + kLaneCount <= count; i += kLaneCount) {
    const FloatLanes distance = LoadLanes(x + i) - center;
    lanes += distance * distance;
  }
  float sum = SumOfLanes(lanes);
  for (; i < count; ++i) sum += (x[i] - center) * (x[i] - center);
  return sum;
}

// Pointers are named as in the signatures above. y and dx may overwrite inputs.
// `room` has space for one row.
template <typename T>
struct NormalizeFeatures {
  MUSTER_INLINE static void Run(int64_t rows, int64_t features, const T* x,
                                const float* scale, const float* offset,
                                double epsilon, T* y, float* means,
                                float* inverses, float* room) {
    const auto count = static_cast<double>(features);
    for (int64_t r = 0; r < rows; ++r, x += features, y += features) {
      const float* const row = WidenRow(features, x, room);
      // Summing distances from an element of the row keeps precision if the row
      // is far from zero.
      const float first = row[0];
      const double mean = first + SumDistances(features, row, first) / count;
      const float center = static_cast<float>(mean);
      const double rest = mean - center;
      const double variance =
          SumSquares(features, row, center) / count - rest * rest;
      const double inverse =
          1 / std::sqrt((variance < 0 ? 0 : variance) + epsilon);
      const auto factor = static_cast<float>(inverse);
      const auto shift = static_cast<float>(-rest * inverse);
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < features; ++i) {
        y[i] = static_cast<T>(((row[i] - center) * factor + shift) * scale[i] +
                              offset[i]);
      }
      means[r] = center;
      inverses[r] = factor;
    }
  }
};

// Adds the terms of the gradients of offset and scale to `sums` and
// `weighted_sums`. `room` has space for two rows.
template <typename T>
struct GradientRows {
  MUSTER_INLINE static void Run(int64_t rows, int64_t features, const T* dy,
                                const T* x, const float* scale,
                                const float* means, const float* inverses,
                                T* dx, float* sums, float* weighted_sums,
                                float* room) {
    const auto count = static_cast<float>(features);
    for (int64_t r = 0; r < rows; ++r) {
      const float* const dy_row = WidenRow(features, dy, room);
      const float* const x_row = WidenRow(features, x, room + features);
      const float mean = means[r];
      const float inverse = inverses[r];
      FloatLanes lanes = {};
      FloatLanes weighted_lanes = {};
      int64_t i = 0;
      for (; i + kLaneCount <= features; i += kLaneCount) {
        const FloatLanes scaled = LoadLanes(dy_row + i) * LoadLanes(scale + i);
        lanes += scaled;
        weighted_lanes += scaled * (LoadLanes(x_row + i) - mean);
      }
      float sum = SumOfLanes(lanes);
      float weighted_sum = SumOfLanes(weighted_lanes);
      for (; i < features; ++i) {
        sum += dy_row[i] * scale[i];
        weighted_sum += dy_row[i] * scale[i] * (x_row[i] - mean);
      }
      const float along = sum / count;
      const float slope = weighted_sum * inverse / count;
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t k = 0; k < features; ++k) {
        const float gradient = dy_row[k];
        const float normalized = (x_row[k] - mean) * inverse;
        sums[k] += gradient;
        weighted_sums[k] += gradient * normalized;
        dx[k] = static_cast<T>(
            (gradient * scale[k] - along - normalized * slope) * inverse);
      }
      dy += features;
      x += features;
      dx += features;
    }
  }
};

// Adds `from` to the sums in `to` and sets `from` to 0.
struct MoveSums {
  MUSTER_INLINE static void Run(int64_t count, float* from, double* to) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      to[i] += from[i];
      from[i] = 0;
    }
  }
};

struct AddSums {
  MUSTER_INLINE static void Run(int64_t count, const double* from, double* to) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) to[i] += from[i];
  }
};

class LayerNormKernel : public Kernel {
 public:
  LayerNormKernel(const KernelSpec& spec, int scale_input, int64_t block_rows,
                  int thread_count)
      : features_(spec.inputs[scale_input].shape.element_count()),
        rows_(spec.inputs[0].shape.element_count() / features_),
        block_(std::max(block_rows, kBlockElements / features_)),
        block_count_((rows_ + block_ - 1) / block_),
        thread_count_(static_cast<int>(std::min<int64_t>(
            IntraOpThreadCount(thread_count), block_count_))) {}

 protected:
  // A block of this size fits into the L2 cache.
  static constexpr int64_t kBlockElements = 16 << 10;

  // Calls body(thread, block, first row, rows) for every block, on all threads.
  template <typename Body>
  void ForEachBlock(Body body) {
    RunParts(thread_count_, [&](int thread) {
      const int64_t end = block_count_ * (thread + 1) / thread_count_;
      for (int64_t b = block_count_ * thread / thread_count_; b < end; ++b) {
        body(thread, b, b * block_, std::min(block_, rows_ - b * block_));
      }
    });
  }

  static const float* Floats(const KernelArguments& arguments, int input) {
    return arguments.inputs[input]->flat<float>().data();
  }

  const int64_t features_;
  const int64_t rows_;
  const int64_t block_;  // Number of rows.
  const int64_t block_count_;
  const int thread_count_;
};

template <typename T>
class LayerNormForwardKernel : public LayerNormKernel {
 public:
  LayerNormForwardKernel(const KernelSpec& spec, int thread_count)
      : LayerNormKernel(spec, 1, 1, thread_count),
        epsilon_(spec.attributes.GetOr("epsilon", 0.0)) {}

  size_t scratch_bytes() const override {
    return sizeof(T) == sizeof(float)
               ? 0
               : thread_count_ * features_ * sizeof(float);
  }
  bool MayShareOutputWithInput(int input) const override { return input == 0; }

  absl::Status Run(const KernelArguments& arguments) override {
    const T* const x = arguments.inputs[0]->flat<T>().data();
    T* const y = arguments.outputs[0]->mutable_flat<T>().data();
    float* const mean = arguments.outputs[1]->mutable_flat<float>().data();
    float* const inverse = arguments.outputs[2]->mutable_flat<float>().data();
    auto* const scratch = reinterpret_cast<float*>(arguments.scratch.data());
    ForEachBlock([&](int thread, int64_t, int64_t first, int64_t rows) {
      RunVectorized<NormalizeFeatures<T>>(
          rows, features_, x + first * features_, Floats(arguments, 1),
          Floats(arguments, 2), epsilon_, y + first * features_, mean + first,
          inverse + first,
          scratch_bytes() == 0 ? nullptr : scratch + thread * features_);
    });
    return absl::OkStatus();
  }

 private:
  const double epsilon_;
};

template <typename T>
class LayerNormGradientKernel : public LayerNormKernel {
 public:
  LayerNormGradientKernel(const KernelSpec& spec, int thread_count)
      : LayerNormKernel(spec, 2, BlockRows(spec), thread_count) {}

  size_t scratch_bytes() const override {
    return block_count_ * 2 * features_ * sizeof(double) +
           thread_count_ * kRoomRows * features_ * sizeof(float);
  }
  bool MayShareOutputWithInput(int input) const override { return input <= 1; }

  absl::Status Run(const KernelArguments& arguments) override {
    const T* const dy = arguments.inputs[0]->flat<T>().data();
    const T* const x = arguments.inputs[1]->flat<T>().data();
    T* const dx = arguments.outputs[0]->mutable_flat<T>().data();
    auto* const sums = reinterpret_cast<double*>(arguments.scratch.data());
    auto* const rooms =
        reinterpret_cast<float*>(sums + block_count_ * 2 * features_);
    ForEachBlock([&](int thread, int64_t block, int64_t first, int64_t rows) {
      double* const block_sums = sums + block * 2 * features_;
      float* const room = rooms + thread * kRoomRows * features_;
      std::fill_n(block_sums, 2 * features_, 0.0);
      std::fill_n(room, 2 * features_, 0.0f);
      for (const int64_t end = first + rows; first < end; first += kRun) {
        RunVectorized<GradientRows<T>>(
            std::min(kRun, end - first), features_, dy + first * features_,
            x + first * features_, Floats(arguments, 2),
            Floats(arguments, 3) + first, Floats(arguments, 4) + first,
            dx + first * features_, room, room + features_,
            room + 2 * features_);
        RunVectorized<MoveSums>(2 * features_, room, block_sums);
      }
    });
    for (int64_t b = 1; b < block_count_; ++b) {
      RunVectorized<AddSums>(
          2 * features_, static_cast<const double*>(sums + b * 2 * features_),
          sums);
    }
    const auto dscale = arguments.outputs[1]->mutable_flat<float>();
    const auto doffset = arguments.outputs[2]->mutable_flat<float>();
    for (int64_t i = 0; i < features_; ++i) {
      doffset[i] = static_cast<float>(sums[i]);
      dscale[i] = static_cast<float>(sums[features_ + i]);
    }
    return absl::OkStatus();
  }

 private:
  // Number of rows that are summed in float32 before the sum is added in double
  // precision.
  static constexpr int64_t kRun = 32;
  // Scratch rows of a thread: two sums of a run, a row of dy and a row of x.
  static constexpr int64_t kRoomRows = 4;

  // Each block has sums for all features, so the number of blocks is limited.
  static int64_t BlockRows(const KernelSpec& spec) {
    constexpr int64_t kBlocksMax = 32;
    constexpr int64_t kRowsMin = 4;
    const int64_t rows = spec.inputs[3].shape.element_count();
    return std::max(kRowsMin, (rows + kBlocksMax - 1) / kBlocksMax);
  }
};

template <template <typename> typename K>
absl::StatusOr<std::unique_ptr<Kernel>> MakeLayerNorm(const KernelSpec& spec,
                                                      int thread_count) {
  if (spec.inputs[0].shape.element_count() == 0 ||
      spec.inputs.back().dtype != DType::kFloat32) {
    return absl::UnimplementedError(
        "elements, and scales and statistics of float32 only");
  }
  switch (spec.inputs[0].dtype) {
    case DType::kFloat32:
      return std::make_unique<K<float>>(spec, thread_count);
    case DType::kBfloat16:
      return std::make_unique<K<bfloat16>>(spec, thread_count);
    case DType::kFloat16:
      return std::make_unique<K<float16>>(spec, thread_count);
    default:
      return absl::UnimplementedError("float32, bfloat16 and float16 only");
  }
}

}  // namespace

namespace internal {

void RegisterCpuLayerNormKernels(KernelRegistry* registry) {
  registry->Register("LayerNorm", MakeLayerNorm<LayerNormForwardKernel>);
  registry->Register("LayerNormGrad", MakeLayerNorm<LayerNormGradientKernel>);
}

}  // namespace internal
}  // namespace muster
