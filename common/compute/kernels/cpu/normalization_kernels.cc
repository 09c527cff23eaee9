#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/kernels/cpu/batch_moments.h"
#include "common/compute/kernels/cpu/fused_relu.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// Batch normalization of float32 images, channels last.
//
//   BatchNormTraining(x, scale, offset) -> y, mean, variance
//   BatchNormTrainingGrad(gradient, x, scale, mean, variance)
//     -> gradients of x, scale, offset
//   BatchNormInference(x, scale, offset, mean, variance) -> y
// and the ops into which the runtime's rewrites fuse a following Relu or Relu6:
//   FusedBatchNormTraining{activation}, FusedBatchNormInference{activation},
//   FusedBatchNormTrainingGrad{activation}(..., offset), which recomputes
//     from x where the activation passes gradients.
//
// Sums are computed block by block. The block size, and so the bits of the
// result, do not depend on the number of threads.
namespace muster {
namespace {

using internal::FusedRelu;

struct BlockedRows {
  explicit BlockedRows(const Shape& x)
      : count(x.ElementCountInRange(0, x.rank() - 1)),
        channels(x.dim(x.rank() - 1)),
        block(MomentsBlockRows(channels)) {}

  int64_t block_count() const { return (count + block - 1) / block; }

  int64_t count;
  int64_t channels;
  int64_t block;  // Number of rows.
};

// Pointers are named as in the signatures above. Each function processes `rows`
// rows of `channels` channels.

template <FusedRelu kActivation>
MUSTER_INLINE float Activated(float x) {
  // Propagates NaN.
  if (kActivation != FusedRelu::kNone) x = x < 0 ? 0 : x;
  if (kActivation == FusedRelu::kRelu6) x = x > 6 ? 6 : x;
  return x;
}

template <FusedRelu kActivation>
MUSTER_INLINE float ActivationGradient(float gradient, float y) {
  if (kActivation == FusedRelu::kRelu) return y > 0 ? gradient : 0;
  if (kActivation == FusedRelu::kRelu6) {
    return ((y > 0) & (y < 6)) ? gradient : 0;
  }
  return gradient;
}

// The input of the activation. Forward and backward use the same expression, so
// that both find the activation active for the same elements.
MUSTER_INLINE float Normalized(float x, float mean, float factor,
                               float offset) {
  return (x - mean) * factor + offset;
}

template <FusedRelu kActivation>
struct NormalizeChannels {
  MUSTER_INLINE static void Run(int64_t rows, int64_t channels, const float* x,
                                const float* mean, const float* factor,
                                const float* offset, float* y) {
    for (int64_t r = 0; r < rows; ++r, x += channels, y += channels) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < channels; ++c) {
        y[c] = Activated<kActivation>(
            Normalized(x[c], mean[c], factor[c], offset[c]));
      }
    }
  }
};

// The sums of the gradient and of its product with the distance from the mean.
template <FusedRelu kActivation>
struct SumGradients {
  MUSTER_INLINE static void Run(int64_t rows, int64_t channels, const float* dy,
                                const float* x, const float* mean,
                                const float* factor, const float* offset,
                                float* sums, float* weighted_sums) {
    for (int64_t c = 0; c < channels; ++c) sums[c] = weighted_sums[c] = 0;
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2, x += 2 * channels, dy += 2 * channels) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < channels; ++c) {
        const float x0 = x[c];
        const float x1 = x[c + channels];
        const float first = ActivationGradient<kActivation>(
            dy[c], Normalized(x0, mean[c], factor[c], offset[c]));
        const float second = ActivationGradient<kActivation>(
            dy[c + channels], Normalized(x1, mean[c], factor[c], offset[c]));
        sums[c] += first + second;
        weighted_sums[c] += first * (x0 - mean[c]) + second * (x1 - mean[c]);
      }
    }
    for (; r < rows; ++r, x += channels, dy += channels) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < channels; ++c) {
        const float gradient = ActivationGradient<kActivation>(
            dy[c], Normalized(x[c], mean[c], factor[c], offset[c]));
        sums[c] += gradient;
        weighted_sums[c] += gradient * (x[c] - mean[c]);
      }
    }
  }
};

