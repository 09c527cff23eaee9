#include "ps/save_pace.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "common/core/system/clock.h"

namespace muster {
namespace {

absl::Duration ThreadProcessorTime() {
  timespec used = {};
  // This call cannot fail for the calling thread.
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

}  // namespace

SavePace::SavePace(std::function<int64_t()> exchange_count, Time time)
    : exchange_count_(std::move(exchange_count)),
      time_(std::move(time)),
      worked_before_(time_.worked()),
      last_exchange_(time_.now()),
      exchanges_before_(exchange_count_()) {}

SavePace::SavePace(std::function<int64_t()> exchange_count)
    : SavePace(std::move(exchange_count),
               {.now = [] { return Clock::Real()->Now(); },
                .worked = ThreadProcessorTime,
                .rest = [](absl::Duration rest) { absl::SleepFor(rest); }}) {}

void SavePace::EndPiece() {
  const absl::Time now = time_.now();
  const int64_t exchanges = exchange_count_();
  if (exchanges != exchanges_before_) last_exchange_ = now;
  exchanges_before_ = exchanges;
  const absl::Duration worked = time_.worked();
  if (now - last_exchange_ < kQuiet) {
    time_.rest(std::min(kRestsPerWork * (worked - worked_before_), kRestMax));
  }
  worked_before_ = worked;
}

}  // namespace muster
