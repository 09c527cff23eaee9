// Softmax over rows, cross-entropies and their gradients.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/element_group.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

// Ignores NaN: a row with a NaN becomes NaN when its maximum is subtracted.
struct Larger {
  template <typename C>
  __device__ C operator()(C a, C b) const {
    return fmax(a, b);
  }
};

struct Sum {
  template <typename C>
  __device__ C operator()(C a, C b) const {
    return a + b;
  }
};

// Combines one value of each lane of a row in a fixed order; all lanes get the
// result. Every thread of the block calls it.
template <typename C, typename Combine>
__device__ C CombineLanes(C value, Combine combine) {
  constexpr uint32_t kWarp = 32;
  const uint32_t lanes = blockDim.x;
  for (uint32_t i = (lanes < kWarp ? lanes : kWarp) / 2; i > 0; i /= 2) {
    value = combine(value, __shfl_xor_sync(~0u, value, i));
  }
  if (lanes <= kWarp) return value;
  // One value for each warp of the block's only row.
  __shared__ C partial[RowParameters::kThreads / kWarp];
  __syncthreads();  // Other threads may still read an earlier result.
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = partial[0];
  for (uint32_t i = 1; i < lanes / kWarp; ++i) {
    value = combine(value, partial[i]);
  }
  return value;
}

// The logits of a row, shifted so that exponentials do not overflow.
template <typename C>
struct ShiftedRow {
  const RowParameters& p;
  int64_t begin;
  int64_t classes;  // 0: the thread has no row.
  C max;
  C log_sum;

  __device__ C LogProbability(int64_t c) const {
    return LoadElement<C>(p.logits, begin + c) - max - log_sum;
  }
};

template <typename C>
__device__ ShiftedRow<C> ReadRow(const RowParameters& p, int64_t row) {
  const int64_t begin = row * p.classes;
  const int64_t classes = row < p.rows ? p.classes : 0;
  C max = static_cast<C>(-INFINITY);
  for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) {
    max = Larger()(max, LoadElement<C>(p.logits, begin + c));
  }
  max = CombineLanes(max, Larger());
  C sum = C(0);
  for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) {
    sum += exp(LoadElement<C>(p.logits, begin + c) - max);
  }
  sum = CombineLanes(sum, Sum());
  return {p, begin, classes, max, log(sum)};
}

// Returns the row's label, or -1 after reporting that it is out of range.
__device__ int64_t LabelOf(const RowParameters& p, int64_t row) {
  const int64_t label = LoadElement<int64_t>(p.labels, row);
  if (label >= 0 && label < p.classes) return label;
  if (threadIdx.x == 0) {
    ReportFault(p.fault, FaultCode::kLabelOutOfRange, row, label, p.classes);
  }
  return -1;
}

template <typename C>
__device__ void WriteLoss(const RowParameters& p, const ShiftedRow<C>& read,
                          int64_t row, int64_t label) {
  C loss = C(0);
  if (p.function == RowFunction::kSparseCrossEntropy) {
    loss = label < 0 ? C(0) : -read.LogProbability(label);
  } else {
    for (int64_t c = threadIdx.x; c < read.classes; c += blockDim.x) {
      loss -= LoadElement<C>(p.labels, read.begin + c) * read.LogProbability(c);
    }
    loss = CombineLanes(loss, Sum());
  }
  if (threadIdx.x == 0 && row < p.rows) StoreElement(p.to, row, loss);
}

template <typename C>
__device__ void WriteSoftmaxGradient(const RowParameters& p, int64_t row) {
  const int64_t begin = row * p.classes;
  const int64_t classes = row < p.rows ? p.classes : 0;
  C sum = C(0);
  for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) {
    sum += LoadElement<C>(p.logits, begin + c) *
           LoadElement<C>(p.labels, begin + c);
  }
  sum = CombineLanes(sum, Sum());
  for (int64_t c = threadIdx.x; c < classes; c += blockDim.x) {
    StoreElement(p.to, begin + c,
                 (LoadElement<C>(p.logits, begin + c) - sum) *
                     LoadElement<C>(p.labels, begin + c));
  }
}

