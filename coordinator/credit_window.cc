#include "coordinator/credit_window.h"

#include <algorithm>

namespace muster {

void CreditWindow::Observe(int64_t count, absl::Duration busy) {
  if (count <= 0 || busy < absl::ZeroDuration()) return;
  const absl::Duration sample =
      std::max<absl::Duration>(busy / count, absl::Nanoseconds(100));
  if (closure_time_ == absl::ZeroDuration()) {
    closure_time_ = sample;
    return;
  }
  // A report of many closures gives a better estimate than a report of one.
  const double weight = std::min(0.5, 0.05 * static_cast<double>(count));
  closure_time_ += weight * (sample - closure_time_);
}

int CreditWindow::size() const {
  const int at_least = 2 * runner_count_;
  if (closure_time_ == absl::ZeroDuration()) {
    return std::max(at_least, options_.closures_at_start);
  }
  const double wanted =
      runner_count_ * absl::FDivDuration(options_.work_ahead, closure_time_);
  const double bounded =
      std::clamp(wanted, 1.0, static_cast<double>(options_.closures_max));
  return std::max(at_least, static_cast<int>(bounded));
}

}  // namespace muster
