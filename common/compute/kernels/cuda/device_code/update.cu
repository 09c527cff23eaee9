// Changes variables: passes of update rules and assignments. Also computes sums
// of rows, norms of gradients and of variables, and constraints.

#include "common/compute/functions/update.h"
#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/element_group.h"
#include "common/compute/kernels/cuda/device_code/merge_sort.h"
#include "common/compute/kernels/cuda/device_code/update_functions.h"
#include "common/compute/kernels/cuda/device_code/update_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

// Adds in the type of the elements, as the host does.
template <typename T>
__device__ void SumRow(const SumRowsParameters& p) {
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int64_t k = thread % p.row_elements;
  const int64_t i = thread / p.row_elements;
  const T* const from = static_cast<const T*>(p.from);
  T sum = T(0);
  if (p.links[i].is_first) {
    sum = from[thread];
    for (int64_t j = p.links[i].next; j >= 0; j = p.links[j].next) {
      sum += from[j * p.row_elements + k];
    }
  }
  static_cast<T*>(p.to)[thread] = sum;
}

template <typename T>
__device__ bool HasNonFinite(const FindNonFiniteParameters& p) {
  const T* const values = static_cast<const T*>(p.values.data);
  for (int64_t i = GlobalThread(); i < p.count; i += p.thread_count) {
    if (!(values[i] - values[i] == T(0))) return true;
  }
  return false;
}

// Orders positions by (index, position).
__device__ bool IsBefore(const DeviceElements& indices, int64_t a, int64_t b) {
  const int64_t index_a = LoadElement<int64_t>(indices, a);
  const int64_t index_b = LoadElement<int64_t>(indices, b);
  return index_a < index_b || (index_a == index_b && a < b);
}

template <typename C>
__device__ void ChangeElement(const ChangeParameters& p, int64_t value,
                              int64_t element) {
  const C operand = LoadElement<C>(p.values, value);
  if (p.change == ChangeKind::kReplace) {
    StoreElement(p.variable, element, operand);
    return;
  }
  const C old = LoadElement<C>(p.variable, element);
  StoreElement(p.variable, element,
               p.change == ChangeKind::kAdd ? WrappingAdd(old, operand)
                                            : WrappingSub(old, operand));
}

template <typename C>
__device__ void Change(const ChangeParameters& p) {
  const int64_t thread = GlobalThread();
  if (thread >= p.count || IsClosed(p.gate)) return;
  if (p.links == nullptr) {
    ChangeElement<C>(p, thread, thread);
    return;
  }
  const int64_t k = thread % p.row_elements;
  const int64_t i = thread / p.row_elements;
  if (!p.links[i].is_first) return;
  const int64_t row = LoadElement<int64_t>(p.indices, i);
  for (int64_t j = i; j >= 0; j = p.links[j].next) {
    ChangeElement<C>(p, j * p.row_elements + k, row * p.row_elements + k);
  }
}

// The elements that the threads of a block update at a time: a group for each
// thread, so that all loads of a thread are in flight at the same time.
template <typename T>
struct UpdateSpan {
  static constexpr int kGroup =
      UpdateParameters::kElementsPerBlock / UpdateParameters::kThreads;
  static constexpr int kAccess = kAccessBytesMax / sizeof(T);
  using Access = ElementGroup<T, kAccess>;

  int64_t begin;
  int64_t end;       // End of all elements of the item.
  bool is_accessed;  // Loads by Access; otherwise element by element.

  // Returns the position of element i of this thread. Adjacent threads have
  // adjacent elements.
  __device__ int64_t ElementOf(int i) const {
    return begin + i * UpdateParameters::kThreads + threadIdx.x;
  }

  // As ElementOf(), for groups of kAccess elements, relative to `begin`.
  __device__ int64_t AccessOf(int i) const {
    return i * UpdateParameters::kThreads + threadIdx.x;
  }

