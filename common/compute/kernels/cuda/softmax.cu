// Softmax over rows, cross-entropies and their gradients.

#include "common/compute/kernels/cuda/device_functions.h"
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

MUSTER_SIMULATED_KERNELS(softmax, MUSTER_BARRIER_KERNEL(rows_float),
                         MUSTER_BARRIER_KERNEL(rows_double))
