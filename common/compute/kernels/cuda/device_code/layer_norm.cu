// Layer normalization of rows of features. The lanes of a block hold a row in
// registers, so the row is read once; rows that are too long are read several
// times. The gradients of scale and offset are sums over rows: blocks sum parts
// of the rows while they compute the gradient of x, and another kernel combines
// the parts.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/element_group.h"
#include "common/compute/kernels/cuda/device_code/layer_norm_parameters.h"
#include "common/compute/kernels/cuda/device_code/row_blocks.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

using Parameters = LayerNormParameters;

constexpr uint32_t kWarp = 32;
// Space for two sums of each warp, twice.
constexpr int kLaneSums = 4 * Parameters::kLongThreads / 32;

// Adds values of the lanes of a row in a fixed order; all lanes get the sums.
// Every thread of the block calls it and increments `turn` for each call.
// Consecutive calls then use different memory, so that one barrier is enough.
template <typename C, int kValues>
__device__ void SumLanes(C (&values)[kValues], C* shared, uint32_t turn) {
  const uint32_t lanes = blockDim.x;
  for (uint32_t i = (lanes < kWarp ? lanes : kWarp) / 2; i > 0; i /= 2) {
    MUSTER_UNROLL
    for (int k = 0; k < kValues; ++k) {
      values[k] += __shfl_xor_sync(~0u, values[k], i);
    }
  }
  if (lanes <= kWarp) return;
  C* const partial = shared + turn % 2 * (kLaneSums / 2);
  if (threadIdx.x % kWarp == 0) {
    MUSTER_UNROLL
    for (int k = 0; k < kValues; ++k) {
      partial[threadIdx.x / kWarp * kValues + k] = values[k];
    }
  }
  __syncthreads();
  MUSTER_UNROLL
  for (int k = 0; k < kValues; ++k) values[k] = partial[k];
  for (uint32_t i = 1; i < lanes / kWarp; ++i) {
    MUSTER_UNROLL
    for (int k = 0; k < kValues; ++k) values[k] += partial[i * kValues + k];
  }
}

template <typename T, int kVector>
__device__ Pack<T, kVector> LoadPack(const T* from, bool is_aligned) {
  if constexpr (kVector > 1) {
    if (!is_aligned) {
      Pack<T, kVector> pack;
      MUSTER_UNROLL
      for (int v = 0; v < kVector; ++v) pack.at[v] = from[v];
      return pack;
    }
  }
  return *reinterpret_cast<const Pack<T, kVector>*>(from);
}

template <typename T, int kVector>
__device__ void StorePack(const Pack<T, kVector>& pack, bool is_aligned,
                          T* to) {
  if constexpr (kVector > 1) {
    if (!is_aligned) {
      MUSTER_UNROLL
      for (int v = 0; v < kVector; ++v) to[v] = pack.at[v];
      return;
    }
  }
  *reinterpret_cast<Pack<T, kVector>*>(to) = pack;
}

template <typename T, typename C, int kVector>
__device__ Pack<T, kVector> PackOf(const C (&values)[kVector]) {
  if constexpr (sizeof(T) == 2 && kVector > 1) {
    return BitCast<Pack<T, kVector>>(WordsOf<T>(values));
  } else {
    Pack<T, kVector> pack;
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) pack.at[v] = ConvertNumber<T>(values[v]);
    return pack;
  }
}

template <typename C, typename T>
__device__ C WidenedTo(T value) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<C>(Widened(value));
  } else {
    return static_cast<C>(value);
  }
}

template <typename C, typename T, int kVector>
__device__ C ValueOf(const Pack<T, kVector>& pack, int v) {
  if constexpr (sizeof(T) == 2 && kVector > 1) {
    const auto words = BitCast<ElementGroup<uint32_t, kVector / 2>>(pack);
    return static_cast<C>(ElementOfWords<T>(words.values, v));
  } else {
    return WidenedTo<C>(pack.at[v]);
  }
}

// The features of each row that a thread processes: kPacks vectors.
template <int kVector, int kPacks>
struct Features {
  static constexpr int kCount = kVector * kPacks;

  __device__ explicit Features(const Parameters& p)
      : first((static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) *
              kVector),
        stride(static_cast<int64_t>(blockDim.x) * kVector),
        count(p.features) {}

  __device__ int64_t At(int pack) const { return first + pack * stride; }
  __device__ bool Has(int pack) const { return At(pack) < count; }

  // Elements of a row in their storage type. Only their conversion waits for
  // the loads.
  template <typename T>
  struct Packs {
    Pack<T, kVector> at[kPacks];
  };

