#ifndef TESTS_SIMULATION_SCHEDULER_VIRTUAL_TIME_H_
#define TESTS_SIMULATION_SCHEDULER_VIRTUAL_TIME_H_

#include <time.h>

#include <cstdint>

namespace muster::sim {

// When the simulation starts, by CLOCK_REALTIME and by the other clocks.
inline constexpr int64_t kStartRealtimeSeconds = 1'700'000'000;
inline constexpr int64_t kStartMonotonicSeconds = 1'000;

// Converts between times of a clock of the calling thread's host and
// nanoseconds since the start.
int64_t FromClock(clockid_t clock, const timespec& time);
timespec ToClock(clockid_t clock, int64_t nanoseconds);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_SCHEDULER_VIRTUAL_TIME_H_
