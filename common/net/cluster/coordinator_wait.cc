#include "common/net/cluster/coordinator_wait.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/net/cluster/task_id.h"

namespace muster {

absl::Duration CoordinatorGrace::For(int64_t asked_ms) const {
  constexpr absl::Duration kAskedMax = absl::Hours(24);
  if (!is_extensible_) return time_;
  return std::max(time_, std::min(absl::Milliseconds(asked_ms), kAskedMax));
}

std::string DescribeCoordinator(const ClusterSpec& cluster) {
  const absl::StatusOr<std::string> address =
      cluster.Address({TaskType::kChief, 0});
  if (!address.ok()) return "the coordinator";
  return absl::StrCat("the coordinator (chief ", *address, ")");
}

CoordinatorWait::CoordinatorWait(const Options& options, absl::Time now)
    : options_(options),
      alone_since_(now),
      pace_(now, options.report_interval) {}

absl::StatusOr<std::string> CoordinatorWait::Look(bool is_alone, int lost_count,
                                                  absl::Time now) {
  if (is_alone && (!is_alone_ || lost_count != lost_count_)) {
    alone_since_ = now;
    pace_ = ReportPace(now, options_.report_interval);
  }
  is_alone_ = is_alone;
  lost_count_ = lost_count;
  if (!is_alone) return "";
  const absl::Duration alone_for = now - alone_since_;
  if (alone_for >= options_.timeout) {
    return absl::DeadlineExceededError(absl::StrCat(
        "gave up after ", absl::FormatDuration(options_.timeout),
        " waiting for ", options_.coordinator,
        lost_count == 0 ? ": none connected; start it, and check that its "
                          "TF_CONFIG has this task's address"
                        : ": it was lost and did not reconnect; restart it",
        ", or allow more time with --startup_timeout"));
  }
  if (!pace_.IsDue(now)) return "";
  return absl::StrCat("waiting for ", options_.coordinator,
                      lost_count == 0 ? ", " : " to reconnect, ",
                      absl::ToInt64Seconds(alone_for), " s");
}

absl::Time CoordinatorWait::next_look() const {
  if (!is_alone_) return absl::InfiniteFuture();
  return std::min(alone_since_ + options_.timeout, pace_.next());
}

}  // namespace muster
