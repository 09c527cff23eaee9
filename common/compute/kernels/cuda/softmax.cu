// Softmax over rows, cross-entropies and their gradients.

#include "common/compute/kernels/cuda/device_functions.h"
#include "common/compute/kernels/cuda/element_group.h"
#include "common/compute/kernels/cuda/kernel_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

struct Larger {
  template <typename C>
  __device__ C operator()(C a, C b) const {
    return b > a ? b : a;
  }
};

struct Sum {
  template <typename C>
  __device__ C operator()(C a, C b) const {
    return a + b;
  }
};

// Combines a value of each lane of a row, in a fixed order; all lanes get the
// result. Every thread of the block calls it.
template <typename C, typename Combine>
__device__ C CombineLanes(C value, Combine combine) {
  constexpr uint32_t kWarp = 32;
  const uint32_t lanes = blockDim.x;
  for (uint32_t i = (lanes < kWarp ? lanes : kWarp) / 2; i > 0; i /= 2) {
    value = combine(value, __shfl_xor_sync(~0u, value, i));
  }
  if (lanes <= kWarp) return value;
  // The warps of the only row.
  __shared__ C partial[RowParameters::kThreads / kWarp];
  __syncthreads();  // An earlier result may still be read.
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  value = partial[0];
  for (uint32_t i = 1; i < lanes / kWarp; ++i) {
    value = combine(value, partial[i]);
  }
  return value;
}

// The rows' logits, shifted so that exponentials do not overflow.
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
  // The last block may have rows too many. Their threads take part in shuffles.
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

// Loads neighbouring elements, by one instruction if they are aligned.
template <typename T, int kVector>
__device__ __forceinline__ void LoadVector(const T* from, bool is_aligned,
                                           float (&values)[kVector]) {
  if (is_aligned) {
    const auto group = *reinterpret_cast<const ElementGroup<T, kVector>*>(from);
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) {
      values[v] = static_cast<float>(group.values[v]);
    }
  } else {
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) values[v] = static_cast<float>(from[v]);
  }
}

template <typename T, int kVector>
__device__ __forceinline__ void StoreVector(T* to, bool is_aligned,
                                            const float (&values)[kVector]) {
  ElementGroup<T, kVector> group;
  MUSTER_UNROLL
  for (int v = 0; v < kVector; ++v) {
    group.values[v] = ConvertNumber<T>(values[v]);
  }
  if (is_aligned) {
    *reinterpret_cast<ElementGroup<T, kVector>*>(to) = group;
  } else {
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) to[v] = group.values[v];
  }
}

// Computes the gradient of a row's logits from probabilities.
template <typename T, int kVector>
__device__ void ToGradient(const RowParameters& p, int64_t row, int64_t label,
                           int64_t c, bool is_aligned,
                           float (&values)[kVector]) {
  const float gradient = LoadElement<float>(p.gradient, row);
  float labels[kVector];
  if (p.function == RowFunction::kCrossEntropyGrad) {
    LoadVector(static_cast<const T*>(p.labels.data) + row * p.classes + c,
               is_aligned, labels);
  } else {
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) labels[v] = c + v == label ? 1.0f : 0.0f;
  }
  MUSTER_UNROLL
  for (int v = 0; v < kVector; ++v) {
    values[v] = gradient * (values[v] - labels[v]);
  }
}

// A row that the registers of up to 32 lanes hold: vectors at first, first +
// step, ... of it in each lane.
template <int kVector>
struct HeldPlace {
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

// As RunRow(), for rows of HeldPlace, of kSlots vectors in each lane. The row
// is read once, and has one exponential for each element.
template <typename T, int kVector, int kSlots>
__device__ void RunHeldRow(const RowParameters& p) {
  using Group = ElementGroup<T, kVector>;
  const auto [row, begin, classes, first, step] = HeldPlace<kVector>(p);
  const T* const logits = static_cast<const T*>(p.logits.data) + begin;
  bool is_aligned = IsAlignedFor<Group>(p.logits.data);
  float values[kSlots][kVector];
  MUSTER_UNROLL
  for (int i = 0; i < kSlots; ++i) {
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) {
      values[i][v] = static_cast<float>(-INFINITY);
    }
    const int32_t c = first + i * step;
    if (c < classes) LoadVector(logits + c, is_aligned, values[i]);
  }
  float max = static_cast<float>(-INFINITY);
  MUSTER_UNROLL
  for (int i = 0; i < kSlots * kVector; ++i) {
    max = Larger()(max, values[i / kVector][i % kVector]);
  }
  max = CombineLanes(max, Larger());
  const bool is_loss = p.function == RowFunction::kCrossEntropy ||
                       p.function == RowFunction::kSparseCrossEntropy;
  const bool has_logarithms = p.function == RowFunction::kLogSoftmax;
  float sum = 0;
  MUSTER_UNROLL
  for (int i = 0; i < kSlots * kVector; ++i) {
    float& value = values[i / kVector][i % kVector];
    value -= max;
    const float power = exp(value);
    sum += power;
    if (!has_logarithms) value = power;
  }
  sum = CombineLanes(sum, Sum());
  const bool is_sparse = p.function == RowFunction::kSparseCrossEntropy ||
                         p.function == RowFunction::kSparseCrossEntropyGrad;
  const int64_t label = is_sparse && row < p.rows ? LabelOf(p, row) : -1;
  const float log_sum = log(sum);
  if (is_loss) {
    WriteLoss(p, ShiftedRow<float>{p, begin, classes, max, log_sum}, row,
              label);
    return;
  }
  const float inverse = 1 / sum;
  is_aligned = IsAlignedFor<Group>(p.to.data) &&
               (p.function != RowFunction::kCrossEntropyGrad ||
                IsAlignedFor<Group>(p.labels.data));
  MUSTER_UNROLL
  for (int i = 0; i < kSlots; ++i) {
    const int32_t c = first + i * step;
    if (c >= classes) continue;
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) {
      values[i][v] =
          has_logarithms ? values[i][v] - log_sum : values[i][v] * inverse;
    }
    if (p.function == RowFunction::kCrossEntropyGrad || is_sparse) {
      ToGradient<T>(p, row, label, c, is_aligned, values[i]);
    }
    StoreVector(static_cast<T*>(p.to.data) + begin + c, is_aligned, values[i]);
  }
}

