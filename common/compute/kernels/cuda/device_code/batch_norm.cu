// Batch normalization of rows of channels. Blocks sum up parts of the rows, a
// kernel over channels combines the parts into factors of each channel, and a
// kernel over elements applies the factors.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/device_code/row_blocks.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

using Parameters = BatchNormParameters;

// A thread's share of its block's part: kVector channels from `channel` on, in
// every blockDim.y-th row.
template <int kVector>
struct Share {
  __device__ explicit Share(const Parameters& p)
      : channel((static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) *
                kVector),
        is_channel(channel < p.channels),
        first_row(blockIdx.y * p.part_rows),
        rows(p.rows - first_row < p.part_rows ? p.rows - first_row
                                              : p.part_rows),
        stride(blockDim.y * p.channels) {}

  // Returns the position of a row of the part.
  __device__ int64_t At(const Parameters& p, int64_t row) const {
    return (first_row + row) * p.channels + channel;
  }

  // Returns how many of the next kRun rows, from `row` on, exist.
  template <int kRun>
  __device__ int CountFrom(int64_t row) const {
    int count = 1;
    MUSTER_UNROLL
    for (int i = 1; i < kRun; ++i) {
      count += row + static_cast<int64_t>(i) * blockDim.y < rows ? 1 : 0;
    }
    return count;
  }

  int64_t channel;
  bool is_channel;
  int64_t first_row;
  int64_t rows;    // Number of rows of the part.
  int64_t stride;  // Distance between the rows of a thread.
};

// Loads `count` of kRun packs. All loads are in flight at the same time.
template <typename T, int kVector, int kRun>
__device__ void LoadRun(const T* from, int64_t stride, int count,
                        bool is_aligned, Pack<T, kVector> (&packs)[kRun]) {
  if constexpr (kVector > 1) {
    if (!is_aligned) {
      MUSTER_UNROLL
      for (int i = 0; i < kRun * kVector; ++i) {
        if (i / kVector < count) {
          packs[i / kVector].at[i % kVector] =
              from[i / kVector * stride + i % kVector];
        }
      }
      return;
    }
  }
  MUSTER_UNROLL
  for (int i = 0; i < kRun; ++i) {
    if (i < count) {
      packs[i] = *reinterpret_cast<const Pack<T, kVector>*>(from + i * stride);
    }
  }
}

template <typename T, int kVector, int kRun>
__device__ void StoreRun(T* to, int64_t stride, int count, bool is_aligned,
                         const Pack<T, kVector> (&packs)[kRun]) {
  if constexpr (kVector > 1) {
    if (!is_aligned) {
      MUSTER_UNROLL
      for (int i = 0; i < kRun * kVector; ++i) {
        if (i / kVector < count) {
          to[i / kVector * stride + i % kVector] =
              packs[i / kVector].at[i % kVector];
        }
      }
      return;
    }
  }
  MUSTER_UNROLL
  for (int i = 0; i < kRun; ++i) {
    if (i < count) {
      *reinterpret_cast<Pack<T, kVector>*>(to + i * stride) = packs[i];
    }
  }
}

__device__ double* PartValue(const Parameters& p, int which, int64_t part,
                             int64_t channel) {
  return p.part_values + (which * p.part_count + part) * p.channels + channel;
}

