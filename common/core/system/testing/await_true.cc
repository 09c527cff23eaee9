#include "common/core/system/testing/await_true.h"

#include "absl/time/clock.h"
#include "common/core/system/clock.h"

namespace muster {

bool AwaitTrue(absl::FunctionRef<bool()> condition, absl::Duration timeout) {
  // Leaves the processor to the threads that make the condition true.
  constexpr absl::Duration kPause = absl::Microseconds(50);
  const absl::Time deadline = Clock::Real()->Now() + timeout;
  while (!condition()) {
    if (Clock::Real()->Now() > deadline) return condition();
    absl::SleepFor(kPause);
  }
  return true;
}

}  // namespace muster