// dx = factor * (dy - mean_gradient - slope * (x - mean))
template <FusedRelu kActivation>
struct InputGradients {
  MUSTER_INLINE static void Run(int64_t rows, int64_t channels, const float* dy,
                                const float* x, const float* mean,
                                const float* factor, const float* offset,
                                const float* mean_gradient, const float* slope,
                                float* dx) {
    for (int64_t r = 0; r < rows; ++r) {
      MUSTER_INDEPENDENT_ITERATIONS
      for (int64_t c = 0; c < channels; ++c) {
        const float gradient = ActivationGradient<kActivation>(
            dy[c], Normalized(x[c], mean[c], factor[c], offset[c]));
        dx[c] = factor[c] *
                (gradient - mean_gradient[c] - slope[c] * (x[c] - mean[c]));
      }
      x += channels;
      dy += channels;
      dx += channels;
    }
  }
};

class BatchNormKernel : public Kernel {
 public:
  BatchNormKernel(const KernelSpec& spec, int thread_count)
      : rows_(spec.inputs[0].shape),
        epsilon_(spec.attributes.GetOr("epsilon", 0.0)),
        thread_count_(IntraOpThreadCount(thread_count)) {}

 protected:
  // Calls body(first row, rows, block) for every block, on all threads.
  template <typename Body>
  void ForEachBlock(Body body) {
    const int64_t blocks = rows_.block_count();
    const int threads =
        static_cast<int>(std::min<int64_t>(thread_count_, blocks));
    RunParts(threads, [&](int part) {
      const int64_t end = blocks * (part + 1) / threads;
      for (int64_t b = blocks * part / threads; b < end; ++b) {
        const int64_t first = b * rows_.block;
        body(first, std::min(rows_.block, rows_.count - first), b);
      }
    });
  }

  float Factor(float scale, float variance) const {
    return static_cast<float>(scale / std::sqrt(variance + epsilon_));
  }

  const BlockedRows rows_;
  const double epsilon_;
  const int thread_count_;
};

template <FusedRelu kActivation>
class TrainingKernel : public BatchNormKernel {
 public:
  using BatchNormKernel::BatchNormKernel;

  size_t scratch_bytes() const override {
    return (2 * rows_.block_count() + 1) * rows_.channels * sizeof(float);
  }

  absl::Status Run(const KernelArguments& arguments) override {
    const float* const x = arguments.inputs[0]->flat<float>().data();
    const float* const scale = arguments.inputs[1]->flat<float>().data();
    const float* const offset = arguments.inputs[2]->flat<float>().data();
    float* const y = arguments.outputs[0]->mutable_flat<float>().data();
    float* const mean = arguments.outputs[1]->mutable_flat<float>().data();
    float* const variance = arguments.outputs[2]->mutable_flat<float>().data();
    const int64_t channels = rows_.channels;
    auto* const factor = reinterpret_cast<float*>(arguments.scratch.data());
    float* const means = factor + channels;
    float* const squares = means + rows_.block_count() * channels;

    ForEachBlock([&](int64_t first, int64_t rows, int64_t block) {
      BlockMoments(rows, channels, x + first * channels,
                   means + block * channels, squares + block * channels);
    });
    CombineMoments(
        rows_.block_count(), channels, means, squares,
        [this](int64_t block) {
          return std::min(rows_.block, rows_.count - block * rows_.block);
        },
        mean, variance);
    for (int64_t c = 0; c < channels; ++c) {
      factor[c] = Factor(scale[c], variance[c]);
    }
    ForEachBlock([&](int64_t first, int64_t rows, int64_t) {
      RunVectorized<NormalizeChannels<kActivation>>(
          rows, channels, x + first * channels, static_cast<const float*>(mean),
          static_cast<const float*>(factor), offset, y + first * channels);
    });
    return absl::OkStatus();
  }
};

template <FusedRelu kActivation>
class TrainingGradKernel : public BatchNormKernel {
 public:
  using BatchNormKernel::BatchNormKernel;

  size_t scratch_bytes() const override {
    return (2 * rows_.block_count() + 3) * rows_.channels * sizeof(float);
  }
  bool MayShareOutputWithInput(int input) const override { return input == 0; }

