// Moves elements without arithmetic: copies between layouts, indexing, one-hot.
// Also checks conditions.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/element_group.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

__device__ void CopyWord(const void* from, int64_t from_index, void* to,
                         int64_t to_index, int word_bytes) {
  switch (word_bytes) {
    case 1:
      static_cast<uint8_t*>(to)[to_index] =
          static_cast<const uint8_t*>(from)[from_index];
      return;
    case 2:
      static_cast<uint16_t*>(to)[to_index] =
          static_cast<const uint16_t*>(from)[from_index];
      return;
    case 4:
      static_cast<uint32_t*>(to)[to_index] =
          static_cast<const uint32_t*>(from)[from_index];
      return;
    default:
      static_cast<uint64_t*>(to)[to_index] =
          static_cast<const uint64_t*>(from)[from_index];
  }
}

// Copies kCount adjacent positions.
template <typename Word, int kCount>
__device__ void CopyGroup(const CopyParameters& p) {
  using Group = ElementGroup<Word, kCount>;
  const int64_t first = GlobalThread() * kCount;
  if (first >= p.count) return;
  const bool is_whole = p.count - first >= kCount;
  const Word* const from = static_cast<const Word*>(p.from);
  Word* const to = static_cast<Word*>(p.to);
  int64_t offsets[kCount];
  OffsetsOf(p.from_layout, first, offsets);
  Group group;
  if (is_whole && HasDenseGroups<kCount>(p.from_layout) &&
      IsAlignedFor<Group>(from + offsets[0])) {
    group = *reinterpret_cast<const Group*>(from + offsets[0]);
  } else {
    MUSTER_UNROLL
    for (int k = 0; k < kCount; ++k) {
      if (first + k < p.count) group.values[k] = from[offsets[k]];
    }
  }
  OffsetsOf(p.to_layout, first, offsets);
  if (is_whole && HasDenseGroups<kCount>(p.to_layout) &&
      IsAlignedFor<Group>(to + offsets[0])) {
    *reinterpret_cast<Group*>(to + offsets[0]) = group;
    return;
  }
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) {
    if (first + k < p.count) to[offsets[k]] = group.values[k];
  }
}

// Returns layout(position). Positions are below 2^32 unless kCount is 1.
template <int kCount>
__device__ int64_t OffsetOfWord(const DeviceLayout& layout, int64_t position) {
  if constexpr (kCount == 1) {
    return layout(position);
  } else {
    return OffsetOf(layout, position);
  }
}

// Copies kCount words of 16 bytes, each adjacent to words of the block's other
// threads. All loads are in flight before the first store.
template <int kCount>
__device__ void CopyWideWords(const CopyParameters& p) {
  using Word = ElementGroup<uint32_t, 4>;
  const Word* const from = static_cast<const Word*>(p.from);
  Word* const to = static_cast<Word*>(p.to);
  const int64_t first =
      static_cast<int64_t>(blockIdx.x) * blockDim.x * kCount + threadIdx.x;
  Word words[kCount];
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) {
    const int64_t position = first + static_cast<int64_t>(k) * blockDim.x;
    if (position < p.count) {
      words[k] = from[OffsetOfWord<kCount>(p.from_layout, position)];
    }
  }
  MUSTER_UNROLL
  for (int k = 0; k < kCount; ++k) {
    const int64_t position = first + static_cast<int64_t>(k) * blockDim.x;
    if (position < p.count) {
      to[OffsetOfWord<kCount>(p.to_layout, position)] = words[k];
    }
  }
}

template <typename Word>
__device__ void CopyWords(const CopyParameters& p) {
  if (p.words_per_thread == CopyParameters::kGroup) {
    CopyGroup<Word, CopyParameters::kGroup>(p);
  } else {
    CopyGroup<Word, 1>(p);
  }
}

// Adjacent threads read adjacent words of a row, and write adjacent words of a
// column. `tile` has an additional word in each row, so that the words of a
// column are in different banks.
template <typename Word>
__device__ void TransposeTile(const TransposeParameters& p, void* memory) {
  constexpr int kTile = TransposeParameters::kTile;
  constexpr int kLanes = TransposeParameters::kLanes;
  Word* const tile = static_cast<Word*>(memory);
  const uint32_t matrix = blockIdx.x / p.tiles_per_matrix;
  const uint32_t place = blockIdx.x % p.tiles_per_matrix;
  const int64_t first_row = int64_t{place / p.tiles_per_row} * kTile;
  const int64_t first_column = int64_t{place % p.tiles_per_row} * kTile;
  const Word* const from =
      static_cast<const Word*>(p.from) + p.from_matrices(matrix);
  MUSTER_UNROLL
  for (int j = 0; j < kTile; j += kLanes) {
    const int64_t row = first_row + threadIdx.y + j;
    const int64_t column = first_column + threadIdx.x;
    if (row < p.rows && column < p.columns) {
      tile[(threadIdx.y + j) * (kTile + 1) + threadIdx.x] =
          from[row * p.from_row_stride + column];
    }
  }
  __syncthreads();
  Word* const to = static_cast<Word*>(p.to) + p.to_matrices(matrix);
  MUSTER_UNROLL
  for (int j = 0; j < kTile; j += kLanes) {
    const int64_t row = first_row + threadIdx.x;
    const int64_t column = first_column + threadIdx.y + j;
    if (row < p.rows && column < p.columns) {
      to[column * p.to_column_stride + row] =
          tile[threadIdx.x * (kTile + 1) + threadIdx.y + j];
    }
  }
}

