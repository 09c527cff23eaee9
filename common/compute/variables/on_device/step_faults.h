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

// The data errors that the kernels of one step report, in memory that the
// device writes. There is one record for each call of a session. Not
// thread-safe.
class StepFaults {
 public:
  void Clear() { calls_.clear(); }

  // Adds a call that cannot have data errors.
  void AddNone() { calls_.push_back({}); }

  // Adds a call with indices into `variable` and returns its record. The record
  // is clear unless an earlier step behind `gate` has found an error.
  //   as PinnedMemory::Allocate()
  absl::StatusOr<internal::FaultRecord*> Add(Device* device, int variable,
                                             internal::DeviceGate* gate);

  int call_count() const { return static_cast<int>(calls_.size()); }
  bool IsUnread() const;

  // Returns the record of a call, then clears and releases it.
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