// As WriteSoftmaxGradient(), for the rows of RunHeldRow().
template <typename T, int kVector, int kSlots>
__device__ void WriteHeldGradient(const RowParameters& p) {
  using Group = ElementGroup<T, kVector>;
  const auto [row, begin, classes, first, step] = HeldPlace<kVector>(p);
  const T* const gradient = static_cast<const T*>(p.logits.data) + begin;
  const T* const y = static_cast<const T*>(p.labels.data) + begin;
  const bool is_aligned = IsAlignedFor<Group>(p.logits.data) &&
                          IsAlignedFor<Group>(p.labels.data) &&
                          IsAlignedFor<Group>(p.to.data);
  float gradients[kSlots][kVector] = {};
  float values[kSlots][kVector] = {};
  MUSTER_UNROLL
  for (int i = 0; i < kSlots; ++i) {
    const int32_t c = first + i * step;
    if (c >= classes) continue;
    LoadVector(gradient + c, is_aligned, gradients[i]);
    LoadVector(y + c, is_aligned, values[i]);
  }
  float sum = 0;
  MUSTER_UNROLL
  for (int i = 0; i < kSlots * kVector; ++i) {
    sum +=
        gradients[i / kVector][i % kVector] * values[i / kVector][i % kVector];
  }
  sum = CombineLanes(sum, Sum());
  MUSTER_UNROLL
  for (int i = 0; i < kSlots; ++i) {
    const int32_t c = first + i * step;
    if (c >= classes) continue;
    MUSTER_UNROLL
    for (int v = 0; v < kVector; ++v) values[i][v] *= gradients[i][v] - sum;
    StoreVector(static_cast<T*>(p.to.data) + begin + c, is_aligned, values[i]);
  }
}

// What VisitHeldRow() calls.
struct HeldRow {
  template <typename T, int kVector, int kSlots>
  __device__ void operator()() const {
    RunHeldRow<T, kVector, kSlots>(p);
  }
  const RowParameters& p;
};
struct HeldGradient {
  template <typename T, int kVector, int kSlots>
  __device__ void operator()() const {
    WriteHeldGradient<T, kVector, kSlots>(p);
  }
  const RowParameters& p;
};

// Of rows of kValues elements for each of 32 lanes, or fewer.
template <int kValues, typename Visit>
__device__ void VisitHeldRow(const Visit& visit) {
  switch (visit.p.logits.type) {
    case ElementType::kBfloat16:
      return visit.template operator()<bfloat16, 8, kValues / 8>();
    case ElementType::kFloat16:
      return visit.template operator()<float16, 8, kValues / 8>();
    default:
      return visit.template operator()<float, 4, kValues / 4>();
  }
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void rows_float(const __grid_constant__ RowParameters p) {
  RunRow<float>(p);
}

extern "C" __global__ void rows_double(
    const __grid_constant__ RowParameters p) {
  RunRow<double>(p);
}

// Rows of up to 512, and up to 1024, elements, a multiple of 16 bytes.
extern "C" __global__ void __launch_bounds__(RowParameters::kThreads)
    rows_held_512(const __grid_constant__ RowParameters p) {
  VisitHeldRow<16>(HeldRow{p});
}

extern "C" __global__ void __launch_bounds__(RowParameters::kThreads)
    rows_held_1024(const __grid_constant__ RowParameters p) {
  VisitHeldRow<32>(HeldRow{p});
}

extern "C" __global__ void __launch_bounds__(RowParameters::kThreads)
    gradients_held_512(const __grid_constant__ RowParameters p) {
  VisitHeldRow<16>(HeldGradient{p});
}

extern "C" __global__ void __launch_bounds__(RowParameters::kThreads)
    gradients_held_1024(const __grid_constant__ RowParameters p) {
  VisitHeldRow<32>(HeldGradient{p});
}

MUSTER_SIMULATED_KERNELS(softmax, MUSTER_BARRIER_KERNEL(rows_float),
                         MUSTER_BARRIER_KERNEL(rows_double),
                         MUSTER_BARRIER_KERNEL(gradients_held_512),
                         MUSTER_BARRIER_KERNEL(gradients_held_1024),
                         MUSTER_BARRIER_KERNEL(rows_held_512),
                         MUSTER_BARRIER_KERNEL(rows_held_1024))
