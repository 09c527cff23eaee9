#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_UPDATE_PARAMETERS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_UPDATE_PARAMETERS_H_

#include "common/compute/functions/norm_constraint.h"
#include "common/compute/functions/update.h"
#include "common/compute/functions/whole_update.h"
#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/core/base/host_device.h"

// The parameters of the kernels of update.cu, which change variables. As in
// kernel_parameters.h, a kernel has one parameter; addresses are those of the
// device.
namespace muster::internal {

// Links a position in an array of row indices to others with the same index.
struct RowLink {
  int32_t is_first;  // 1: no earlier position has the same index.
  int32_t next;      // The next position with the same index; -1: none.
};

// Sorts positions of row indices by (index, position), in runs of `run`
// positions. sort_runs makes runs of kFirstRun. merge_runs makes runs of twice
// the length of those in `from`: an element of one run moves by the number of
// smaller elements in the other run. All positions differ, so each has a unique
// place. One thread for each position.
struct SortRowsParameters {
  static constexpr int64_t kFirstRun = 64;

  int64_t count;
  DeviceElements indices;
  int64_t run;          // Length of the runs in `from`.
  const int32_t* from;  // Unused by sort_runs.
  int32_t* to;
};

// Fills links[i] for each index. Reports an index that is not in [0, bound) and
// sets its is_first to 0.
struct LinkRowsParameters {
  int64_t count;
  DeviceElements indices;
  const int32_t* sorted;  // All positions as one run.
  int64_t bound;
  RowLink* links;
  FaultRecord* fault;
};

// Adds rows of the same index in the order of their positions: to[i] is the sum
// if position i is the first, and 0 otherwise. A thread for each element.
struct SumRowsParameters {
  int64_t count;  // Number of positions times row_elements.
  int64_t row_elements;
  const void* from;
  void* to;
  const RowLink* links;
};

enum class ChangeKind : int32_t { kReplace, kAdd, kSubtract };

// variable[i] = / += / -= values[i]; with `links`, applies to the rows that the
// indices name; rows of the same index in the order of their positions.
struct ChangeParameters {
  int64_t count;  // Elements of `values`.
  ChangeKind change;
  DeviceElements values;
  DeviceElements variable;
  int64_t row_elements;
  DeviceElements indices;
  const RowLink* links;    // Null: the whole variable.
  const DeviceGate* gate;  // No change if it is closed. May be null.
};

// The limit of a gradient before it is applied.
enum class ClipKind : int32_t { kNone, kValue, kNorm, kGlobalNorm };

// A variable or slot that a pass over variables changes.
struct UpdateItem {
  static constexpr int kSlotsMax = 3;

  void* variable;
  // If null, the function takes the item's element of
  // UpdateParameters::factors, or 0.
  void* gradient;
  // If not 0, the gradient is the sum of this many gradients. The function
  // takes their mean, and the kernel resets the sum to 0.
  int64_t gradients_in_sum;
  void* slots[kSlotsMax];
  // Elements that change; for rows, those of the gradient.
  int64_t count;
  int64_t first_block;  // The item's first block in the launch.
  // For a gradient of some rows, from SumRowsParameters. Null links: the
  // gradient covers the whole variable.
  const RowLink* links;
  DeviceElements indices;
  int64_t row_elements;
  ElementType type;  // kFloat32 or kFloat64.
  ClipKind clip;
  double clip_limit;

