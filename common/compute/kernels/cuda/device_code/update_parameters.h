#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_UPDATE_PARAMETERS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_UPDATE_PARAMETERS_H_

#include "common/compute/functions/norm_constraint.h"
#include "common/compute/functions/update.h"
#include "common/compute/functions/whole_update.h"
#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/core/base/host_device.h"

// The parameters of the kernels of update.cu, which change variables. As in
// kernel_parameters.h, a kernel has one parameter; addresses are the device's.
namespace muster::internal {

// A position of an array of row indices.
struct RowLink {
  int32_t is_first;  // 1: no earlier position has the same index.
  int32_t next;      // The next position with the same index; -1: none.
};

// Positions of row indices, sorted by (index, position) in runs of `run` of
// them. sort_runs makes runs of kFirstRun. merge_runs makes runs of twice the
// length of `from`: an element of one run moves by the number of smaller ones
// in the other. Positions differ, so that each has one place. A thread for each
// position.
struct SortRowsParameters {
  static constexpr int64_t kFirstRun = 64;

  int64_t count;
  DeviceElements indices;
  int64_t run;          // Of `from`.
  const int32_t* from;  // Unused by sort_runs.
  int32_t* to;
};

// Fills links[i] for each index. One that is not in [0, bound) is reported, and
// has is_first = 0.
struct LinkRowsParameters {
  int64_t count;
  DeviceElements indices;
  const int32_t* sorted;  // Positions, one run of all.
  int64_t bound;
  RowLink* links;
  FaultRecord* fault;
};

// Adds rows of the same index in the order of their positions: to[i] is the sum
// if position i is the first, and 0 otherwise. A thread for each element.
struct SumRowsParameters {
  int64_t count;  // Positions times row_elements.
  int64_t row_elements;
  const void* from;
  void* to;
  const RowLink* links;
};

enum class ChangeKind : int32_t { kReplace, kAdd, kSubtract };

// variable[i] = / += / -= values[i]; with `links` the rows that the indices
// name, those of the same index in the order of their positions.
struct ChangeParameters {
  int64_t count;  // Of values.
  ChangeKind change;
  DeviceElements values;
  DeviceElements variable;
  int64_t row_elements;
  DeviceElements indices;
  const RowLink* links;    // Null: the whole variable.
  const DeviceGate* gate;  // Nothing changes if it is closed. May be null.
};

// How a gradient is limited before it is applied.
enum class ClipKind : int32_t { kNone, kValue, kNorm, kGlobalNorm };

// A variable, or a slot, that a pass over variables changes.
struct UpdateItem {
  static constexpr int kSlotsMax = 3;

  void* variable;
  // Null: the function takes UpdateParameters::factors of the item, or 0.
  void* gradient;
  // Not 0: the gradient is the sum of so many gradients. The function takes
  // their mean, and the sum becomes 0.
  int64_t gradients_in_sum;
  void* slots[kSlotsMax];
  int64_t count;        // Elements that change; of rows, those of the gradient.
  int64_t first_block;  // Of the launch that updates it.
  // Of some rows, from SumRowsParameters; null links: of the whole variable.
  const RowLink* links;
  DeviceElements indices;
  int64_t row_elements;
  ElementType type;  // kFloat32 or kFloat64.
  ClipKind clip;
  double clip_limit;
};

// Sets *found to 1 if one of `count` elements is NaN or infinite. Thread t
// looks at the elements t, t + thread_count, and so on.
struct FindNonFiniteParameters {
  int64_t count;
  int64_t thread_count;
  DeviceElements values;  // float32 or float64.
  int32_t* found;
};

// How the steps with a loss scale continue, as the device knows it. The host
// does not: it enqueues the updates of a step once for each variant, and one of
// them is made.
struct LossScaleState {
  // The steps before that the host has not settled and that were skipped; -1:
  // this step is skipped.
  int32_t variant;
  int32_t was_skipped;  // 1: the last step.
  float gradient;       // Of the variable with the scale: MakeLossScaleRule().
};

// Advances the state by a step. One thread.
struct ChooseVariantParameters {
  const int32_t* found;  // Of FindNonFiniteParameters.
  const float* scale;    // With which the step was computed.
  int32_t is_settled;    // 1: the host has settled the step before.
  LossScaleState* state;
  int32_t* was_skipped;  // Of the host.
};

// partials[item * kBlocksPerItem + b] is a part of the sum of squares of the
// gradient. A grid of (kBlocksPerItem, items) blocks of kThreads threads. The
// order of the sum depends on the number of elements only.
struct SquaresParameters {
  static constexpr int kBlocksPerItem = 64;
  static constexpr int kThreads = 256;

