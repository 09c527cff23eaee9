#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_RECURRENCE_PARAMETERS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_RECURRENCE_PARAMETERS_H_

#include "common/compute/functions/cell_activation.h"
#include "common/compute/kernels/recurrence_operands.h"
#include "common/core/base/host_device.h"
#include "common/core/tensor/recurrent_cell.h"

// The parameters of the kernels of recurrence.cu. As in kernel_parameters.h, a
// kernel has one parameter; addresses are those of the device.
namespace muster::internal {

// A block runs all time steps of `rows_per_block` rows of the batch.
struct RecurrenceParameters {
  static constexpr int kRowsMax = 4;
  static constexpr int kThreadsMax = 256;

  RecurrenceForm form;
  recurrence::Extents extents;
  functions::CellActivation activation, recurrent_activation;
  int64_t rows_per_block;
  // [units, gates units]; for the gradient [gates units, units].
  const void* kernel;
  // WorkspaceSize() numbers for each block. Null: blocks use dynamic shared
  // memory.
  void* memory;
};

// C is float or double.
template <typename C>
struct RecurrenceForwardParameters {
  RecurrenceParameters common;
  recurrence::ForwardOperands<C> operands;
};

template <typename C>
struct RecurrenceBackwardParameters {
  RecurrenceParameters common;
  recurrence::BackwardOperands<C> operands;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_RECURRENCE_PARAMETERS_H_