// Writes the mean of each channel of a part and the sum of squared distances
// from that mean.
//
// Sums a run of elements as distances from its first element, in the type of
// elements. Because the reference is an element of the run, the sum of squares
// is at most kRun times the sum of squares about the mean, which bounds the
// amplification of rounding. Sums runs as distances from the part's first
// element, in double precision.
template <typename T, int kVector>
__device__ void SumMoments(const Parameters& p, double* shared) {
  using C = ComputeOf<T>;
  constexpr int kRun = 8;
  const Share<kVector> share(p);
  double sums[2 * kVector] = {};
  double base[kVector] = {};
  if (share.is_channel) {
    const T* const x = static_cast<const T*>(p.x.data);
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) {
      base[v] = static_cast<C>(x[share.At(p, 0) + v]);
    }
    for (int64_t row = threadIdx.y; row < share.rows;
         row += int64_t{kRun} * blockDim.y) {
      const int count = share.template CountFrom<kRun>(row);
      Pack<T, kVector> packs[kRun];
      LoadRun(x + share.At(p, row), share.stride, count, p.is_aligned, packs);
      MUSTER_UNROLL
      for (int v = 0; v < kVector; ++v) {
        const C first = static_cast<C>(packs[0].at[v]);
        C sum = C(0);
        C squares = C(0);
        MUSTER_UNROLL
        for (int i = 1; i < kRun; ++i) {
          if (i >= count) continue;
          const C distance = static_cast<C>(packs[i].at[v]) - first;
          sum += distance;
          squares += distance * distance;
        }
        const double shift = first - base[v];
        const double shifts = shift * count;
        sums[v] += sum + shifts;
        sums[kVector + v] += squares + shift * (2.0 * sum + shifts);
      }
    }
  }
  SumColumns(sums, shared);
  if (threadIdx.y != 0 || !share.is_channel) return;
  const double inverse_count = 1 / static_cast<double>(share.rows);
  MUSTER_UNROLL
  for (int v = 0; v < kVector; ++v) {
    const double distance = sums[v] * inverse_count;
    const double squares = sums[kVector + v] - sums[v] * distance;
    *PartValue(p, 0, blockIdx.y, share.channel + v) = base[v] + distance;
    *PartValue(p, 1, blockIdx.y, share.channel + v) = squares < 0 ? 0 : squares;
  }
}

template <typename C>
__device__ C Activated(const Parameters& p, C y) {
  if (p.activation == BatchNormActivation::kNone) return y;
  // Propagates NaN.
  y = y < C(0) ? C(0) : y;
  return p.activation == BatchNormActivation::kRelu6 && y > C(6) ? C(6) : y;
}

// Recomputes from x whether the activation passes the gradient: rounds y like
// the stored output of the normalization.
template <typename T, typename C>
__device__ C ActivationGradient(const Parameters& p, C dy, C distance, C factor,
                                C shift) {
  if (p.activation == BatchNormActivation::kNone) return dy;
  const C y = static_cast<C>(ConvertNumber<T>(distance * factor + shift));
  const bool is_passed =
      y > C(0) && (p.activation != BatchNormActivation::kRelu6 || y < C(6));
  return is_passed ? dy : C(0);
}

// Returns the factor of distances from the mean.
__device__ double FactorOf(const Parameters& p, int64_t channel,
                           double variance) {
  return LoadElement<double>(p.scale, channel) / sqrt(variance + p.epsilon);
}

// Writes the sums of dy and of dy (x - mean) of each channel of a part.
template <typename T, int kVector>
__device__ void SumGradients(const Parameters& p, double* shared) {
  using C = ComputeOf<T>;
  constexpr int kRun = 4;
  const Share<kVector> share(p);
  double sums[2 * kVector] = {};
  if (share.is_channel) {
    const T* const gradient = static_cast<const T*>(p.gradient.data);
    const T* const x = static_cast<const T*>(p.x.data);
    C mean[kVector], factor[kVector] = {}, shift[kVector] = {};
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) {
      const int64_t channel = share.channel + v;
      mean[v] = LoadElement<C>(p.mean, channel);
      if (p.activation == BatchNormActivation::kNone) continue;
      factor[v] = static_cast<C>(
          FactorOf(p, channel, LoadElement<double>(p.variance, channel)));
      shift[v] = LoadElement<C>(p.offset, channel);
    }
    for (int64_t row = threadIdx.y; row < share.rows;
         row += int64_t{kRun} * blockDim.y) {
      const int count = share.template CountFrom<kRun>(row);
      const int64_t at = share.At(p, row);
      Pack<T, kVector> gradients[kRun];
      Pack<T, kVector> packs[kRun];
      LoadRun(gradient + at, share.stride, count, p.is_aligned, gradients);
      LoadRun(x + at, share.stride, count, p.is_aligned, packs);
      MUSTER_UNROLL
      for (int v = 0; v < kVector; ++v) {
        C sum = C(0);
        C weighted = C(0);
        MUSTER_UNROLL
        for (int i = 0; i < kRun; ++i) {
          if (i >= count) continue;
          const C distance = static_cast<C>(packs[i].at[v]) - mean[v];
          const C dy =
              ActivationGradient<T>(p, static_cast<C>(gradients[i].at[v]),
                                    distance, factor[v], shift[v]);
          sum += dy;
          weighted += dy * distance;
        }
        sums[v] += sum;
        sums[kVector + v] += weighted;
      }
    }
  }
  SumColumns(sums, shared);
  if (threadIdx.y != 0 || !share.is_channel) return;
  MUSTER_UNROLL
  for (int v = 0; v < kVector; ++v) {
    *PartValue(p, 0, blockIdx.y, share.channel + v) = sums[v];
    *PartValue(p, 1, blockIdx.y, share.channel + v) = sums[kVector + v];
  }
}