  const UpdateItem* items;
  double* partials;
};

// factors[item] = by what the gradient is multiplied. One block of kThreads.
struct ClipFactorsParameters {
  static constexpr int kThreads = 256;

  const UpdateItem* items;
  int64_t item_count;
  const double* partials;
  double* factors;
};

// The LambRatio() of items of one type. lamb_squares writes the parts of both
// sums of squares of an item, in a grid as of SquaresParameters. lamb_ratios
// adds them up: a thread for each item.
struct LambRatiosParameters {
  const UpdateItem* items;
  int64_t item_count;
  // [item_count, 2, kBlocksPerItem]: of weights, and of directions.
  double* partials;
  double* ratios;
  alignas(8) uint8_t coefficients[kUpdateCoefficientBytes];
};

// True if an update is made.
struct UpdateCondition {
  const DeviceGate* gate;  // As in ChangeParameters.
  // Nothing changes unless *variant is wanted_variant; null: it does not
  // matter.
  const int32_t* variant;
  int32_t wanted_variant;
};

// Applies a function of functions/update.h to all items, which have one type.
// Block b updates the elements from (b - first_block) * kElementsPerBlock of
// the last item whose first_block is not above b.
struct UpdateParameters {
  static constexpr int kThreads = 256;
  static constexpr int kElementsPerBlock = 1024;

  const UpdateItem* items;
  int64_t item_count;
  const double* factors;  // Of the items: by norms. May be null.
  UpdateCondition condition;
  alignas(8) uint8_t coefficients[kUpdateCoefficientBytes];
};

// Applies a constraint to a variable. constrain_norms: a block of kThreads for
// each norm, whose element j is at norms(norm) + elements(j). constrain_signs:
// a thread for each of `element_count` elements; negative ones become 0.
struct ConstrainParameters {
  static constexpr int kThreads = SquaresParameters::kThreads;

  void* variable;
  int64_t element_count;  // Of a norm.
  NormBounds bounds;
  DeviceLayout norms;
  DeviceLayout elements;
  UpdateCondition condition;
};

// --- whole_update.cu: rules that see one whole variable.

struct WholeItem {
  const UpdateItem* item;  // Of the whole variable.
  const double* factor;    // Of the item, by a norm; null: none.
  UpdateCondition condition;
};

// The slots of the item are the means of rows, the means of columns and the
// velocity; the velocity alone if `columns` is 0. In this order:
//
//   adafactor_rows       means of rows; a block of kThreads for each
//   adafactor_columns    parts of the sums of columns; a thread for each, in a
//                        grid of (blocks, kParts)
//   adafactor_means      means of columns, a thread for each
//   adafactor_matrices   row_means; a block of kThreads for each matrix
//   adafactor_velocities decays weights, computes velocities, and sums squares;
//                        kParts blocks of kThreads
//   adafactor_apply      changes the weights; a thread for each
//
// The first four are left out if `columns` is 0.
struct AdafactorParameters {
  static constexpr int kParts = 64;
  static constexpr int kThreads = SquaresParameters::kThreads;

  WholeItem whole;
  AdafactorCoefficients coefficients;
  int64_t column_count;  // Of all matrices.
  double* column_parts;  // [kParts, column_count]
  double* row_means;     // [matrices]: the mean of the means of rows.
  double* square_parts;  // [2, kParts]: of weights and of directions.
};

// The slot of the item is the momentum. In this order:
//
//   muon_directions  decays weights, changes the momentum, writes `matrix`, and
//                    sums its squares; kParts blocks of kThreads
//   muon_normalize   divides `matrix` by its norm; a thread for each element
//   muon_apply       changes the weights; a thread for each element
//
// Products of matrices come before the last.
struct MuonParameters {
  static constexpr int kParts = 64;
  static constexpr int kThreads = SquaresParameters::kThreads;

  WholeItem whole;
  MuonCoefficients coefficients;
  // The direction, transposed if that makes it wider than high.
  void* matrix;
  double* square_parts;  // [kParts]
};

// to = first_factor * first + second_factor * second; a thread for each.
struct CombineParameters {
  int64_t count;
  double first_factor;
  const void* first;
  double second_factor;
  const void* second;
  void* to;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_UPDATE_PARAMETERS_H_
