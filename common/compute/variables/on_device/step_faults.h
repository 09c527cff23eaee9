#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_STEP_FAULTS_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_STEP_FAULTS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/kernels/cuda/device_code/device_elements.h"
#include "common/core/device/device.h"
#include "common/core/tensor/buffer.h"

namespace muster {

// The data errors that the kernels of one step find, in memory that the device
// writes. Each call of a session has a place. Not thread-safe.
class StepFaults {
 public:
  void Clear() { calls_.clear(); }

  // Adds a call that has no errors.
  void AddNone() { calls_.push_back({}); }

  // Adds a call about rows of `variable`, and returns its record, which is
  // clear unless an earlier step behind `gate` has found an error.
  //   as PinnedMemory::Allocate()
  absl::StatusOr<internal::FaultRecord*> Add(Device* device, int variable,
                                             internal::DeviceGate* gate);

  int call_count() const { return static_cast<int>(calls_.size()); }
  bool IsUnread() const;

  // Returns what the record of a call says, and clears and forgets it.
  internal::FaultRecord Take(int call, int* variable);

 private:
  struct Call {
    int variable = -1;
    internal::FaultRecord* record = nullptr;
  };

  std::vector<std::shared_ptr<Buffer>> blocks_;
  std::vector<Call> calls_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_STEP_FAULTS_H_