// Factors of channels have the type in which elements are computed.
__device__ void StoreFactor(const Parameters& p, int which, int64_t channel,
                            double value) {
  const int64_t at = which * p.channels + channel;
  if (p.x.type == ElementType::kFloat64) {
    static_cast<double*>(p.factors)[at] = value;
  } else {
    static_cast<float*>(p.factors)[at] = static_cast<float>(value);
  }
}

template <typename C, int kVector>
__device__ void LoadFactors(const Parameters& p, int which, int64_t channel,
                            C (&factors)[kVector]) {
  MUSTER_UNROLL
  for (int v = 0; v < kVector; ++v) {
    factors[v] =
        static_cast<const C*>(p.factors)[which * p.channels + channel + v];
  }
}

// Returns the value rounded to the type in which elements are computed.
__device__ double Rounded(const Parameters& p, double value) {
  return p.x.type == ElementType::kFloat64 ? value : static_cast<float>(value);
}

// y = (x - center) factor + shift. The shift includes the rounding error of the
// center.
__device__ void StoreApplyFactors(const Parameters& p, int64_t channel,
                                  double mean, double variance) {
  const double center = Rounded(p, mean);
  const double factor = FactorOf(p, channel, variance);
  StoreFactor(p, 0, channel, center);
  StoreFactor(p, 1, channel, factor);
  StoreFactor(
      p, 2, channel,
      LoadElement<double>(p.offset, channel) + (center - mean) * factor);
}

template <typename T, int kVector>
__device__ void Apply(const Parameters& p) {
  using C = ComputeOf<T>;
  constexpr int kRun = 4;
  const Share<kVector> share(p);
  if (!share.is_channel) return;
  C center[kVector], factor[kVector], shift[kVector];
  LoadFactors(p, 0, share.channel, center);
  LoadFactors(p, 1, share.channel, factor);
  LoadFactors(p, 2, share.channel, shift);
  const T* const x = static_cast<const T*>(p.x.data);
  T* const to = static_cast<T*>(p.to.data);
  for (int64_t row = threadIdx.y; row < share.rows;
       row += int64_t{kRun} * blockDim.y) {
    const int count = share.template CountFrom<kRun>(row);
    const int64_t at = share.At(p, row);
    Pack<T, kVector> packs[kRun];
    LoadRun(x + at, share.stride, count, p.is_aligned, packs);
    MUSTER_UNROLL
    for (int i = 0; i < kRun; ++i) {
      MUSTER_UNROLL
      for (int v = 0; v < kVector; ++v) {
        const C distance = static_cast<C>(packs[i].at[v]) - center[v];
        packs[i].at[v] =
            ConvertNumber<T>(Activated(p, distance * factor[v] + shift[v]));
      }
    }
    StoreRun(to + at, share.stride, count, p.is_aligned, packs);
  }
}