  __device__ __forceinline__ void Load(const void* array,
                                       T (&to)[kGroup]) const {
    const T* const from = InGlobalMemory(static_cast<const T*>(array));
    if (is_accessed) {
      const auto* const accesses =
          reinterpret_cast<const Access*>(from + begin);
      MUSTER_UNROLL
      for (int i = 0; i < kGroup / kAccess; ++i) {
        const Access access = accesses[AccessOf(i)];
        MUSTER_UNROLL
        for (int j = 0; j < kAccess; ++j) {
          to[i * kAccess + j] = access.values[j];
        }
      }
      return;
    }
    MUSTER_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      to[i] = ElementOf(i) < end ? from[ElementOf(i)] : T(0);
    }
  }

  __device__ __forceinline__ void Store(const T (&values)[kGroup],
                                        void* array) const {
    T* const to = InGlobalMemory(static_cast<T*>(array));
    if (is_accessed) {
      auto* const accesses = reinterpret_cast<Access*>(to + begin);
      MUSTER_UNROLL
      for (int i = 0; i < kGroup / kAccess; ++i) {
        Access access;
        MUSTER_UNROLL
        for (int j = 0; j < kAccess; ++j) {
          access.values[j] = values[i * kAccess + j];
        }
        accesses[AccessOf(i)] = access;
      }
      return;
    }
    MUSTER_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      if (ElementOf(i) < end) to[ElementOf(i)] = values[i];
    }
  }
};

// Returns the argument of the function if the item has no gradient.
template <typename T>
__device__ T OperandOf(const double* factor) {
  return factor == nullptr ? T(0) : static_cast<T>(*factor);
}

// Limits loaded gradients, as LimitedGradientAt() does.
template <typename T, int kCount>
__device__ __forceinline__ void LimitGradients(const UpdateItem& item,
                                               const double* factor,
                                               T (&gradients)[kCount]) {
  if (item.gradients_in_sum != 0) {
    MUSTER_UNROLL
    for (int i = 0; i < kCount; ++i) {
      gradients[i] = MeanGradient(item, gradients[i]);
    }
  }
  if (item.clip == ClipKind::kNone) return;
  MUSTER_UNROLL
  for (int i = 0; i < kCount; ++i) {
    gradients[i] = LimitedGradient(item, factor, gradients[i]);
  }
}

// Loads everything before the first operation, which waits for the loads.
template <typename Function, typename T>
__device__ __forceinline__ void UpdateElements(
    const typename Function::template Coefficients<T>& c,
    const UpdateItem& item, const double* factor, const UpdateSpan<T>& span) {
  constexpr int kGroup = UpdateSpan<T>::kGroup;
  T gradients[kGroup];
  T variables[kGroup];
  T slots[UpdateItem::kSlotsMax][kGroup];
  if (item.gradient != nullptr) span.Load(item.gradient, gradients);
  span.Load(item.variable, variables);
  MUSTER_UNROLL
  for (int s = 0; s < Function::kSlotCount; ++s) {
    span.Load(item.slots[s], slots[s]);
  }
  if (item.gradient != nullptr) {
    LimitGradients(item, factor, gradients);
  } else {
    const T operand = OperandOf<T>(factor);
    MUSTER_UNROLL
    for (int i = 0; i < kGroup; ++i) gradients[i] = operand;
  }
  MUSTER_UNROLL
  for (int i = 0; i < kGroup; ++i) {
    T of_element[UpdateItem::kSlotsMax];
    MUSTER_UNROLL
    for (int s = 0; s < Function::kSlotCount; ++s) of_element[s] = slots[s][i];
    variables[i] =
        Function::template Apply<T>(c, gradients[i], variables[i], of_element);
    MUSTER_UNROLL
    for (int s = 0; s < Function::kSlotCount; ++s) slots[s][i] = of_element[s];
    gradients[i] = T(0);
  }
  span.Store(variables, item.variable);
  MUSTER_UNROLL
  for (int s = 0; s < Function::kSlotCount; ++s) {
    span.Store(slots[s], item.slots[s]);
  }
  if (item.gradients_in_sum != 0) span.Store(gradients, item.gradient);
}

