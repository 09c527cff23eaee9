#include "common/net/rpc/fault_point.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/check.h"
#include "common/core/base/did_you_mean.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"

namespace muster {
namespace {

struct FaultTable {
  absl::Mutex mutex;
  std::vector<Fault> faults ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<std::string, int64_t> pass_counts ABSL_GUARDED_BY(mutex);
};

FaultTable& Table() {
  static auto* table = new FaultTable;
  return *table;
}

absl::Status BadFault(absl::string_view fault, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("MUSTER_FAULT: \"", fault, "\" ", why,
                   "; expected "
                   "point@counter=N[:kill|:delay=500ms|:allocate=100|:fail]"));
}

bool IsFaultPoint(absl::string_view name) {
  return absl::StartsWith(name, "gpu.") ||
         std::find(std::begin(kFaultPoints), std::end(kFaultPoints), name) !=
             std::end(kFaultPoints);
}

absl::StatusOr<Fault> ParseFault(absl::string_view text) {
  Fault fault;
  const std::vector<absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  const std::vector<absl::string_view> place =
      absl::StrSplit(parts[0], absl::MaxSplits('@', 1));
  fault.point = std::string(place[0]);
  if (fault.point.empty()) return BadFault(text, "names no point");
  if (!IsFaultPoint(fault.point)) {
    return BadFault(text, absl::StrCat("names a point that does not exist",
                                       DidYouMean(fault.point, kFaultPoints)));
  }
  if (place.size() == 2) {
    const std::vector<absl::string_view> counter =
        absl::StrSplit(place[1], absl::MaxSplits('=', 1));
    if (counter.size() != 2 ||
        !absl::SimpleAtoi(counter[1], &fault.occurrence) ||
        fault.occurrence < 1) {
      return BadFault(text, "needs counter=N with N of at least 1 after '@'");
    }
  }
  if (parts.size() == 1 || parts[1] == "kill") return fault;
  if (parts[1] == "fail") {
    fault.action = FaultAction::kFail;
    return fault;
  }
  const std::vector<absl::string_view> action =
      absl::StrSplit(parts[1], absl::MaxSplits('=', 1));
  if (action.size() == 2 && action[0] == "delay" &&
      absl::ParseDuration(action[1], &fault.delay)) {
    fault.action = FaultAction::kDelay;
    return fault;
  }
  if (action.size() == 2 && action[0] == "allocate" &&
      absl::SimpleAtoi(action[1], &fault.mebibytes)) {
    fault.action = FaultAction::kAllocate;
    return fault;
  }
  return BadFault(text, "has an unknown action");
}

void Delay(absl::Duration delay) {
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  bool never = false;
  Clock::Real()->AwaitWithDeadline(&mutex, absl::Condition(&never),
                                   Clock::Real()->Now() + delay);
}

// Allocates memory, writes to all of it, and never frees it.
void Allocate(int64_t mebibytes) {
  static auto* const kept = new std::vector<std::string>;
  for (int64_t i = 0; i < mebibytes; ++i) kept->emplace_back(1 << 20, 'x');
}

}  // namespace

namespace internal {

std::atomic<bool> faults_enabled{false};

absl::Status PassFaultPoint(absl::string_view point) {
  MUSTER_CHECK(IsFaultPoint(point));
  Fault injected;
  {
    FaultTable& table = Table();
    absl::MutexLock lock(&table.mutex);
    const int64_t count = ++table.pass_counts[point];
    for (const Fault& fault : table.faults) {
      if (fault.point == point && fault.occurrence == count) injected = fault;
    }
  }
  if (injected.point.empty()) return absl::OkStatus();
  LOG(WARNING) << "fault point " << injected.point
               << " is injected at occurrence " << injected.occurrence;
  switch (injected.action) {
    case FaultAction::kKill:
      kill(getpid(), SIGKILL);
      std::abort();
    case FaultAction::kDelay:
      Delay(injected.delay);
      break;
    case FaultAction::kAllocate:
      Allocate(injected.mebibytes);
      break;
    case FaultAction::kFail:
      if (!injected.error.ok()) return injected.error;
      return absl::UnavailableError(
          absl::StrCat("fault point ", injected.point, " is injected"));
  }
  return absl::OkStatus();
}

}  // namespace internal

absl::StatusOr<std::vector<Fault>> ParseFaults(absl::string_view text) {
  std::vector<Fault> faults;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    ASSIGN_OR_RETURN(faults.emplace_back(), ParseFault(part));
  }
  return faults;
}

void SetFaults(std::vector<Fault> faults) {
  for (const Fault& fault : faults) MUSTER_CHECK(IsFaultPoint(fault.point));
  FaultTable& table = Table();
  absl::MutexLock lock(&table.mutex);
  internal::faults_enabled.store(!faults.empty());
  table.faults = std::move(faults);
  table.pass_counts.clear();
}

std::vector<Fault> CurrentFaults() {
  FaultTable& table = Table();
  absl::MutexLock lock(&table.mutex);
  return table.faults;
}

int64_t FaultPointPassCount(absl::string_view point) {
  FaultTable& table = Table();
  absl::MutexLock lock(&table.mutex);
  const auto found = table.pass_counts.find(point);
  return found == table.pass_counts.end() ? 0 : found->second;
}

}  // namespace muster
