#include "deploy/launch/restart_policy.h"

#include <signal.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/net/process/exit_code.h"

namespace muster {
namespace {

// A task that a signal ended, or that asks for a restart, has at least this
// exit code.
constexpr int kSignalCodeMin = 128;

}  // namespace

RestartPolicy::Decision RestartPolicy::OnEnd(const ProcessEnd& end,
                                             absl::Duration ran_for) {
  if (end.ok() || options_.restart_count_max == 0) return {};
  if (end.exit_code == static_cast<int>(ExitCode::kUsage)) {
    return {.reason =
                "status 2 means a mistake in flags or TF_CONFIG, which a "
                "new start would not remove"};
  }
  const bool is_failure = end.signal == 0 && end.exit_code < kSignalCodeMin;
  if (options_.keeps_failures && is_failure) return {};
  const bool is_short = ran_for < options_.short_run;
  const bool from_outside = end.signal == SIGKILL || end.signal == SIGTERM;
  const bool for_another =
      end.exit_code == static_cast<int>(ExitCode::kRestartMe);
  short_run_count_ = is_short ? short_run_count_ + 1 : 0;
  if (!is_short || from_outside) {
    crash_count_ = 0;
  } else if (!for_another) {
    ++crash_count_;
  }
  if (crash_count_ >= options_.crash_count_max) {
    return {.reason = absl::StrCat("crash loop: it ended ", crash_count_,
                                   " times in a row within ",
                                   absl::FormatDuration(options_.short_run),
                                   " of its start")};
  }
  if (restart_count_ >= options_.restart_count_max) {
    return {.reason = absl::StrCat("it has been restarted ", restart_count_,
                                   " times, and --restart allows no more")};
  }
  ++restart_count_;
  Decision decision = {.restart = true};
  if (short_run_count_ > 1) {
    const int doublings = std::min(short_run_count_ - 2, 20);
    decision.pause =
        std::min(options_.pause_max, options_.pause_first * (1 << doublings));
  }
  return decision;
}

}  // namespace muster