// Updates the element of a row to which element `at` of the gradient belongs.
template <typename Function, typename T>
__device__ void UpdateElementOfRow(
    const typename Function::template Coefficients<T>& c,
    const UpdateItem& item, const double* factor, int64_t at) {
  const int64_t position = at / item.row_elements;
  if (!item.links[position].is_first) return;
  const int64_t element =
      LoadElement<int64_t>(item.indices, position) * item.row_elements +
      at % item.row_elements;
  const T g = item.gradient == nullptr ? OperandOf<T>(factor)
                                       : LimitedGradientAt<T>(item, factor, at);
  T slots[UpdateItem::kSlotsMax];
  MUSTER_UNROLL
  for (int s = 0; s < Function::kSlotCount; ++s) {
    slots[s] = static_cast<const T*>(item.slots[s])[element];
  }
  T* const variable = static_cast<T*>(item.variable) + element;
  *variable = Function::template Apply<T>(c, g, *variable, slots);
  MUSTER_UNROLL
  for (int s = 0; s < Function::kSlotCount; ++s) {
    static_cast<T*>(item.slots[s])[element] = slots[s];
  }
  if (item.gradients_in_sum != 0) static_cast<T*>(item.gradient)[at] = T(0);
}

// True if all arrays of the item are aligned for an access.
template <typename Function, typename T>
__device__ bool IsAligned(const UpdateItem& item) {
  using Access = typename UpdateSpan<T>::Access;
  bool is_aligned = IsAlignedFor<Access>(item.gradient) &&
                    IsAlignedFor<Access>(item.variable);
  MUSTER_UNROLL
  for (int s = 0; s < Function::kSlotCount; ++s) {
    is_aligned = is_aligned && IsAlignedFor<Access>(item.slots[s]);
  }
  return is_aligned;
}

// Returns the item that this block updates.
__device__ int64_t ItemOfBlock(const UpdateParameters& p) {
  const int64_t block = blockIdx.x;
  int64_t index = 0;
  for (int64_t end = p.item_count; end - index > 1;) {
    const int64_t middle = (index + end) / 2;
    (p.items[middle].first_block <= block ? index : end) = middle;
  }
  return index;
}

template <typename Function, typename T>
__device__ void Update(const UpdateParameters& p) {
  using Coefficients = typename Function::template Coefficients<T>;
  constexpr int64_t kElements = UpdateParameters::kElementsPerBlock;
  const Coefficients& c =
      *reinterpret_cast<const Coefficients*>(p.coefficients);
  if (IsSkipped(p.condition)) return;
  const int64_t index = ItemOfBlock(p);
  // A copy, because the compiler must assume that stores to the variable change
  // *p.items.
  const UpdateItem item = p.items[index];
  const double* const factor =
      p.factors == nullptr ? nullptr : p.factors + index;
  const int64_t begin = (blockIdx.x - item.first_block) * kElements;
  if (item.links != nullptr) {
    for (int i = 0; i < UpdateSpan<T>::kGroup; ++i) {
      const int64_t at = begin + i * UpdateParameters::kThreads + threadIdx.x;
      if (at < item.count) UpdateElementOfRow<Function, T>(c, item, factor, at);
    }
    return;
  }
  UpdateElements<Function, T>(
      c, item, factor,
      {begin, item.count,
       item.count - begin >= kElements && IsAligned<Function, T>(item)});
}

constexpr int64_t kSquaresStride =
    int64_t{SquaresParameters::kBlocksPerItem} * SquaresParameters::kThreads;