// dx = a dy + b (x - mean) + c.
template <typename T, int kVector>
__device__ void ApplyGradient(const Parameters& p) {
  using C = ComputeOf<T>;
  constexpr int kRun = 4;
  const Share<kVector> share(p);
  if (!share.is_channel) return;
  C mean[kVector], a[kVector], b[kVector], c[kVector];
  C factor[kVector] = {}, shift[kVector] = {};
  LoadFactors(p, 0, share.channel, mean);
  LoadFactors(p, 1, share.channel, a);
  LoadFactors(p, 2, share.channel, b);
  LoadFactors(p, 3, share.channel, c);
  if (p.activation != BatchNormActivation::kNone) {
    LoadFactors(p, 4, share.channel, factor);
    LoadFactors(p, 5, share.channel, shift);
  }
  const T* const gradient = static_cast<const T*>(p.gradient.data);
  const T* const x = static_cast<const T*>(p.x.data);
  T* const to = static_cast<T*>(p.to.data);
  for (int64_t row = threadIdx.y; row < share.rows;
       row += int64_t{kRun} * blockDim.y) {
    const int count = share.template CountFrom<kRun>(row);
    const int64_t at = share.At(p, row);
    Pack<T, kVector> gradients[kRun];
    Pack<T, kVector> packs[kRun];
    LoadRun(gradient + at, share.stride, count, p.is_aligned, gradients);
    LoadRun(x + at, share.stride, count, p.is_aligned, packs);
    MUSTER_UNROLL
    for (int i = 0; i < kRun; ++i) {
      MUSTER_UNROLL
      for (int v = 0; v < kVector; ++v) {
        const C distance = static_cast<C>(packs[i].at[v]) - mean[v];
        const C dy =
            ActivationGradient<T>(p, static_cast<C>(gradients[i].at[v]),
                                  distance, factor[v], shift[v]);
        packs[i].at[v] = ConvertNumber<T>(a[v] * dy + (b[v] * distance + c[v]));
      }
    }
    StoreRun(to + at, share.stride, count, p.is_aligned, packs);
  }
}

// Visitors for VisitFloat() and VisitDouble().
struct MomentsSummer {
  template <typename T, int kVector>
  __device__ void operator()() const {
    SumMoments<T, kVector>(p, shared);
  }
  const Parameters& p;
  double* shared;
};
struct GradientsSummer {
  template <typename T, int kVector>
  __device__ void operator()() const {
    SumGradients<T, kVector>(p, shared);
  }
  const Parameters& p;
  double* shared;
};

