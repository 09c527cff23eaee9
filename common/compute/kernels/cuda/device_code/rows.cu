// Orders the elements of rows, and takes and adds elements along rows.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/device_code/merge_sort.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

// The order of TopK: NaN comes last, and of equal elements the first one first.
template <typename C>
__device__ bool IsBefore(const SortElementsParameters& p, int64_t row,
                         int32_t a, int32_t b) {
  const C first = LoadElement<C>(p.elements, row * p.length + a);
  const C second = LoadElement<C>(p.elements, row * p.length + b);
  const bool is_first_nan = IsNanNumber(first);
  const bool is_second_nan = IsNanNumber(second);
  if (is_first_nan != is_second_nan) return is_second_nan;
  if (!is_first_nan && first != second) {
    return p.smallest_first ? first < second : first > second;
  }
  return a < b;
}

template <typename C>
__device__ void SortRun(const SortElementsParameters& p) {
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int64_t row = thread / p.length;
  const int32_t i = static_cast<int32_t>(thread % p.length);
  const int64_t place = PlaceInSortedRun(
      i, p.kFirstRun, p.length,
      [&](int32_t a, int32_t b) { return IsBefore<C>(p, row, a, b); });
  p.to[row * p.length + place] = i;
}

template <typename C>
__device__ void MergeRuns(const SortElementsParameters& p) {
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int64_t row = thread / p.length;
  const int32_t* const from = p.from + row * p.length;
  const int64_t place = PlaceInMergedRun(
      from, thread % p.length, p.run, p.length,
      [&](int32_t a, int32_t b) { return IsBefore<C>(p, row, a, b); });
  p.to[row * p.length + place] = p.from[thread];
}

template <typename C>
__device__ void TakeTop(const TakeTopParameters& p) {
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int64_t begin = thread / p.k * p.length;
  const int32_t position = p.sorted[begin + thread % p.k];
  StoreElement(p.values, thread, LoadElement<C>(p.elements, begin + position));
  p.indices[thread] = position;
}

// Returns the position in rows of `length` for index i, or -1 after reporting
// that the index is out of range.
__device__ int64_t PositionOf(const AlongRowsParameters& p, int64_t i) {
  const int64_t index = LoadElement<int64_t>(p.indices, i);
  if (index >= 0 && index < p.length) return i / p.width * p.length + index;
  ReportFault(p.fault, FaultCode::kIndexOutOfRange, i, index, p.length);
  return -1;
}

template <typename C>
__device__ void TakeAlong(const AlongRowsParameters& p) {
  const int64_t i = GlobalThread();
  if (i >= p.count) return;
  const int64_t position = PositionOf(p, i);
  if (position < 0) return;
  StoreElement(p.to, i, LoadElement<C>(p.from, position));
}

template <typename C>
__device__ void AddAlong(const AlongRowsParameters& p) {
  const int64_t i = GlobalThread();
  if (i >= p.count) return;
  const int64_t position = PositionOf(p, i);
  if (position < 0) return;
  const int64_t index = LoadElement<int64_t>(p.indices, i);
  const int64_t begin = i / p.width * p.width;
  for (int64_t j = begin; j < i; ++j) {
    if (LoadElement<int64_t>(p.indices, j) == index) return;
  }
  C sum = C(0);
  for (int64_t j = i; j < begin + p.width; ++j) {
    if (LoadElement<int64_t>(p.indices, j) != index) continue;
    sum = WrappingAdd(sum, LoadElement<C>(p.from, j));
  }
  StoreElement(p.to, position, sum);
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

#define MUSTER_ROW_KERNELS(name, function, Parameters) \
  extern "C" __global__ void name##_float(             \
      const __grid_constant__ Parameters p) {          \
    AwaitPrecedingKernel();                            \
    function<double>(p);                               \
  }                                                    \
  extern "C" __global__ void name##_integer(           \
      const __grid_constant__ Parameters p) {          \
    AwaitPrecedingKernel();                            \
    function<int64_t>(p);                              \
  }
MUSTER_ROW_KERNELS(sort_row_runs, SortRun, SortElementsParameters)
MUSTER_ROW_KERNELS(merge_row_runs, MergeRuns, SortElementsParameters)
MUSTER_ROW_KERNELS(take_top, TakeTop, TakeTopParameters)
MUSTER_ROW_KERNELS(take_along_rows, TakeAlong, AlongRowsParameters)
MUSTER_ROW_KERNELS(add_along_rows, AddAlong, AlongRowsParameters)

MUSTER_SIMULATED_KERNELS(rows, MUSTER_PLAIN_KERNEL(sort_row_runs_float),
                         MUSTER_PLAIN_KERNEL(sort_row_runs_integer),
                         MUSTER_PLAIN_KERNEL(merge_row_runs_float),
                         MUSTER_PLAIN_KERNEL(merge_row_runs_integer),
                         MUSTER_PLAIN_KERNEL(take_top_float),
                         MUSTER_PLAIN_KERNEL(take_top_integer),
                         MUSTER_PLAIN_KERNEL(take_along_rows_float),
                         MUSTER_PLAIN_KERNEL(take_along_rows_integer),
                         MUSTER_PLAIN_KERNEL(add_along_rows_float),
                         MUSTER_PLAIN_KERNEL(add_along_rows_integer))