  // Loads elements of a row; 0 for elements that do not exist.
  template <typename T>
  __device__ Packs<T> LoadRow(const T* row, bool is_row,
                              bool is_aligned) const {
    Packs<T> packs = {};
    MUSTER_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      if (is_row && Has(k)) {
        packs.at[k] = LoadPack<T, kVector>(row + At(k), is_aligned);
      }
    }
    return packs;
  }

  template <typename T, typename C>
  __device__ static void Convert(const Packs<T>& packs, C (&values)[kCount]) {
    MUSTER_UNROLL
    for (int i = 0; i < kCount; ++i) {
      values[i] = ValueOf<C>(packs.at[i / kVector], i % kVector);
    }
  }

  // Loads numbers of features in type C; 0 for features that do not exist.
  template <typename C>
  __device__ void Load(const DeviceElements& from, C (&values)[kCount]) const {
    Convert(LoadRow(static_cast<const C*>(from.data), true,
                    IsAlignedFor<Pack<C, kVector>>(from.data)),
            values);
  }

  template <typename T, typename C>
  __device__ void StoreRow(const C (&values)[kCount], bool is_aligned,
                           T* row) const {
    MUSTER_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      if (!Has(k)) continue;
      C own[kVector];
      MUSTER_UNROLL
      for (int v = 0; v < kVector; ++v) own[v] = values[k * kVector + v];
      StorePack(PackOf<T>(own), is_aligned, row + At(k));
    }
  }

  int64_t first, stride, count;
};

// The rows of the block's part: [first, last).
struct PartRows {
  __device__ explicit PartRows(const Parameters& p)
      : first(blockIdx.x * p.part_rows),
        last(p.rows - first < p.part_rows ? p.rows : first + p.part_rows) {}
  int64_t first, last;
};

// Returns an element of the row. Sums of distances from it keep their precision
// if the row is far from zero.
template <typename T>
__device__ ComputeOf<T> ShiftOf(const Parameters& p, int64_t row) {
  if (row >= p.rows || p.features == 0) return 0;
  return static_cast<ComputeOf<T>>(
      static_cast<const T*>(p.x.data)[row * p.features]);
}

// Stores mean and inverse of a row, given its mean distance from the shift.
template <typename C>
__device__ void StoreMoments(const Parameters& p, int64_t row, C shift,
                             C distance, C inverse) {
  StoreElement(p.mean, row,
               static_cast<double>(shift) + static_cast<double>(distance));
  StoreElement(p.inverse, row, inverse);
}

template <typename C>
__device__ C InverseOf(const Parameters& p, C squares) {
  const C variance = squares / static_cast<C>(p.features);
  return C(1) / sqrt(variance + static_cast<C>(p.epsilon));
}

template <typename T, int kVector, int kPacks>
__device__ void NormalizeRows(const Parameters& p, ComputeOf<T>* shared) {
  using C = ComputeOf<T>;
  const Features<kVector, kPacks> features(p);
  constexpr int kCount = Features<kVector, kPacks>::kCount;
  const PartRows part(p);
  uint32_t turn = 0;
  for (int64_t begin = part.first; begin < part.last; begin += blockDim.y) {
    // Threads without a row take part in shuffles, too.
    const int64_t row = begin + threadIdx.y;
    const bool is_row = row < part.last;
    const int64_t at = row * p.features;
    C values[kCount];
    features.Convert(features.LoadRow(static_cast<const T*>(p.x.data) + at,
                                      is_row, p.is_aligned),
                     values);
    const C shift = is_row ? ShiftOf<T>(p, row) : C(0);
    C sum[1] = {};
    MUSTER_UNROLL
    for (int i = 0; i < kCount; ++i) {
      values[i] -= shift;
      if (features.Has(i / kVector)) sum[0] += values[i];
    }
    SumLanes(sum, shared, turn++);
    const C distance = sum[0] / static_cast<C>(p.features);
    C squares[1] = {};
    MUSTER_UNROLL
    for (int i = 0; i < kCount; ++i) {
      values[i] -= distance;
      if (features.Has(i / kVector)) squares[0] += values[i] * values[i];
    }
    SumLanes(squares, shared, turn++);
    if (!is_row) continue;
    const C inverse = InverseOf(p, squares[0]);
    // Loaded for each row: if they stayed in registers, fewer rows would fit on
    // a multiprocessor at a time.
    C scale[kCount], offset[kCount];
    features.Load(p.scale, scale);
    features.Load(p.offset, offset);
    MUSTER_UNROLL
    for (int i = 0; i < kCount; ++i) {
      values[i] = values[i] * inverse * scale[i] + offset[i];
    }
    features.StoreRow(values, p.is_aligned, static_cast<T*>(p.to.data) + at);
    if (threadIdx.x == 0) StoreMoments(p, row, shift, distance, inverse);
  }
}

