#ifndef COMMON_NET_RPC_BOUNDED_LOG_H_
#define COMMON_NET_RPC_BOUNDED_LOG_H_

#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"

namespace muster {

// A log with a limited rate, for events that unrelated processes can cause at
// any rate. Writes a few lines in each interval and counts the others. The next
// line written says how many were left out.
//
// Thread-safe.
class BoundedLog {
 public:
  struct Options {
    int line_count_max = 5;  // In each interval; at least 1.
    absl::Duration interval = absl::Seconds(10);
  };
  using Sink = std::function<void(absl::string_view line)>;

  // `clock` is borrowed. `sink` gets the lines, one at a time.
  BoundedLog(const Options& options, Clock* clock, Sink sink);
  // Writes to LOG(WARNING) and reads the machine's clock.
  BoundedLog();

  // Control characters of `line` are escaped, and a long line is truncated.
  void Write(absl::string_view line) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the number of calls of Write().
  int64_t count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Options options_;
  Clock* const clock_;
  const Sink sink_;
  mutable absl::Mutex mutex_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t left_out_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int interval_line_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time interval_end_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace muster

#endif  // COMMON_NET_RPC_BOUNDED_LOG_H_