// Computes the parts of the sums of squares of weights and of directions.
template <typename T>
__device__ void LambSquares(const LambRatiosParameters& p) {
  const auto& c = *reinterpret_cast<const LambCoefficients<T>*>(p.coefficients);
  const UpdateItem& item = p.items[blockIdx.y];
  double weight_sum = 0;
  double direction_sum = 0;
  for (int64_t i = GlobalThread(); i < item.count; i += kSquaresStride) {
    const double w = static_cast<const T*>(item.variable)[i];
    const double u = LambDirection(c, static_cast<const T*>(item.slots[0])[i],
                                   static_cast<const T*>(item.slots[1])[i]);
    weight_sum += w * w;
    direction_sum += u * u;
  }
  double* const partials =
      p.partials + int64_t{blockIdx.y} * 2 * SquaresParameters::kBlocksPerItem +
      blockIdx.x;
  const bool has_elements =
      int64_t{blockIdx.x} * SquaresParameters::kThreads < item.count;
  if (!has_elements) {
    if (threadIdx.x == 0) {
      partials[0] = 0;
      partials[SquaresParameters::kBlocksPerItem] = 0;
    }
    return;
  }
  weight_sum = BlockSum(weight_sum);
  if (threadIdx.x == 0) partials[0] = weight_sum;
  direction_sum = BlockSum(direction_sum);
  if (threadIdx.x == 0) {
    partials[SquaresParameters::kBlocksPerItem] = direction_sum;
  }
}

template <typename T>
__device__ void ConstrainNorm(const ConstrainParameters& p) {
  if (IsSkipped(p.condition)) return;
  T* const first = static_cast<T*>(p.variable) + p.norms(blockIdx.x);
  double sum = 0;
  for (int64_t j = threadIdx.x; j < p.element_count;
       j += ConstrainParameters::kThreads) {
    const double w = first[p.elements(j)];
    sum += w * w;
  }
  const T factor =
      muster::NormFactor(p.bounds, static_cast<T>(sqrt(BlockSum(sum))));
  for (int64_t j = threadIdx.x; j < p.element_count;
       j += ConstrainParameters::kThreads) {
    T& w = first[p.elements(j)];
    w = muster::ApplyNormFactor(p.bounds, factor, w);
  }
}

template <typename T>
__device__ void ConstrainSign(const ConstrainParameters& p) {
  const int64_t i = GlobalThread();
  if (i >= p.element_count || IsSkipped(p.condition)) return;
  T& w = static_cast<T*>(p.variable)[i];
  if (w < T(0)) w = T(0);
}

__device__ bool HasNorm(const UpdateItem& item) {
  return item.clip == ClipKind::kNorm || item.clip == ClipKind::kGlobalNorm;
}

