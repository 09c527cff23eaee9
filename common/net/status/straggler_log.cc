#include "common/net/status/straggler_log.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/system/log.h"
#include "common/net/rpc/tick_loop.h"
#include "common/net/status/status_report.h"

namespace muster {
namespace {

// A task that is slow in fewer readings in a row may be slow only for a moment.
constexpr int kReadingsMin = 3;
constexpr absl::Duration kRepeatInterval = absl::Minutes(1);

std::string NameOf(const TaskStatus& task) {
  if (task.address.empty()) return task.task;
  return absl::StrCat(task.task, " (", task.address, ")");
}

std::string LineOf(const TaskStatus& task) {
  if (task.closure_time_ratio.has_value()) {
    return absl::StrFormat(
        "%s is slow: its closures take %s, %.1f times as long as those of the "
        "median worker; look for other load on its machine",
        NameOf(task),
        absl::FormatDuration(
            absl::Trunc(*task.closure_time, absl::Microseconds(1))),
        *task.closure_time_ratio);
  }
  return absl::StrFormat(
      "%s is slow: this task waits for it %.0f%% of the time; look for other "
      "load on its machine",
      NameOf(task), 100 * task.waited_share.value_or(0));
}

}  // namespace

namespace internal {

std::vector<std::string> StragglerMemory::Update(
    absl::Span<const TaskStatus> tasks, absl::Time now) {
  std::vector<std::string> lines;
  std::map<std::string, Entry> stragglers;
  for (const TaskStatus& task : tasks) {
    const auto before = stragglers_.find(task.task);
    Entry entry = before == stragglers_.end() ? Entry() : before->second;
    if (!task.is_straggler) {
      if (entry.named != absl::InfinitePast()) {
        lines.push_back(absl::StrCat(NameOf(task), " is no longer slow"));
      }
      continue;
    }
    ++entry.reading_count;
    if (entry.reading_count >= kReadingsMin &&
        now - entry.named >= kRepeatInterval) {
      lines.push_back(LineOf(task));
      entry.named = now;
    }
    stragglers.emplace(task.task, entry);
  }
  stragglers_ = std::move(stragglers);
  return lines;
}

}  // namespace internal

StragglerLog::StragglerLog(Options options)
    : loop_(
          options.interval,
          [this](const TickLoop::Turn& turn) { return Look(turn); },
          options.clock) {
  loop_.Start();
}

absl::Time StragglerLog::Look(const TickLoop::Turn& turn) {
  if (turn.is_tick) {
    for (const std::string& line :
         memory_.Update(ReadStatus().tasks, turn.now)) {
      LOG(WARNING) << line;
    }
  }
  return absl::InfiniteFuture();
}

}  // namespace muster
