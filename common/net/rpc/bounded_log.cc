#include "common/net/rpc/bounded_log.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/core/system/log.h"

namespace muster {
namespace {

constexpr size_t kLineBytesMax = 500;

}  // namespace

BoundedLog::BoundedLog(const Options& options, Clock* clock, Sink sink)
    : options_(options), clock_(clock), sink_(std::move(sink)) {}

BoundedLog::BoundedLog()
    : BoundedLog(Options(), Clock::Real(),
                 [](absl::string_view line) { LOG(WARNING) << line; }) {}

void BoundedLog::Write(absl::string_view line) {
  absl::MutexLock lock(&mutex_);
  ++count_;
  const absl::Time now = clock_->Now();
  if (now >= interval_end_) {
    interval_end_ = now + options_.interval;
    interval_line_count_ = 0;
  }
  if (interval_line_count_ == options_.line_count_max) {
    ++left_out_count_;
    return;
  }
  ++interval_line_count_;
  std::string text = absl::CHexEscape(line.substr(0, kLineBytesMax));
  if (left_out_count_ > 0) {
    absl::StrAppend(&text, " (", left_out_count_,
                    " others were left out before this line)");
    left_out_count_ = 0;
  }
  sink_(text);
}

int64_t BoundedLog::count() const {
  absl::MutexLock lock(&mutex_);
  return count_;
}

}  // namespace muster
