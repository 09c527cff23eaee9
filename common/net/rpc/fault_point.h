#ifndef COMMON_NET_RPC_FAULT_POINT_H_
#define COMMON_NET_RPC_FAULT_POINT_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// Named places in the code where a test injects faults. Test executables link
// common/net/rpc/testing:fault_environment, which reads the faults from the
// environment. Executables for users do not link it.
//
//   MUSTER_FAULT=ps.after_apply_before_ack@push=37
//   MUSTER_FAULT=ps.before_apply@push=2:delay=500ms,rpc.admission_check:fail
//
// point@counter=N[:action]: the action happens when the process passes the
// point for the N-th time. The name of the counter has no effect. Without
// @counter=N, N is 1. Actions are kill (the default: the process sends itself
// SIGKILL), delay=DURATION, allocate=MEBIBYTES (memory that is written to and
// never freed) and fail (the point returns kUnavailable). If no faults are set,
// a point costs one load of a flag.
namespace muster {

// All points but those of simulated GPUs. "gpu.FUNCTION" is a function of the
// driver of simulated GPUs: the GPU is lost there, whatever the action.
inline constexpr absl::string_view kFaultPoints[] = {
    "collectives.begin",
    "collectives.end",
    "collectives.received",
    "collectives.sent",
    "collectives.shared_memory.reduce",
    "coordinator.after_save",
    "coordinator.before_send",
    "nccl.agreed",
    "nccl.begin",
    "nccl.launched",
    "peers.connect",
    "peers.prepare",
    "ps.after_apply_before_ack",
    "ps.before_apply",
    "ps.while_restoring",
    "ps.while_saving",
    "rpc.admission_check",
    "rpc.before_half_close",
    "worker.after_step",
    "worker.before_fetch",
    "worker.before_input",
    "worker.before_report",
    "worker.before_step",
    "worker.on_command",
};

enum class FaultAction { kKill, kDelay, kAllocate, kFail };

struct Fault {
  std::string point;
  int64_t occurrence = 1;
  FaultAction action = FaultAction::kKill;
  absl::Duration delay;
  int64_t mebibytes = 0;
  // The error that kFail returns; kUnavailable if this is OK. The environment
  // cannot set it.
  absl::Status error = {};
};

//   kInvalidArgument  names the part of `text` that is not understood, or the
//                     point that does not exist
absl::StatusOr<std::vector<Fault>> ParseFaults(absl::string_view text);

// Replaces the faults and sets all counts to 0. For tests. Each fault must name
// an existing point.
void SetFaults(std::vector<Fault> faults);

// Returns the faults that are set.
std::vector<Fault> CurrentFaults();

// Returns how often the point was passed since faults were last set; 0 if none
// are set.
int64_t FaultPointPassCount(absl::string_view point);

namespace internal {
extern std::atomic<bool> faults_enabled;
absl::Status PassFaultPoint(absl::string_view point);
}  // namespace internal

// Passes a point. Returns an error only if a fault with the action fail is
// injected.
inline absl::Status FaultPoint(absl::string_view point) {
  if (!internal::faults_enabled.load(std::memory_order_relaxed)) {
    return absl::OkStatus();
  }
  return internal::PassFaultPoint(point);
}

}  // namespace muster

#endif  // COMMON_NET_RPC_FAULT_POINT_H_