// Returns indices[i], or -1 after reporting that it is not in [0, bound).
__device__ int64_t CheckedIndex(const DeviceElements& indices, int64_t i,
                                int64_t bound, FaultRecord* fault) {
  const int64_t index = LoadElement<int64_t>(indices, i);
  if (index >= 0 && index < bound) return index;
  ReportFault(fault, FaultCode::kIndexOutOfRange, i, index, bound);
  return -1;
}

template <typename C>
__device__ void ScatterRow(const ScatterParameters& p) {
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int64_t k = thread % p.inner;
  const int64_t i = thread / p.inner % p.index_count;
  const int64_t outer = thread / p.inner / p.index_count;
  const int64_t index = CheckedIndex(p.indices, i, p.bound, p.fault);
  if (index < 0) return;
  for (int64_t j = 0; j < i; ++j) {
    if (LoadElement<int64_t>(p.indices, j) == index) return;
  }
  const int64_t begin = outer * p.index_count;
  C sum = C(0);
  for (int64_t j = i; j < p.index_count; ++j) {
    if (LoadElement<int64_t>(p.indices, j) != index) continue;
    sum = WrappingAdd(sum, LoadElement<C>(p.from, (begin + j) * p.inner + k));
  }
  StoreElement(p.to, (outer * p.bound + index) * p.inner + k, sum);
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void copy_words(
    const __grid_constant__ CopyParameters p) {
  AwaitPrecedingKernel();
  switch (p.word_bytes) {
    case 1:
      return CopyWords<uint8_t>(p);
    case 2:
      return CopyWords<uint16_t>(p);
    case 4:
      return CopyWords<uint32_t>(p);
    case 8:
      return CopyWords<uint64_t>(p);
    default:
      return p.words_per_thread == CopyParameters::kGroup
                 ? CopyWideWords<CopyParameters::kGroup>(p)
                 : CopyWideWords<1>(p);
  }
}

extern "C" __global__ void transpose_words(
    const __grid_constant__ TransposeParameters p) {
  AwaitPrecedingKernel();
  __shared__ uint64_t
      tile[TransposeParameters::kTile * (TransposeParameters::kTile + 1)];
  switch (p.word_bytes) {
    case 1:
      return TransposeTile<uint8_t>(p, tile);
    case 2:
      return TransposeTile<uint16_t>(p, tile);
    case 4:
      return TransposeTile<uint32_t>(p, tile);
    default:
      return TransposeTile<uint64_t>(p, tile);
  }
}

extern "C" __global__ void gather_words(
    const __grid_constant__ GatherParameters p) {
  AwaitPrecedingKernel();
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int64_t k = thread % p.inner;
  const int64_t i = thread / p.inner % p.index_count;
  const int64_t outer = thread / p.inner / p.index_count;
  const int64_t index = CheckedIndex(p.indices, i, p.bound, p.fault);
  if (index < 0) return;
  CopyWord(p.from, (outer * p.bound + index) * p.inner + k, p.to, thread,
           p.word_bytes);
}

extern "C" __global__ void scatter_float(
    const __grid_constant__ ScatterParameters p) {
  AwaitPrecedingKernel();
  ScatterRow<double>(p);
}

extern "C" __global__ void scatter_integer(
    const __grid_constant__ ScatterParameters p) {
  AwaitPrecedingKernel();
  ScatterRow<int64_t>(p);
}

extern "C" __global__ void one_hot(const __grid_constant__ OneHotParameters p) {
  AwaitPrecedingKernel();
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int64_t index =
      CheckedIndex(p.indices, thread / p.depth, p.depth, p.fault);
  StoreElement(p.to, thread,
               index == thread % p.depth ? p.on_value : p.off_value);
}

// True if fewer than k elements of a row are greater than its target.
extern "C" __global__ void in_top_k(
    const __grid_constant__ InTopKParameters p) {
  AwaitPrecedingKernel();
  const int64_t row = GlobalThread();
  if (row >= p.count) return;
  const int64_t target = LoadElement<int64_t>(p.targets, row);
  p.out[row] = false;
  if (target < 0 || target >= p.classes) return;
  const double wanted =
      LoadElement<double>(p.predictions, row * p.classes + target);
  int64_t greater_count = 0;
  for (int64_t c = 0; c < p.classes; ++c) {
    const double x = LoadElement<double>(p.predictions, row * p.classes + c);
    if (x - x != 0) return;  // Not finite.
    greater_count += x > wanted;
  }
  p.out[row] = greater_count < p.k;
}

extern "C" __global__ void check_condition(
    const __grid_constant__ CheckConditionParameters p) {
  AwaitPrecedingKernel();
  __shared__ int64_t first[CheckConditionParameters::kThreads];
  int64_t i = threadIdx.x;
  while (i < p.count && p.condition[i]) i += CheckConditionParameters::kThreads;
  first[threadIdx.x] = i;
  for (uint32_t half = CheckConditionParameters::kThreads / 2; half > 0;
       half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && first[threadIdx.x + half] < first[threadIdx.x]) {
      first[threadIdx.x] = first[threadIdx.x + half];
    }
  }
  if (threadIdx.x != 0 || first[0] >= p.count) return;
  ReportFault(p.fault, FaultCode::kConditionFalse, first[0], 0, 0);
}

MUSTER_SIMULATED_KERNELS(copy, MUSTER_PLAIN_KERNEL(copy_words),
                         MUSTER_BARRIER_KERNEL(transpose_words),
                         MUSTER_PLAIN_KERNEL(gather_words),
                         MUSTER_PLAIN_KERNEL(scatter_float),
                         MUSTER_PLAIN_KERNEL(scatter_integer),
                         MUSTER_PLAIN_KERNEL(one_hot),
                         MUSTER_PLAIN_KERNEL(in_top_k),
                         MUSTER_BARRIER_KERNEL(check_condition))