// Computes the gradient of x, and the part's sums for the gradients of scale
// and offset. With kIsWhole, the block has all features of its rows; otherwise
// an earlier kernel has computed the sums of each row.
template <typename T, int kVector, int kPacks, bool kIsWhole>
__device__ void ComputeGradients(const Parameters& p, ComputeOf<T>* shared,
                                 ComputeOf<T>* shared_columns) {
  using C = ComputeOf<T>;
  const Features<kVector, kPacks> features(p);
  constexpr int kCount = Features<kVector, kPacks>::kCount;
  const PartRows part(p);
  C scale[kCount];
  features.Load(p.scale, scale);
  C column_sums[2 * kCount] = {};  // Of dy, and of dy times the normalized x.
  uint32_t turn = 0;
  for (int64_t begin = part.first; begin < part.last; begin += blockDim.y) {
    const int64_t row = begin + threadIdx.y;
    const bool is_row = row < part.last;
    const int64_t at = row * p.features;
    C dy[kCount], x[kCount];
    const auto dy_packs = features.LoadRow(
        static_cast<const T*>(p.gradient.data) + at, is_row, p.is_aligned);
    const auto x_packs = features.LoadRow(static_cast<const T*>(p.x.data) + at,
                                          is_row, p.is_aligned);
    features.Convert(dy_packs, dy);
    features.Convert(x_packs, x);
    const C mean = is_row ? LoadElement<C>(p.mean, row) : C(0);
    const C inverse = is_row ? LoadElement<C>(p.inverse, row) : C(0);
    C sums[2] = {};
    MUSTER_UNROLL
    for (int i = 0; i < kCount; ++i) {
      // For features that do not exist, dy is 0 and x must not be used.
      x[i] = features.Has(i / kVector) ? (x[i] - mean) * inverse : C(0);
      column_sums[i] += dy[i];
      column_sums[kCount + i] += dy[i] * x[i];
      dy[i] *= scale[i];
      sums[0] += dy[i];
      sums[1] += dy[i] * x[i];
    }
    if constexpr (kIsWhole) {
      SumLanes(sums, shared, turn++);
    } else {
      sums[0] = LoadElement<C>(p.row_sums, 2 * row);
      sums[1] = LoadElement<C>(p.row_sums, 2 * row + 1);
    }
    if (!is_row) continue;
    const C count = static_cast<C>(p.features);
    const C along = sums[0] / count;
    const C slope = sums[1] / count;
    MUSTER_UNROLL
    for (int i = 0; i < kCount; ++i) {
      dy[i] = (dy[i] - along - x[i] * slope) * inverse;
    }
    features.StoreRow(dy, p.is_aligned, static_cast<T*>(p.to.data) + at);
  }
  if constexpr (kPacks == 1) {
    if (blockDim.y > 1) SumColumns(column_sums, shared_columns);
  }
  if (threadIdx.y != 0) return;
  C* const values = static_cast<C*>(p.part_values.data);
  MUSTER_UNROLL
  for (int i = 0; i < 2 * kCount; ++i) {
    const int which = i / kCount;
    const int own = i % kCount;
    if (!features.Has(own / kVector)) continue;
    values[(which * p.part_count + blockIdx.x) * p.features +
           features.At(own / kVector) + own % kVector] = column_sums[i];
  }
}

// Calls use(feature) for the first feature of each of a thread's vectors in a
// long row.
template <int kVector, typename Use>
__device__ void ForEachVector(const Parameters& p, const Use& use) {
  for (int64_t i = int64_t{threadIdx.x} * kVector; i < p.features;
       i += int64_t{blockDim.x} * kVector) {
    use(i);
  }
}