template <typename C>
__device__ void RunRow(const RowParameters& p) {
  // The last block may have more thread rows than rows. All its threads take
  // part in shuffles.
  const int64_t row =
      static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (p.function == RowFunction::kSoftmaxGrad) {
    WriteSoftmaxGradient<C>(p, row);
    return;
  }
  const ShiftedRow<C> read = ReadRow<C>(p, row);
  const bool is_sparse = p.function == RowFunction::kSparseCrossEntropy ||
                         p.function == RowFunction::kSparseCrossEntropyGrad;
  const int64_t label = is_sparse && row < p.rows ? LabelOf(p, row) : -1;
  if (p.function == RowFunction::kCrossEntropy ||
      p.function == RowFunction::kSparseCrossEntropy) {
    WriteLoss(p, read, row, label);
    return;
  }
  for (int64_t c = threadIdx.x; c < read.classes; c += blockDim.x) {
    C y = read.LogProbability(c);
    if (p.function != RowFunction::kLogSoftmax) y = exp(y);
    if (p.function == RowFunction::kCrossEntropyGrad) {
      y = LoadElement<C>(p.gradient, row) *
          (y - LoadElement<C>(p.labels, read.begin + c));
    } else if (p.function == RowFunction::kSparseCrossEntropyGrad) {
      y = LoadElement<C>(p.gradient, row) *
          (y - static_cast<C>(c == label ? 1 : 0));
    }
    StoreElement(p.to, read.begin + c, y);
  }
}

// A lane's place in a row that fits into the registers of up to 32 lanes:
// vectors of 16 bytes at first, first + step, ...
template <typename T>
struct HeldPlace {
  static constexpr int kVector = kAccessBytesMax / sizeof(T);

  __device__ explicit HeldPlace(const RowParameters& p)
      : row(static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y),
        begin(row * p.classes),
        classes(row < p.rows ? static_cast<int32_t>(p.classes) : 0),
        first(static_cast<int32_t>(threadIdx.x) * kVector),
        step(static_cast<int32_t>(blockDim.x) * kVector) {}

  int64_t row;
  int64_t begin;
  int32_t classes;
  int32_t first;
  int32_t step;
};

// The elements of a lane: kSlots vectors.
template <typename T, int kSlots>
using HeldValues = float[kSlots][HeldPlace<T>::kVector];

// As CombineLanes() for 32 lanes or fewer.
template <typename Combine>
__device__ float CombineHeldLanes(float value, Combine combine) {
  if (blockDim.x == 32) {
    MUSTER_UNROLL
    for (uint32_t i = 16; i > 0; i /= 2) {
      value = combine(value, __shfl_xor_sync(~0u, value, i));
    }
  } else {
    for (uint32_t i = blockDim.x / 2; i > 0; i /= 2) {
      value = combine(value, __shfl_xor_sync(~0u, value, i));
    }
  }
  return value;
}

// The lane's elements of a row in their storage type. Only their conversion
// waits for the loads.
template <int kSlots>
struct HeldWords {
  ElementGroup<uint32_t, 4> groups[kSlots];
};

template <typename T, int kSlots>
__device__ __forceinline__ HeldWords<kSlots> LoadHeld(
    const DeviceElements& from, const HeldPlace<T>& at) {
  constexpr int kVector = HeldPlace<T>::kVector;
  using Group = ElementGroup<uint32_t, 4>;
  const T* const row = static_cast<const T*>(from.data) + at.begin;
  HeldWords<kSlots> words = {};
  if (IsAlignedFor<Group>(from.data)) {
    MUSTER_UNROLL
    for (int i = 0; i < kSlots; ++i) {
      const int32_t c = at.first + i * at.step;
      if (c < at.classes) {
        words.groups[i] = *reinterpret_cast<const Group*>(row + c);
      }
    }
    return words;
  }
  MUSTER_UNROLL
  for (int i = 0; i < kSlots; ++i) {
    const int32_t c = at.first + i * at.step;
    ElementGroup<T, kVector> elements = {};
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) {
      if (c < at.classes) elements.values[v] = row[c + v];
    }
    words.groups[i] = BitCast<Group>(elements);
  }
  return words;
}