// Returns the factor of a gradient with this norm, as the host does. A global
// norm that is not finite makes all gradients NaN.
__device__ double FactorOf(const UpdateItem& item, double norm) {
  if (norm <= item.clip_limit) return 1;
  const double factor = item.clip_limit / norm;
  return item.clip == ClipKind::kGlobalNorm && norm - norm != 0 ? norm - norm
                                                                : factor;
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

extern "C" __global__ void sort_runs(
    const __grid_constant__ SortRowsParameters p) {
  AwaitPrecedingKernel();
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  const int32_t i = static_cast<int32_t>(thread);
  p.to[PlaceInSortedRun(i, p.kFirstRun, p.count, [&](int32_t a, int32_t b) {
    return IsBefore(p.indices, a, b);
  })] = i;
}

extern "C" __global__ void merge_runs(
    const __grid_constant__ SortRowsParameters p) {
  AwaitPrecedingKernel();
  const int64_t thread = GlobalThread();
  if (thread >= p.count) return;
  p.to[PlaceInMergedRun(p.from, thread, p.run, p.count,
                        [&](int32_t a, int32_t b) {
                          return IsBefore(p.indices, a, b);
                        })] = p.from[thread];
}

extern "C" __global__ void link_rows(
    const __grid_constant__ LinkRowsParameters p) {
  AwaitPrecedingKernel();
  const int64_t place = GlobalThread();
  if (place >= p.count) return;
  const int32_t i = p.sorted[place];
  const int64_t index = LoadElement<int64_t>(p.indices, i);
  RowLink link = {0, -1};
  if (index < 0 || index >= p.bound) {
    ReportFault(p.fault, FaultCode::kIndexOutOfRange, i, index, p.bound);
    p.links[i] = link;
    return;
  }
  const auto has_index = [&](int64_t other) {
    return other >= 0 && other < p.count &&
           LoadElement<int64_t>(p.indices, p.sorted[other]) == index;
  };
  link.is_first = !has_index(place - 1);
  if (has_index(place + 1)) link.next = p.sorted[place + 1];
  p.links[i] = link;
}

extern "C" __global__ void sum_rows_float(
    const __grid_constant__ SumRowsParameters p) {
  AwaitPrecedingKernel();
  SumRow<float>(p);
}

extern "C" __global__ void sum_rows_double(
    const __grid_constant__ SumRowsParameters p) {
  AwaitPrecedingKernel();
  SumRow<double>(p);
}

extern "C" __global__ void change_float(
    const __grid_constant__ ChangeParameters p) {
  AwaitPrecedingKernel();
  Change<double>(p);
}

extern "C" __global__ void change_integer(
    const __grid_constant__ ChangeParameters p) {
  AwaitPrecedingKernel();
  Change<int64_t>(p);
}

extern "C" __global__ void find_non_finite(
    const __grid_constant__ FindNonFiniteParameters p) {
  AwaitPrecedingKernel();
  const bool found = p.values.type == ElementType::kFloat64
                         ? HasNonFinite<double>(p)
                         : HasNonFinite<float>(p);
  if (found) *p.found = 1;
}

extern "C" __global__ void choose_variant(
    const __grid_constant__ ChooseVariantParameters p) {
  AwaitPrecedingKernel();
  if (GlobalThread() != 0) return;
  const int32_t is_skipped = *p.found != 0 ? 1 : 0;
  const int32_t skipped_before = p.is_settled != 0 ? 0 : p.state->was_skipped;
  p.state->variant = is_skipped != 0 ? -1 : skipped_before;
  p.state->was_skipped = is_skipped;
  p.state->gradient = is_skipped != 0 ? -*p.scale : *p.scale;
  *p.was_skipped = is_skipped;
}

extern "C" __global__ void sum_squares(
    const __grid_constant__ SquaresParameters p) {
  AwaitPrecedingKernel();
  const UpdateItem& item = p.items[blockIdx.y];
  double sum = 0;
  if (HasNorm(item)) {
    for (int64_t i = GlobalThread(); i < item.count; i += kSquaresStride) {
      const double g = item.type == ElementType::kFloat64
                           ? GradientAt<double>(item, i)
                           : GradientAt<float>(item, i);
      sum += g * g;
    }
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) {
    p.partials[int64_t{blockIdx.y} * SquaresParameters::kBlocksPerItem +
               blockIdx.x] = sum;
  }
}

extern "C" __global__ void clip_factors(
    const __grid_constant__ ClipFactorsParameters p) {
  AwaitPrecedingKernel();
  // Sum of squares of all items that share the global norm.
  double total = 0;
  for (int64_t i = threadIdx.x; i < p.item_count;
       i += ClipFactorsParameters::kThreads) {
    const UpdateItem& item = p.items[i];
    double sum = 0;
    for (int b = 0; b < SquaresParameters::kBlocksPerItem; ++b) {
      sum += p.partials[i * SquaresParameters::kBlocksPerItem + b];
    }
    if (item.clip == ClipKind::kGlobalNorm) total += sum;
    if (item.clip == ClipKind::kNorm) p.factors[i] = FactorOf(item, sqrt(sum));
  }
  const double norm = sqrt(BlockSum(total));
  for (int64_t i = threadIdx.x; i < p.item_count;
       i += ClipFactorsParameters::kThreads) {
    if (p.items[i].clip == ClipKind::kGlobalNorm) {
      p.factors[i] = FactorOf(p.items[i], norm);
    }
  }
}

extern "C" __global__ void lamb_squares_float(
    const __grid_constant__ LambRatiosParameters p) {
  AwaitPrecedingKernel();
  LambSquares<float>(p);
}

extern "C" __global__ void lamb_squares_double(
    const __grid_constant__ LambRatiosParameters p) {
  AwaitPrecedingKernel();
  LambSquares<double>(p);
}

extern "C" __global__ void lamb_ratios(
    const __grid_constant__ LambRatiosParameters p) {
  AwaitPrecedingKernel();
  const int64_t i = GlobalThread();
  if (i >= p.item_count) return;
  double sums[2] = {0, 0};
  for (int part = 0; part < 2; ++part) {
    for (int b = 0; b < SquaresParameters::kBlocksPerItem; ++b) {
      sums[part] +=
          p.partials[(2 * i + part) * SquaresParameters::kBlocksPerItem + b];
    }
  }
  p.ratios[i] = muster::LambRatio(sums[0], sums[1]);
}

extern "C" __global__ void constrain_norms_float(
    const __grid_constant__ ConstrainParameters p) {
  AwaitPrecedingKernel();
  ConstrainNorm<float>(p);
}

extern "C" __global__ void constrain_norms_double(
    const __grid_constant__ ConstrainParameters p) {
  AwaitPrecedingKernel();
  ConstrainNorm<double>(p);
}

extern "C" __global__ void constrain_signs_float(
    const __grid_constant__ ConstrainParameters p) {
  AwaitPrecedingKernel();
  ConstrainSign<float>(p);
}

extern "C" __global__ void constrain_signs_double(
    const __grid_constant__ ConstrainParameters p) {
  AwaitPrecedingKernel();
  ConstrainSign<double>(p);
}

// Defines update_NAME_float and update_NAME_double.
#define MUSTER_UPDATE_KERNELS(name, ...)             \
  extern "C" __global__ void update_##name##_float(  \
      const __grid_constant__ UpdateParameters p) {  \
    AwaitPrecedingKernel();                          \
    Update<muster::__VA_ARGS__, float>(p);           \
  }                                                  \
  extern "C" __global__ void update_##name##_double( \
      const __grid_constant__ UpdateParameters p) {  \
    AwaitPrecedingKernel();                          \
    Update<muster::__VA_ARGS__, double>(p);          \
  }