template <typename T, int kVector>
__device__ void NormalizeLongRow(const Parameters& p, ComputeOf<T>* shared) {
  using C = ComputeOf<T>;
  const int64_t row = blockIdx.x;
  const T* const x = static_cast<const T*>(p.x.data) + row * p.features;
  T* const to = static_cast<T*>(p.to.data) + row * p.features;
  const C shift = ShiftOf<T>(p, row);
  C sum[1] = {};
  ForEachVector<kVector>(p, [&](int64_t i) {
    const Pack<T, kVector> pack = LoadPack<T, kVector>(x + i, p.is_aligned);
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) {
      sum[0] += static_cast<C>(pack.at[v]) - shift;
    }
  });
  SumLanes(sum, shared, 0);
  const C distance = sum[0] / static_cast<C>(p.features);
  C squares[1] = {};
  ForEachVector<kVector>(p, [&](int64_t i) {
    const Pack<T, kVector> pack = LoadPack<T, kVector>(x + i, p.is_aligned);
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) {
      const C value = static_cast<C>(pack.at[v]) - shift - distance;
      squares[0] += value * value;
    }
  });
  SumLanes(squares, shared, 1);
  const C inverse = InverseOf(p, squares[0]);
  ForEachVector<kVector>(p, [&](int64_t i) {
    Pack<T, kVector> pack = LoadPack<T, kVector>(x + i, p.is_aligned);
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) {
      const C value = static_cast<C>(pack.at[v]) - shift - distance;
      pack.at[v] =
          ConvertNumber<T>(value * inverse * LoadElement<C>(p.scale, i + v) +
                           LoadElement<C>(p.offset, i + v));
    }
    StorePack(pack, p.is_aligned, to + i);
  });
  if (threadIdx.x == 0) StoreMoments(p, row, shift, distance, inverse);
}

// Writes the sums of a long row that the gradient of x needs.
template <typename T, int kVector>
__device__ void SumLongRow(const Parameters& p, ComputeOf<T>* shared) {
  using C = ComputeOf<T>;
  const int64_t row = blockIdx.x;
  const T* const dy = static_cast<const T*>(p.gradient.data) + row * p.features;
  const T* const x = static_cast<const T*>(p.x.data) + row * p.features;
  const C mean = LoadElement<C>(p.mean, row);
  const C inverse = LoadElement<C>(p.inverse, row);
  C sums[2] = {};
  ForEachVector<kVector>(p, [&](int64_t i) {
    const Pack<T, kVector> gradients =
        LoadPack<T, kVector>(dy + i, p.is_aligned);
    const Pack<T, kVector> pack = LoadPack<T, kVector>(x + i, p.is_aligned);
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) {
      const C scaled =
          static_cast<C>(gradients.at[v]) * LoadElement<C>(p.scale, i + v);
      sums[0] += scaled;
      sums[1] += scaled * ((static_cast<C>(pack.at[v]) - mean) * inverse);
    }
  });
  SumLanes(sums, shared, 0);
  if (threadIdx.x != 0) return;
  StoreElement(p.row_sums, 2 * row, sums[0]);
  StoreElement(p.row_sums, 2 * row + 1, sums[1]);
}

// Visitors for VisitFloat() and VisitDouble().
template <typename C, int kPacks>
struct Normalizer {
  template <typename T, int kVector>
  __device__ void operator()() const {
    NormalizeRows<T, kVector, kPacks>(p, shared);
  }
  const Parameters& p;
  C* shared;
};
template <typename C, int kPacks, bool kIsWhole>
struct Differentiator {
  template <typename T, int kVector>
  __device__ void operator()() const {
    ComputeGradients<T, kVector, kPacks, kIsWhole>(p, shared, shared_columns);
  }
  const Parameters& p;
  C* shared;
  C* shared_columns;  // Null unless kPacks is 1.
};
template <typename C>
struct LongNormalizer {
  template <typename T, int kVector>
  __device__ void operator()() const {
    NormalizeLongRow<T, kVector>(p, shared);
  }
  const Parameters& p;
  C* shared;
};
template <typename C>
struct LongSummer {
  template <typename T, int kVector>
  __device__ void operator()() const {
    SumLongRow<T, kVector>(p, shared);
  }
  const Parameters& p;
  C* shared;
};

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