// Elements beyond the end of the row become `fill`.
template <typename T, int kSlots>
__device__ __forceinline__ void ConvertHeld(const HeldWords<kSlots>& words,
                                            const HeldPlace<T>& at, float fill,
                                            HeldValues<T, kSlots>& values) {
  MUSTER_UNROLL
  for (int i = 0; i < kSlots; ++i) {
    const bool is_inside = at.first + i * at.step < at.classes;
    MUSTER_UNROLL
    for (int v = 0; v < HeldPlace<T>::kVector; ++v) {
      values[i][v] =
          is_inside ? ElementOfWords<T>(words.groups[i].values, v) : fill;
    }
  }
}

// Stores the elements within the row.
template <typename T, int kSlots>
__device__ __forceinline__ void StoreHeld(const HeldValues<T, kSlots>& values,
                                          const HeldPlace<T>& at,
                                          const DeviceElements& to) {
  constexpr int kVector = HeldPlace<T>::kVector;
  using Group = ElementGroup<uint32_t, 4>;
  T* const row = static_cast<T*>(to.data) + at.begin;
  const bool is_aligned = IsAlignedFor<Group>(to.data);
  MUSTER_UNROLL
  for (int i = 0; i < kSlots; ++i) {
    const int32_t c = at.first + i * at.step;
    if (c >= at.classes) continue;
    const Group group = WordsOf<T>(values[i]);
    if (is_aligned) {
      *reinterpret_cast<Group*>(row + c) = group;
      continue;
    }
    const auto elements = BitCast<ElementGroup<T, kVector>>(group);
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) row[c + v] = elements.values[v];
  }
}

// Computes the gradient of a row's logits from probabilities.
template <typename T, int kSlots>
__device__ __forceinline__ void ToGradient(const RowParameters& p,
                                           const HeldPlace<T>& at,
                                           int64_t label,
                                           HeldValues<T, kSlots>& values) {
  constexpr int kVector = HeldPlace<T>::kVector;
  if (at.classes == 0) return;
  const float gradient = LoadElement<float>(p.gradient, at.row);
  HeldValues<T, kSlots> labels;
  if (p.function == RowFunction::kCrossEntropyGrad) {
    ConvertHeld<T>(LoadHeld<T, kSlots>(p.labels, at), at, 0.0f, labels);
  } else {
    MUSTER_UNROLL
    for (int i = 0; i < kSlots * kVector; ++i) {
      const int32_t c = at.first + i / kVector * at.step + i % kVector;
      labels[i / kVector][i % kVector] = c == label ? 1.0f : 0.0f;
    }
  }
  MUSTER_UNROLL
  for (int i = 0; i < kSlots * kVector; ++i) {
    float& value = values[i / kVector][i % kVector];
    value = gradient * (value - labels[i / kVector][i % kVector]);
  }
}

struct Exponentials {
  float max;
  float sum;
};

