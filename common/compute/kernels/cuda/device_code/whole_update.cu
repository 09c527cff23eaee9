// Changes one variable by a rule that needs the whole variable: Adafactor and
// Muon.

#include "common/compute/kernels/cuda/device_code/device_functions.h"
#include "common/compute/kernels/cuda/device_code/update_functions.h"
#include "common/compute/kernels/cuda/device_code/update_parameters.h"
#include "common/core/device/device_language.h"

namespace muster::internal {
namespace {

template <typename T>
__device__ T* SlotOf(const WholeItem& whole, int slot) {
  return static_cast<T*>(whole.item->slots[slot]);
}

template <typename T>
__device__ T GradientOf(const WholeItem& whole, int64_t at) {
  return LimitedGradientAt<T>(*whole.item, whole.factor, at);
}

// Resets a gradient that was the sum of several gradients.
template <typename T>
__device__ void EndSum(const WholeItem& whole, int64_t at) {
  if (whole.item->gradients_in_sum == 0) return;
  static_cast<T*>(whole.item->gradient)[at] = T(0);
}

template <typename T>
__device__ T Decay(const WholeItem& whole, double decay, int64_t at) {
  T& w = static_cast<T*>(whole.item->variable)[at];
  w -= w * static_cast<T>(decay);
  return w;
}

// Adds the parts of a sum. Every thread of the block calls it.
__device__ double SumOfParts(const double* parts, int part_count) {
  double sum = 0;
  for (int i = threadIdx.x; i < part_count; i += blockDim.x) sum += parts[i];
  return BlockSum(sum);
}

template <typename T>
__device__ T GradientSquare(const AdafactorParameters& p, int64_t at) {
  const T g = GradientOf<T>(p.whole, at);
  return g * g + static_cast<T>(p.coefficients.epsilon_1);
}

template <typename T>
__device__ void MoveTowards(const AdafactorParameters& p, double mean,
                            T* slot) {
  const T beta = static_cast<T>(p.coefficients.beta);
  *slot = beta * *slot + (1 - beta) * static_cast<T>(mean);
}

template <typename T>
__device__ void AdafactorRow(const AdafactorParameters& p) {
  if (IsSkipped(p.whole.condition)) return;
  const int64_t row = blockIdx.x;
  const int64_t columns = p.coefficients.columns;
  double sum = 0;
  for (int64_t j = threadIdx.x; j < columns; j += p.kThreads) {
    sum += GradientSquare<T>(p, row * columns + j);
  }
  sum = BlockSum(sum);
  if (threadIdx.x != 0) return;
  MoveTowards(p, sum / static_cast<double>(columns),
              SlotOf<T>(p.whole, 0) + row);
}

template <typename T>
__device__ void AdafactorColumnPart(const AdafactorParameters& p) {
  const int64_t column = GlobalThread();
  if (column >= p.column_count || IsSkipped(p.whole.condition)) return;
  const int64_t rows = p.coefficients.rows;
  const int64_t columns = p.coefficients.columns;
  const int64_t first = column / columns * rows * columns + column % columns;
  double sum = 0;
  for (int64_t i = blockIdx.y; i < rows; i += p.kParts) {
    sum += GradientSquare<T>(p, first + i * columns);
  }
  p.column_parts[int64_t{blockIdx.y} * p.column_count + column] = sum;
}

template <typename T>
__device__ void AdafactorColumnMean(const AdafactorParameters& p) {
  const int64_t column = GlobalThread();
  if (column >= p.column_count || IsSkipped(p.whole.condition)) return;
  double sum = 0;
  for (int part = 0; part < p.kParts; ++part) {
    sum += p.column_parts[part * p.column_count + column];
  }
  MoveTowards(p, sum / static_cast<double>(p.coefficients.rows),
              SlotOf<T>(p.whole, 1) + column);
}

template <typename T>
__device__ void AdafactorRowMean(const AdafactorParameters& p) {
  const int64_t rows = p.coefficients.rows;
  const T* const row_means = SlotOf<T>(p.whole, 0) + blockIdx.x * rows;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < rows; i += p.kThreads) sum += row_means[i];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) p.row_means[blockIdx.x] = sum / rows;
}

