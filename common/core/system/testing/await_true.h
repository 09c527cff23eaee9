#ifndef COMMON_CORE_SYSTEM_TESTING_AWAIT_TRUE_H_
#define COMMON_CORE_SYSTEM_TESTING_AWAIT_TRUE_H_

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace muster {

// How long a test waits for an event that must happen. It is long enough for a
// machine with thirty processes for each core; a passing test never waits that
// long.
inline constexpr absl::Duration kTestWaitMax = absl::Minutes(2);

// Calls `condition` until it returns true. Returns false if that takes longer
// than `timeout`. For state that cannot be waited for, such as counters and
// files:
//
//   ASSERT_TRUE(AwaitTrue([&] { return sleeper_count == 3; })) << "sleepers";
//
// Does not release a mutex that the caller holds.
[[nodiscard]] bool AwaitTrue(absl::FunctionRef<bool()> condition,
                             absl::Duration timeout = kTestWaitMax);

}  // namespace muster

#endif  // COMMON_CORE_SYSTEM_TESTING_AWAIT_TRUE_H_