// Loads a row, subtracts its maximum, and sums the exponentials, which replace
// the differences unless `keeps_logits`. Reads the row once and computes one
// exponential for each element.
template <typename T, int kSlots>
__device__ __forceinline__ Exponentials
ReadHeldRow(const RowParameters& p, const HeldPlace<T>& at, bool keeps_logits,
            HeldValues<T, kSlots>& values) {
  constexpr int kVector = HeldPlace<T>::kVector;
  constexpr float kLog2E = 1.44269504088896340736f;
  ConvertHeld<T>(LoadHeld<T, kSlots>(p.logits, at), at,
                 static_cast<float>(-INFINITY), values);
  float max = static_cast<float>(-INFINITY);
  MUSTER_UNROLL
  for (int i = 0; i < kSlots * kVector; ++i) {
    max = Larger()(max, values[i / kVector][i % kVector]);
  }
  max = CombineHeldLanes(max, Larger());
  float sum = 0;
  MUSTER_UNROLL
  for (int i = 0; i < kSlots * kVector; ++i) {
    float& value = values[i / kVector][i % kVector];
    value -= max;
    const float power = QuickExp2(kLog2E * value);
    sum += power;
    if (!keeps_logits) value = power;
  }
  return {max, CombineHeldLanes(sum, Sum())};
}

// Computes the softmax of rows of HeldPlace with kSlots vectors in each lane.
template <typename T, int kSlots>
__device__ void WriteHeldSoftmax(const RowParameters& p) {
  constexpr int kVector = HeldPlace<T>::kVector;
  const HeldPlace<T> at(p);
  HeldValues<T, kSlots> values;
  const float sum = ReadHeldRow<T>(p, at, false, values).sum;
  const float inverse = QuickReciprocal(sum);
  MUSTER_UNROLL
  for (int i = 0; i < kSlots * kVector; ++i) {
    values[i / kVector][i % kVector] *= inverse;
  }
  StoreHeld<T>(values, at, p.to);
}

// As RunRow(), for rows of HeldPlace and functions other than kSoftmax and
// kSoftmaxGrad.
template <typename T, int kSlots>
__device__ void RunHeldRow(const RowParameters& p) {
  constexpr int kVector = HeldPlace<T>::kVector;
  const HeldPlace<T> at(p);
  const bool has_logarithms = p.function == RowFunction::kLogSoftmax;
  HeldValues<T, kSlots> values;
  const auto [max, sum] = ReadHeldRow<T>(p, at, has_logarithms, values);
  const bool is_sparse = p.function == RowFunction::kSparseCrossEntropy ||
                         p.function == RowFunction::kSparseCrossEntropyGrad;
  const int64_t label = is_sparse && at.row < p.rows ? LabelOf(p, at.row) : -1;
  const float log_sum = log(sum);
  if (p.function == RowFunction::kCrossEntropy ||
      p.function == RowFunction::kSparseCrossEntropy) {
    WriteLoss(p, ShiftedRow<float>{p, at.begin, at.classes, max, log_sum},
              at.row, label);
    return;
  }
  const float inverse = QuickReciprocal(sum);
  MUSTER_UNROLL
  for (int i = 0; i < kSlots * kVector; ++i) {
    float& value = values[i / kVector][i % kVector];
    value = has_logarithms ? value - log_sum : value * inverse;
  }
  if (!has_logarithms) ToGradient<T>(p, at, label, values);
  StoreHeld<T>(values, at, p.to);
}

// As WriteSoftmaxGradient(), for rows of HeldPlace.
template <typename T, int kSlots>
__device__ void WriteHeldGradient(const RowParameters& p) {
  constexpr int kVector = HeldPlace<T>::kVector;
  const HeldPlace<T> at(p);
  HeldValues<T, kSlots> gradients;
  HeldValues<T, kSlots> values;
  const auto gradient_words = LoadHeld<T, kSlots>(p.logits, at);
  const auto value_words = LoadHeld<T, kSlots>(p.labels, at);
  ConvertHeld<T>(gradient_words, at, 0.0f, gradients);
  ConvertHeld<T>(value_words, at, 0.0f, values);
  float sum = 0;
  MUSTER_UNROLL
  for (int i = 0; i < kSlots * kVector; ++i) {
    sum +=
        gradients[i / kVector][i % kVector] * values[i / kVector][i % kVector];
  }
  sum = CombineHeldLanes(sum, Sum());
  MUSTER_UNROLL
  for (int i = 0; i < kSlots * kVector; ++i) {
    values[i / kVector][i % kVector] *=
        gradients[i / kVector][i % kVector] - sum;
  }
  StoreHeld<T>(values, at, p.to);
}

