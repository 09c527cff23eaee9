#include "common/compute/variables/on_device/step_faults.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/core/base/status_macros.h"
#include "common/core/device/pinned_memory.h"

namespace muster {
namespace {

constexpr size_t kRecordsPerBlock = 4096 / sizeof(internal::FaultRecord);

}  // namespace

absl::StatusOr<internal::FaultRecord*> StepFaults::Add(
    Device* device, int variable, internal::DeviceGate* gate) {
  const size_t place = calls_.size();
  if (place / kRecordsPerBlock >= blocks_.size()) {
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> memory,
                     device->pinned_memory().Allocate(
                         kRecordsPerBlock * sizeof(internal::FaultRecord)));
    std::memset(memory->data(), 0, memory->size_bytes());
    blocks_.push_back(std::move(memory));
  }
  auto* const record = reinterpret_cast<internal::FaultRecord*>(
                           blocks_[place / kRecordsPerBlock]->data()) +
                       place % kRecordsPerBlock;
  // With a gate, the previous step may still run, so its fault must not be
  // cleared.
  if (gate == nullptr) *record = internal::FaultRecord();
  if (record->gate != gate) record->gate = gate;
  calls_.push_back({variable, record});
  return record;
}

bool StepFaults::IsUnread() const {
  return std::any_of(calls_.begin(), calls_.end(),
                     [](const Call& call) { return call.record != nullptr; });
}

internal::FaultRecord StepFaults::Take(int call, int* variable) {
  *variable = calls_[call].variable;
  internal::FaultRecord* const record =
      std::exchange(calls_[call].record, nullptr);
  return record == nullptr ? internal::FaultRecord()
                           : std::exchange(*record, internal::FaultRecord());
}

}  // namespace muster