template <typename T>
__device__ T Velocity(const AdafactorParameters& p, int64_t at) {
  const AdafactorCoefficients& c = p.coefficients;
  if (c.columns == 0) {
    T velocity = SlotOf<T>(p.whole, 0)[at];
    MoveTowards(p, GradientSquare<T>(p, at), &velocity);
    return velocity;
  }
  const int64_t row = at / c.columns;
  const int64_t matrix = row / c.rows;
  const T share =
      SlotOf<T>(p.whole, 0)[row] / static_cast<T>(p.row_means[matrix]);
  return share * SlotOf<T>(p.whole, 1)[matrix * c.columns + at % c.columns];
}

__device__ int VelocitySlot(const AdafactorParameters& p) {
  return p.coefficients.columns == 0 ? 0 : 2;
}

template <typename T>
__device__ T AdafactorDirection(const AdafactorParameters& p, int64_t at) {
  return GradientOf<T>(p.whole, at) /
         sqrt(SlotOf<T>(p.whole, VelocitySlot(p))[at]);
}

template <typename T>
__device__ void AdafactorVelocities(const AdafactorParameters& p) {
  if (IsSkipped(p.whole.condition)) return;
  double weight_sum = 0;
  double direction_sum = 0;
  for (int64_t i = GlobalThread(); i < p.whole.item->count;
       i += int64_t{p.kParts} * p.kThreads) {
    const double w = Decay<T>(p.whole, p.coefficients.decay, i);
    SlotOf<T>(p.whole, VelocitySlot(p))[i] = Velocity<T>(p, i);
    const double direction = AdafactorDirection<T>(p, i);
    weight_sum += w * w;
    direction_sum += direction * direction;
  }
  weight_sum = BlockSum(weight_sum);
  direction_sum = BlockSum(direction_sum);
  if (threadIdx.x != 0) return;
  p.square_parts[blockIdx.x] = weight_sum;
  p.square_parts[p.kParts + blockIdx.x] = direction_sum;
}

template <typename T>
__device__ void AdafactorApply(const AdafactorParameters& p) {
  if (IsSkipped(p.whole.condition)) return;
  const AdafactorCoefficients& c = p.coefficients;
  const int64_t count = p.whole.item->count;
  const double weights = SumOfParts(p.square_parts, p.kParts);
  const double directions = SumOfParts(p.square_parts + p.kParts, p.kParts);
  const T weight_size = static_cast<T>(sqrt(weights / count));
  const T direction_size = static_cast<T>(sqrt(directions / count));
  const T size_min = static_cast<T>(c.epsilon_2);
  const T size = (weight_size > size_min ? weight_size : size_min) *
                 static_cast<T>(c.rate);
  const T ratio = direction_size / static_cast<T>(c.clip_threshold);
  // As std::max(1, ratio), which returns 1 for NaN.
  const T limit = ratio > T(1) ? ratio : T(1);
  const int64_t i = GlobalThread();
  if (i >= count) return;
  static_cast<T*>(p.whole.item->variable)[i] -=
      size * (AdafactorDirection<T>(p, i) / limit);
  EndSum<T>(p.whole, i);
}

// Returns the place of the variable's element `at` in MuonParameters::matrix.
__device__ int64_t PlaceInMatrix(const MuonCoefficients& c, int64_t at) {
  return c.rows > c.columns ? at % c.columns * c.rows + at / c.columns : at;
}

template <typename T>
__device__ void MuonDirections(const MuonParameters& p) {
  if (IsSkipped(p.whole.condition)) return;
  const MuonCoefficients& c = p.coefficients;
  const T momentum = static_cast<T>(c.momentum);
  const T less_one = static_cast<T>(c.momentum - 1);
  double sum = 0;
  for (int64_t i = GlobalThread(); i < p.whole.item->count;
       i += int64_t{p.kParts} * p.kThreads) {
    const T g = GradientOf<T>(p.whole, i);
    T& m = SlotOf<T>(p.whole, 0)[i];
    m += g + m * less_one;
    const T direction = c.is_nesterov != 0 ? g + momentum * m : m;
    static_cast<T*>(p.matrix)[PlaceInMatrix(c, i)] = direction;
    sum += static_cast<double>(direction) * direction;
    Decay<T>(p.whole, c.decay, i);
    EndSum<T>(p.whole, i);
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) p.square_parts[blockIdx.x] = sum;
}