// Visitors for VisitHeldRow().
struct HeldRow {
  template <typename T, int kSlots>
  __device__ void operator()() const {
    RunHeldRow<T, kSlots>(p);
  }
  const RowParameters& p;
};
struct HeldSoftmax {
  template <typename T, int kSlots>
  __device__ void operator()() const {
    WriteHeldSoftmax<T, kSlots>(p);
  }
  const RowParameters& p;
};
struct HeldGradient {
  template <typename T, int kSlots>
  __device__ void operator()() const {
    WriteHeldGradient<T, kSlots>(p);
  }
  const RowParameters& p;
};

// Visits rows with kValues elements for each of up to 32 lanes.
template <int kValues, typename Visit>
__device__ void VisitHeldRow(const Visit& visit) {
  switch (visit.p.logits.type) {
    case ElementType::kBfloat16:
      return visit.template operator()<bfloat16, kValues / 8>();
    case ElementType::kFloat16:
      return visit.template operator()<float16, kValues / 8>();
    default:
      return visit.template operator()<float, kValues / 4>();
  }
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void rows_float(const __grid_constant__ RowParameters p) {
  AwaitPrecedingKernel();
  RunRow<float>(p);
}

extern "C" __global__ void rows_double(
    const __grid_constant__ RowParameters p) {
  AwaitPrecedingKernel();
  RunRow<double>(p);
}

// Kernels of rows with up to 512 and up to 1024 elements, whose size is a
// multiple of 16 bytes.
extern "C" __global__ void __launch_bounds__(RowParameters::kThreads, 3)
    rows_held_512(const __grid_constant__ RowParameters p) {
  AwaitPrecedingKernel();
  VisitHeldRow<16>(HeldRow{p});
}

extern "C" __global__ void __launch_bounds__(RowParameters::kThreads)
    rows_held_1024(const __grid_constant__ RowParameters p) {
  AwaitPrecedingKernel();
  VisitHeldRow<32>(HeldRow{p});
}

extern "C" __global__ void __launch_bounds__(RowParameters::kThreads, 6)
    softmax_held_512(const __grid_constant__ RowParameters p) {
  AwaitPrecedingKernel();
  VisitHeldRow<16>(HeldSoftmax{p});
}

extern "C" __global__ void __launch_bounds__(RowParameters::kThreads, 3)
    softmax_held_1024(const __grid_constant__ RowParameters p) {
  AwaitPrecedingKernel();
  VisitHeldRow<32>(HeldSoftmax{p});
}

extern "C" __global__ void __launch_bounds__(RowParameters::kThreads)
    gradients_held_512(const __grid_constant__ RowParameters p) {
  AwaitPrecedingKernel();
  VisitHeldRow<16>(HeldGradient{p});
}

extern "C" __global__ void __launch_bounds__(RowParameters::kThreads)
    gradients_held_1024(const __grid_constant__ RowParameters p) {
  AwaitPrecedingKernel();
  VisitHeldRow<32>(HeldGradient{p});
}

MUSTER_SIMULATED_KERNELS(softmax, MUSTER_BARRIER_KERNEL(rows_float),
                         MUSTER_BARRIER_KERNEL(rows_double),
                         MUSTER_BARRIER_KERNEL(gradients_held_512),
                         MUSTER_BARRIER_KERNEL(gradients_held_1024),
                         MUSTER_BARRIER_KERNEL(softmax_held_512),
                         MUSTER_BARRIER_KERNEL(softmax_held_1024),
                         MUSTER_BARRIER_KERNEL(rows_held_512),
                         MUSTER_BARRIER_KERNEL(rows_held_1024))