__device__ double RowsOfPart(const Parameters& p, int64_t part) {
  const int64_t rest = p.rows - part * p.part_rows;
  return static_cast<double>(rest < p.part_rows ? rest : p.part_rows);
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    batch_norm_moments_float(const __grid_constant__ BatchNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[Parameters::kThreads * 8];
  VisitFloat(p.x.type, p.vector, MomentsSummer{p, shared});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    batch_norm_moments_double(const __grid_constant__ BatchNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[Parameters::kThreads * 4];
  VisitDouble(p.vector, MomentsSummer{p, shared});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads, 3)
    batch_norm_sums_float(const __grid_constant__ BatchNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[Parameters::kThreads * 8];
  VisitFloat(p.x.type, p.vector, GradientsSummer{p, shared});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    batch_norm_sums_double(const __grid_constant__ BatchNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[Parameters::kThreads * 4];
  VisitDouble(p.vector, GradientsSummer{p, shared});
}

// Combines the moments of the parts: writes mean and variance, and the factors
// of batch_norm_apply.
extern "C" __global__ void __launch_bounds__(Parameters::kCombineThreads)
    batch_norm_combine_moments(const __grid_constant__ BatchNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[Parameters::kCombineThreads];
  const int64_t c = GlobalThread();
  const bool is_channel = c < p.channels;
  const double count = static_cast<double>(p.rows);
  double sum[1] = {};
  if (is_channel) {
    for (int64_t i = threadIdx.y; i < p.part_count; i += blockDim.y) {
      sum[0] += RowsOfPart(p, i) * *PartValue(p, 0, i, c);
    }
  }
  SumColumns(sum, shared);
  __syncthreads();
  const double mean = shared[threadIdx.x] / count;
  __syncthreads();
  double squares[1] = {};
  if (is_channel) {
    for (int64_t i = threadIdx.y; i < p.part_count; i += blockDim.y) {
      const double distance = *PartValue(p, 0, i, c) - mean;
      squares[0] +=
          *PartValue(p, 1, i, c) + RowsOfPart(p, i) * distance * distance;
    }
  }
  SumColumns(squares, shared);
  if (threadIdx.y != 0 || !is_channel) return;
  const double variance = squares[0] / count;
  StoreElement(p.mean, c, mean);
  StoreElement(p.variance, c, variance);
  if (p.activation == BatchNormActivation::kNone) {
    StoreApplyFactors(p, c, mean, variance);
  } else {
    // Uses the stored, possibly rounded moments: the gradient reads these and
    // must find the activation active for the same elements.
    StoreApplyFactors(p, c, LoadElement<double>(p.mean, c),
                      LoadElement<double>(p.variance, c));
  }
}

// Writes the factors of batch_norm_apply from given moments.
extern "C" __global__ void batch_norm_given(
    const __grid_constant__ BatchNormParameters p) {
  AwaitPrecedingKernel();
  const int64_t c = GlobalThread();
  if (c >= p.channels) return;
  StoreApplyFactors(p, c, LoadElement<double>(p.mean, c),
                    LoadElement<double>(p.variance, c));
}

// Combines the sums of the parts: writes the gradients of scale and offset, and
// the factors of batch_norm_gradient.
extern "C" __global__ void __launch_bounds__(Parameters::kCombineThreads)
    batch_norm_combine_sums(const __grid_constant__ BatchNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[2 * Parameters::kCombineThreads];
  const int64_t c = GlobalThread();
  const bool is_channel = c < p.channels;
  double sums[2] = {};
  if (is_channel) {
    for (int64_t i = threadIdx.y; i < p.part_count; i += blockDim.y) {
      sums[0] += *PartValue(p, 0, i, c);
      sums[1] += *PartValue(p, 1, i, c);
    }
  }
  SumColumns(sums, shared);
  if (threadIdx.y != 0 || !is_channel) return;
  const double inverse =
      1 / sqrt(LoadElement<double>(p.variance, c) + p.epsilon);
  const double weighted = sums[1] * inverse;
  StoreElement(p.scale_gradient, c, weighted);
  StoreElement(p.offset_gradient, c, sums[0]);
  const double a = LoadElement<double>(p.scale, c) * inverse;
  const double along = a / static_cast<double>(p.rows);
  StoreFactor(p, 0, c, LoadElement<double>(p.mean, c));
  StoreFactor(p, 1, c, a);
  StoreFactor(p, 2, c, -along * inverse * weighted);
  StoreFactor(p, 3, c, -along * sums[0]);
  if (p.activation == BatchNormActivation::kNone) return;
  StoreFactor(p, 4, c, FactorOf(p, c, LoadElement<double>(p.variance, c)));
  StoreFactor(p, 5, c, LoadElement<double>(p.offset, c));
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    batch_norm_apply_float(const __grid_constant__ BatchNormParameters p) {
  AwaitPrecedingKernel();
  VisitFloat(p.x.type, p.vector,
             [&]<typename T, int kVector> { Apply<T, kVector>(p); });
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    batch_norm_apply_double(const __grid_constant__ BatchNormParameters p) {
  AwaitPrecedingKernel();
  VisitDouble(p.vector, [&]<typename T, int kVector> { Apply<T, kVector>(p); });
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads, 3)
    batch_norm_gradient_float(const __grid_constant__ BatchNormParameters p) {
  AwaitPrecedingKernel();
  VisitFloat(p.x.type, p.vector,
             [&]<typename T, int kVector> { ApplyGradient<T, kVector>(p); });
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    batch_norm_gradient_double(const __grid_constant__ BatchNormParameters p) {
  AwaitPrecedingKernel();
  VisitDouble(p.vector,
              [&]<typename T, int kVector> { ApplyGradient<T, kVector>(p); });
}

MUSTER_SIMULATED_KERNELS(batch_norm,
                         MUSTER_BARRIER_KERNEL(batch_norm_moments_float),
                         MUSTER_BARRIER_KERNEL(batch_norm_moments_double),
                         MUSTER_BARRIER_KERNEL(batch_norm_sums_float),
                         MUSTER_BARRIER_KERNEL(batch_norm_sums_double),
                         MUSTER_BARRIER_KERNEL(batch_norm_combine_moments),
                         MUSTER_BARRIER_KERNEL(batch_norm_combine_sums),
                         MUSTER_PLAIN_KERNEL(batch_norm_given),
                         MUSTER_PLAIN_KERNEL(batch_norm_apply_float),
                         MUSTER_PLAIN_KERNEL(batch_norm_apply_double),
                         MUSTER_PLAIN_KERNEL(batch_norm_gradient_float),
                         MUSTER_PLAIN_KERNEL(batch_norm_gradient_double))