template <typename T>
__device__ void MuonNormalize(const MuonParameters& p) {
  const double squares = SumOfParts(p.square_parts, p.kParts);
  const int64_t i = GlobalThread();
  if (i >= p.whole.item->count) return;
  static_cast<T*>(p.matrix)[i] /=
      static_cast<T>(sqrt(squares)) + static_cast<T>(muster::kMuonNormEpsilon);
}

template <typename T>
__device__ void MuonApply(const MuonParameters& p) {
  const int64_t i = GlobalThread();
  if (i >= p.whole.item->count || IsSkipped(p.whole.condition)) return;
  static_cast<T*>(p.whole.item->variable)[i] -=
      static_cast<T>(p.coefficients.rate) *
      static_cast<const T*>(p.matrix)[PlaceInMatrix(p.coefficients, i)];
}

template <typename T>
__device__ void Combine(const CombineParameters& p) {
  const int64_t i = GlobalThread();
  if (i >= p.count) return;
  static_cast<T*>(p.to)[i] =
      static_cast<T>(p.first_factor) * static_cast<const T*>(p.first)[i] +
      static_cast<T>(p.second_factor) * static_cast<const T*>(p.second)[i];
}

}  // namespace
}  // namespace muster::internal

using namespace muster::internal;  // NOLINT

// Defines NAME_float and NAME_double.
#define MUSTER_KERNELS(name, Function, Parameters) \
  extern "C" __global__ void name##_float(         \
      const __grid_constant__ Parameters p) {      \
    AwaitPrecedingKernel();                        \
    Function<float>(p);                            \
  }                                                \
  extern "C" __global__ void name##_double(        \
      const __grid_constant__ Parameters p) {      \
    AwaitPrecedingKernel();                        \
    Function<double>(p);                           \
  }
MUSTER_KERNELS(adafactor_rows, AdafactorRow, AdafactorParameters)
MUSTER_KERNELS(adafactor_columns, AdafactorColumnPart, AdafactorParameters)
MUSTER_KERNELS(adafactor_means, AdafactorColumnMean, AdafactorParameters)
MUSTER_KERNELS(adafactor_matrices, AdafactorRowMean, AdafactorParameters)
MUSTER_KERNELS(adafactor_velocities, AdafactorVelocities, AdafactorParameters)
MUSTER_KERNELS(adafactor_apply, AdafactorApply, AdafactorParameters)
MUSTER_KERNELS(muon_directions, MuonDirections, MuonParameters)
MUSTER_KERNELS(muon_normalize, MuonNormalize, MuonParameters)
MUSTER_KERNELS(muon_apply, MuonApply, MuonParameters)
MUSTER_KERNELS(combine, Combine, CombineParameters)

#define MUSTER_BOTH(KIND, name) KIND(name##_float), KIND(name##_double)
MUSTER_SIMULATED_KERNELS(whole_update,
                         MUSTER_BOTH(MUSTER_BARRIER_KERNEL, adafactor_rows),
                         MUSTER_BOTH(MUSTER_PLAIN_KERNEL, adafactor_columns),
                         MUSTER_BOTH(MUSTER_PLAIN_KERNEL, adafactor_means),
                         MUSTER_BOTH(MUSTER_BARRIER_KERNEL, adafactor_matrices),
                         MUSTER_BOTH(MUSTER_BARRIER_KERNEL,
                                     adafactor_velocities),
                         MUSTER_BOTH(MUSTER_BARRIER_KERNEL, adafactor_apply),
                         MUSTER_BOTH(MUSTER_BARRIER_KERNEL, muon_directions),
                         MUSTER_BOTH(MUSTER_BARRIER_KERNEL, muon_normalize),
                         MUSTER_BOTH(MUSTER_PLAIN_KERNEL, muon_apply),
                         MUSTER_BOTH(MUSTER_PLAIN_KERNEL, combine))
