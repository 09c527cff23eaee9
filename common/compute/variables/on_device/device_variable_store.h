#ifndef COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_VARIABLE_STORE_H_
#define COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_VARIABLE_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_rules.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/device/device.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/tensor.h"

namespace muster {

struct DeviceVariable;
namespace proto {
class VariableSpec;
}  // namespace proto

// Variables in the memory of one GPU, with the slots of their optimizer.
//
// A step on the GPU reads values in place, and its updates are kernels that run
// after it on the stream. There are no copies, and the host does not wait. All
// gradients of a step are applied by one launch for each dtype and each pass of
// the rule. The results are those of LocalVariableStore; norms, for clipping
// and for Lamb, are equal within rounding.
//
// Calls outside of a step wait for the updates of all committed steps, and copy
// through pinned memory. Later steps do not change the returned tensors.
//
// Steps of several sessions may interleave. A value that a step has read does
// not change until the step ends: another step's update writes a copy.
//
// Errors of all functions are also those of the device.
class DeviceVariableStore final : public ReplicaVariables {
 public:
  // `device` is borrowed.
  static absl::StatusOr<std::unique_ptr<DeviceVariableStore>> Create(
      Device* device);
  ~DeviceVariableStore() override;

  absl::Status Create(const proto::VariableSpec& spec) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status StartOver(const proto::VariableSpec& spec) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<proto::VariableSpec> List() const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Tensor> Read(absl::string_view name) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Assign(absl::string_view name, const Tensor& value) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SetOptimizer(const Optimizer& optimizer) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status SetOptimizerOf(absl::Span<const std::string> variables,
                              const Optimizer& optimizer) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<int64_t>> UpdateCounts(
      absl::Span<const std::string> names) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Description> Describe(absl::string_view name) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<VariableState> ReadState(absl::string_view name) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RestoreState(absl::string_view name,
                            VariableState state) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // For steps on the host: each read copies the value.
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses) override;
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenDeviceSession(
      absl::Span<const VariableUse> uses, Device* device,
      DeviceStream* stream) override;

 private:
  class Session;

  DeviceVariableStore(Device* device, std::unique_ptr<DeviceStream> transfers,
                      std::unique_ptr<Event> used);

  absl::StatusOr<DeviceVariable*> Find(absl::string_view name) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Makes later work of `stream` wait for the work of all other streams on the
  // variables.
  absl::Status BeginUse(DeviceStream* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes later uses wait for the work enqueued on `stream`.
  absl::Status EndUse(DeviceStream* stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AwaitTransfers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copies to new tensors of the host.
  absl::Status Download(std::vector<Tensor*> tensors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copies a value of the host to new memory of the device.
  absl::StatusOr<Tensor> Upload(const Tensor& value, absl::string_view what,
                                absl::string_view variable)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Device& device_;
  mutable absl::Mutex mutex_;
  // For copies outside of steps. Nothing is enqueued between calls.
  const std::unique_ptr<DeviceStream> transfers_ ABSL_PT_GUARDED_BY(mutex_);
  // Recorded on the last stream that used the variables; follows all uses so
  // far.
  const std::unique_ptr<Event> used_ ABSL_PT_GUARDED_BY(mutex_);
  const DeviceStream* last_user_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<std::unique_ptr<DeviceVariable>> variables_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, DeviceVariable*> by_name_
      ABSL_GUARDED_BY(mutex_);
  VariableRules rules_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // COMMON_COMPUTE_VARIABLES_ON_DEVICE_DEVICE_VARIABLE_STORE_H_
