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

// Named places in the code where a test can make things go wrong, chosen by the
// environment of the process:
//
//   FAULT=ps.after_apply_before_ack@push=37
//   FAULT=ps.before_apply@push=2:delay=500ms,ps.admission_check@call=9:fail
//
// point@counter=N[:action]: the action happens at the N-th time that the
// process passes the point (the counter's name is for the reader). Actions are
// kill (SIGKILL to itself, the default), delay=DURATION, allocate=MEBIBYTES
// (which are written to and never freed) and fail (the point returns
// kUnavailable). Without FAULT a point costs one load of a flag.
namespace muster {

enum class FaultAction { kKill, kDelay, kAllocate, kFail };

struct Fault {
  std::string point;
  int64_t occurrence = 1;
  FaultAction action = FaultAction::kKill;
  absl::Duration delay;
  int64_t mebibytes = 0;
  // The error of kFail; OK: kUnavailable. Not in the environment.
  absl::Status error = {};
};

//   kInvalidArgument  names the part of `text` that is not understood
absl::StatusOr<std::vector<Fault>> ParseFaults(absl::string_view text);

// Replaces what the environment asked for; counts start again. For tests.
void SetFaults(std::vector<Fault> faults);

// How often the point was passed since faults were set; 0 while there are none.
int64_t FaultPointPassCount(absl::string_view point);

namespace internal {
extern std::atomic<bool> faults_enabled;
absl::Status PassFaultPoint(absl::string_view point);
}  // namespace internal

// Passes a point. Not OK only where a fault of action fail is injected.
inline absl::Status FaultPoint(absl::string_view point) {
  if (!internal::faults_enabled.load(std::memory_order_relaxed)) {
    return absl::OkStatus();
  }
  return internal::PassFaultPoint(point);
}

}  // namespace muster

#endif  // COMMON_NET_RPC_FAULT_POINT_H_