  absl::Status Run(const KernelArguments& arguments) override {
    const auto input = [&](int i) {
      return arguments.inputs[i]->flat<float>().data();
    };
    const float* const dy = input(0);
    const float* const x = input(1);
    const float* const mean = input(3);
    const int64_t channels = rows_.channels;
    auto* const factor = reinterpret_cast<float*>(arguments.scratch.data());
    float* const mean_gradient = factor + channels;
    float* const slope = mean_gradient + channels;
    float* const sums = slope + channels;
    float* const weighted = sums + rows_.block_count() * channels;
    for (int64_t c = 0; c < channels; ++c) {
      factor[c] = Factor(input(2)[c], input(4)[c]);
    }
    // Without an activation the offset is not read.
    const float* const offset =
        kActivation == FusedRelu::kNone ? mean : input(5);
    ForEachBlock([&](int64_t first, int64_t rows, int64_t block) {
      RunVectorized<SumGradients<kActivation>>(
          rows, channels, dy + first * channels, x + first * channels, mean,
          static_cast<const float*>(factor), offset, sums + block * channels,
          weighted + block * channels);
    });
    float* const dx = arguments.outputs[0]->mutable_flat<float>().data();
    float* const dscale = arguments.outputs[1]->mutable_flat<float>().data();
    float* const doffset = arguments.outputs[2]->mutable_flat<float>().data();
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      double weighted_sum = 0;
      for (int64_t b = 0; b < rows_.block_count(); ++b) {
        sum += sums[b * channels + c];
        weighted_sum += weighted[b * channels + c];
      }
      const double spread = input(4)[c] + epsilon_;
      const auto count = static_cast<double>(rows_.count);
      doffset[c] = static_cast<float>(sum);
      dscale[c] = static_cast<float>(weighted_sum / std::sqrt(spread));
      mean_gradient[c] = static_cast<float>(sum / count);
      slope[c] = static_cast<float>(weighted_sum / spread / count);
    }
    ForEachBlock([&](int64_t first, int64_t rows, int64_t) {
      RunVectorized<InputGradients<kActivation>>(
          rows, channels, dy + first * channels, x + first * channels, mean,
          static_cast<const float*>(factor), offset,
          static_cast<const float*>(mean_gradient),
          static_cast<const float*>(slope), dx + first * channels);
    });
    return absl::OkStatus();
  }
};

template <FusedRelu kActivation>
class InferenceKernel : public BatchNormKernel {
 public:
  using BatchNormKernel::BatchNormKernel;

  size_t scratch_bytes() const override {
    return rows_.channels * sizeof(float);
  }
  bool MayShareOutputWithInput(int input) const override { return input == 0; }

  absl::Status Run(const KernelArguments& arguments) override {
    const auto input = [&](int i) {
      return arguments.inputs[i]->flat<float>().data();
    };
    const float* const x = input(0);
    const float* const offset = input(2);
    const float* const mean = input(3);
    const int64_t channels = rows_.channels;
    auto* const factor = reinterpret_cast<float*>(arguments.scratch.data());
    for (int64_t c = 0; c < channels; ++c) {
      factor[c] = Factor(input(1)[c], input(4)[c]);
    }
    float* const y = arguments.outputs[0]->mutable_flat<float>().data();
    ForEachBlock([&](int64_t first, int64_t rows, int64_t) {
      RunVectorized<NormalizeChannels<kActivation>>(
          rows, channels, x + first * channels, mean,
          static_cast<const float*>(factor), offset, y + first * channels);
    });
    return absl::OkStatus();
  }
};

template <template <FusedRelu> typename K>
absl::StatusOr<std::unique_ptr<Kernel>> MakeBatchNorm(const KernelSpec& spec,
                                                      int thread_count) {
  for (const TensorType& type : spec.inputs) {
    if (type.dtype != DType::kFloat32 || type.shape.element_count() == 0) {
      return absl::UnimplementedError("float32 with elements only");
    }
  }
  ASSIGN_OR_RETURN(const FusedRelu relu,
                   internal::FindFusedRelu(
                       spec.attributes.GetOr<std::string>("activation", "")));
  switch (relu) {
    case FusedRelu::kNone:
      return std::make_unique<K<FusedRelu::kNone>>(spec, thread_count);
    case FusedRelu::kRelu:
      return std::make_unique<K<FusedRelu::kRelu>>(spec, thread_count);
    case FusedRelu::kRelu6:
      return std::make_unique<K<FusedRelu::kRelu6>>(spec, thread_count);
  }
  return absl::UnimplementedError("unsupported activation");
}

}  // namespace

namespace internal {

void RegisterCpuNormalizationKernels(KernelRegistry* registry) {
  for (const std::string prefix : {"", "Fused"}) {
    registry->Register(prefix + "BatchNormTraining",
                       MakeBatchNorm<TrainingKernel>);
    registry->Register(prefix + "BatchNormTrainingGrad",
                       MakeBatchNorm<TrainingGradKernel>);
    registry->Register(prefix + "BatchNormInference",
                       MakeBatchNorm<InferenceKernel>);
  }
}

}  // namespace internal
}  // namespace muster