// Kernels of rows: with one vector for each lane, with several, and long ones.
extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    layer_norm_one_float(const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ float shared[kLaneSums];
  VisitFloat(p.x.type, p.vector, Normalizer<float, 1>{p, shared});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    layer_norm_one_double(const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[kLaneSums];
  VisitDouble(p.vector, Normalizer<double, 1>{p, shared});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads, 3)
    layer_norm_some_float(const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ float shared[kLaneSums];
  VisitFloat(p.x.type, p.vector,
             Normalizer<float, Parameters::kVectors>{p, shared});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    layer_norm_some_double(const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[kLaneSums];
  VisitDouble(p.vector, Normalizer<double, Parameters::kVectors>{p, shared});
}

extern "C" __global__ void __launch_bounds__(Parameters::kLongThreads)
    layer_norm_long_float(const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ float shared[kLaneSums];
  VisitFloat(p.x.type, p.vector, LongNormalizer<float>{p, shared});
}

extern "C" __global__ void __launch_bounds__(Parameters::kLongThreads)
    layer_norm_long_double(const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[kLaneSums];
  VisitDouble(p.vector, LongNormalizer<double>{p, shared});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    layer_norm_one_gradient_float(
        const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ float shared[kLaneSums];
  __shared__ float columns[8 * Parameters::kThreads];
  VisitFloat(p.x.type, p.vector,
             Differentiator<float, 1, true>{p, shared, columns});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    layer_norm_one_gradient_double(
        const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[kLaneSums];
  __shared__ double columns[4 * Parameters::kThreads];
  VisitDouble(p.vector, Differentiator<double, 1, true>{p, shared, columns});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    layer_norm_some_gradient_float(
        const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ float shared[kLaneSums];
  VisitFloat(
      p.x.type, p.vector,
      Differentiator<float, Parameters::kVectors, true>{p, shared, nullptr});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads)
    layer_norm_some_gradient_double(
        const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[kLaneSums];
  VisitDouble(p.vector, Differentiator<double, Parameters::kVectors, true>{
                            p, shared, nullptr});
}

// With the registers of one block on a multiprocessor instead of two, no
// registers are spilled.
extern "C" __global__ void __launch_bounds__(Parameters::kLongThreads, 1)
    layer_norm_long_sums_float(const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ float shared[kLaneSums];
  VisitFloat(p.x.type, p.vector, LongSummer<float>{p, shared});
}

extern "C" __global__ void __launch_bounds__(Parameters::kLongThreads)
    layer_norm_long_sums_double(const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[kLaneSums];
  VisitDouble(p.vector, LongSummer<double>{p, shared});
}

// Each block has one row, so a block has no column sums to combine.
extern "C" __global__ void __launch_bounds__(Parameters::kThreads, 2)
    layer_norm_long_gradient_float(
        const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  VisitFloat(p.x.type, p.vector,
             Differentiator<float, 1, false>{p, nullptr, nullptr});
}

extern "C" __global__ void __launch_bounds__(Parameters::kThreads, 2)
    layer_norm_long_gradient_double(
        const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  VisitDouble(p.vector, Differentiator<double, 1, false>{p, nullptr, nullptr});
}

// Combines the sums of the parts: writes the gradients of scale and offset.
extern "C" __global__ void __launch_bounds__(Parameters::kCombineThreads)
    layer_norm_combine(const __grid_constant__ LayerNormParameters p) {
  AwaitPrecedingKernel();
  __shared__ double shared[2 * Parameters::kCombineThreads];
  const int64_t feature = GlobalThread();
  const bool is_feature = feature < p.features;
  double sums[2] = {};
  if (is_feature) {
    for (int64_t i = threadIdx.y; i < p.part_count; i += blockDim.y) {
      const int64_t at = i * p.features + feature;
      sums[0] += LoadElement<double>(p.part_values, at);
      sums[1] +=
          LoadElement<double>(p.part_values, p.part_count * p.features + at);
    }
  }
  SumColumns(sums, shared);
  if (threadIdx.y != 0 || !is_feature) return;
  StoreElement(p.offset_gradient, feature, sums[0]);
  StoreElement(p.scale_gradient, feature, sums[1]);
}

MUSTER_SIMULATED_KERNELS(layer_norm,
                         MUSTER_BARRIER_KERNEL(layer_norm_one_float),
                         MUSTER_BARRIER_KERNEL(layer_norm_one_double),
                         MUSTER_BARRIER_KERNEL(layer_norm_some_float),
                         MUSTER_BARRIER_KERNEL(layer_norm_some_double),
                         MUSTER_BARRIER_KERNEL(layer_norm_long_float),
                         MUSTER_BARRIER_KERNEL(layer_norm_long_double),
                         MUSTER_BARRIER_KERNEL(layer_norm_one_gradient_float),
                         MUSTER_BARRIER_KERNEL(layer_norm_one_gradient_double),
                         MUSTER_BARRIER_KERNEL(layer_norm_some_gradient_float),
                         MUSTER_BARRIER_KERNEL(layer_norm_some_gradient_double),
                         MUSTER_BARRIER_KERNEL(layer_norm_long_sums_float),
                         MUSTER_BARRIER_KERNEL(layer_norm_long_sums_double),
                         MUSTER_BARRIER_KERNEL(layer_norm_long_gradient_float),
                         MUSTER_BARRIER_KERNEL(layer_norm_long_gradient_double),
                         MUSTER_BARRIER_KERNEL(layer_norm_combine))