  bool operator==(const UpdateItem&) const = default;
};

// Sets *found to 1 if one of `count` elements is NaN or infinite. Thread t
// checks the elements t, t + thread_count, and so on.
struct FindNonFiniteParameters {
  int64_t count;
  int64_t thread_count;
  DeviceElements values;  // float32 or float64.
  int32_t* found;
};

// The device's decisions about steps with a loss scale. The host enqueues the
// updates of a step once for each variant, because it does not have the
// decision yet. The device applies one of them.
struct LossScaleState {
  // The number of earlier steps that were skipped and that the host has not
  // settled; -1 if this step is skipped.
  int32_t variant;
  int32_t was_skipped;  // 1: the last step was skipped.
  // The gradient of the variable with the scale: MakeLossScaleRule().
  float gradient;
};

// Advances the state by one step. One thread.
struct ChooseVariantParameters {
  const int32_t* found;  // From FindNonFiniteParameters.
  const float* scale;    // The scale with which the step was computed.
  int32_t is_settled;    // 1: the host has settled the previous step.
  LossScaleState* state;
  int32_t* was_skipped;  // In host memory.
};

// Sets partials[item * kBlocksPerItem + b] to a part of the sum of squares of
// the gradient. A grid of (kBlocksPerItem, items) blocks of kThreads threads.
// The order of the sum depends on the number of elements only.
struct SquaresParameters {
  static constexpr int kBlocksPerItem = 64;
  static constexpr int kThreads = 256;

  const UpdateItem* items;
  double* partials;
};

// Sets factors[item] to the factor of the item's gradient. One block of
// kThreads.
struct ClipFactorsParameters {
  static constexpr int kThreads = 256;

  const UpdateItem* items;
  int64_t item_count;
  const double* partials;
  double* factors;
};

// Computes the LambRatio() of items of one type. lamb_squares writes the parts
// of both sums of squares of an item, in the grid of SquaresParameters.
// lamb_ratios adds the parts, with one thread for each item.
struct LambRatiosParameters {
  const UpdateItem* items;
  int64_t item_count;
  // [item_count, 2, kBlocksPerItem]: of weights, and of directions.
  double* partials;
  double* ratios;
  alignas(8) uint8_t coefficients[kUpdateCoefficientBytes];
};

// The condition for making an update.
struct UpdateCondition {
  const DeviceGate* gate;  // As in ChangeParameters.
  // The update has no effect unless *variant is wanted_variant. Null: every
  // variant is accepted.
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
  const double* factors;  // By item, from norms. May be null.
  UpdateCondition condition;
  alignas(8) uint8_t coefficients[kUpdateCoefficientBytes];
};

// Applies a constraint to a variable. constrain_norms: one block of kThreads
// for each norm, whose element j is at norms(norm) + elements(j).
// constrain_signs: one thread for each of `element_count` elements; negative
// elements become 0.
struct ConstrainParameters {
  static constexpr int kThreads = SquaresParameters::kThreads;

  void* variable;
  int64_t element_count;  // Elements of a norm.
  NormBounds bounds;
  DeviceLayout norms;
  DeviceLayout elements;
  UpdateCondition condition;
};

// --- whole_update.cu: rules that need one whole variable.

struct WholeItem {
  const UpdateItem* item;  // Covers the whole variable.
  // The item's factor from a norm; null if there is none.
  const double* factor;
  UpdateCondition condition;
};

// The slots of the item are the means of rows, the means of columns and the
// velocity; only the velocity if `columns` is 0. The kernels run in this order:
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
// The first four are omitted if `columns` is 0.
struct AdafactorParameters {
  static constexpr int kParts = 64;
  static constexpr int kThreads = SquaresParameters::kThreads;

  WholeItem whole;
  AdafactorCoefficients coefficients;
  int64_t column_count;  // Columns of all matrices.
  double* column_parts;  // [kParts, column_count]
  double* row_means;     // [matrices]: the mean of the means of rows.
  double* square_parts;  // [2, kParts]: of weights and of directions.
};

// The slot of the item is the momentum. The kernels run in this order:
//
//   muon_directions  decays weights, changes the momentum, writes `matrix`, and
//                    sums its squares; kParts blocks of kThreads
//   muon_normalize   divides `matrix` by its norm; a thread for each element
//   muon_apply       changes the weights; a thread for each element
//
// Products of matrices run before the last kernel.
struct MuonParameters {
  static constexpr int kParts = 64;
  static constexpr int kThreads = SquaresParameters::kThreads;

  WholeItem whole;
  MuonCoefficients coefficients;
  // The direction, transposed if it has more rows than columns.
  void* matrix;
  double* square_parts;  // [kParts]
};

// to = first_factor * first + second_factor * second; one thread for each
// element.
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