MUSTER_UPDATE_FUNCTIONS(MUSTER_UPDATE_KERNELS)

#define MUSTER_LIST_KERNELS(name, ...)          \
  , MUSTER_PLAIN_KERNEL(update_##name##_float), \
      MUSTER_PLAIN_KERNEL(update_##name##_double)
MUSTER_SIMULATED_KERNELS(
    update, MUSTER_PLAIN_KERNEL(sort_runs), MUSTER_PLAIN_KERNEL(merge_runs),
    MUSTER_PLAIN_KERNEL(link_rows), MUSTER_PLAIN_KERNEL(sum_rows_float),
    MUSTER_PLAIN_KERNEL(sum_rows_double), MUSTER_PLAIN_KERNEL(change_float),
    MUSTER_PLAIN_KERNEL(change_integer), MUSTER_PLAIN_KERNEL(find_non_finite),
    MUSTER_PLAIN_KERNEL(choose_variant), MUSTER_BARRIER_KERNEL(sum_squares),
    MUSTER_BARRIER_KERNEL(clip_factors),
    MUSTER_BARRIER_KERNEL(lamb_squares_float),
    MUSTER_BARRIER_KERNEL(lamb_squares_double),
    MUSTER_BARRIER_KERNEL(constrain_norms_float),
    MUSTER_BARRIER_KERNEL(constrain_norms_double),
    MUSTER_PLAIN_KERNEL(constrain_signs_float),
    MUSTER_PLAIN_KERNEL(constrain_signs_double),
    MUSTER_PLAIN_KERNEL(lamb_ratios)
        MUSTER_UPDATE_FUNCTIONS(MUSTER_LIST_KERNELS))
