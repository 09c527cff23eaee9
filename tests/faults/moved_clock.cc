// A library to preload. Once the file that MOVED_CLOCK_FILE names exists, its
// first character selects the effect:
//   -  every wait of the process until a time of the realtime clock takes an
//      hour longer, as if the clock were set back by an hour during the wait
//   +  every such wait ends at once, as if the clock were set forward
//   >  the clock is set forward by an hour: threads that read it get the new
//      time, and waits until a time that has now passed end
// Abseil makes its futex calls through syscall() of the C library.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace {

using Syscall = long (*)(long, ...);
using ClockGettime = int (*)(clockid_t, timespec*);

constexpr time_t kHourSeconds = 3600;
constexpr int64_t kNanosPerSecond = 1'000'000'000;
// Maximum time until a wait detects that the clock was set.
constexpr int64_t kNoticeNanos = 20'000'000;

// Not static variables of functions: threads that initialize those at the same
// time wait through syscall().
std::atomic<Syscall> next_syscall{nullptr};
std::atomic<ClockGettime> next_clock_gettime{nullptr};
std::atomic<bool> is_forward{false};
std::atomic<int64_t> next_look_nanos{std::numeric_limits<int64_t>::min()};

template <typename Function>
Function Next(std::atomic<Function>& next, const char* name) {
  Function function = next.load();
  if (function == nullptr) {
    function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
    next.store(function);
  }
  return function;
}

int64_t NanosOf(const timespec& time) {
  return time.tv_sec * kNanosPerSecond + time.tv_nsec;
}

int64_t SystemNanos(clockid_t clock) {
  timespec now;
  Next(next_clock_gettime, "clock_gettime")(clock, &now);
  return NanosOf(now);
}

// Returns the first character of the file; 0 if the file does not exist.
char Direction() {
  const char* const path = std::getenv("MOVED_CLOCK_FILE");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char direction = 0;
  const bool is_read = read(file, &direction, 1) == 1;
  close(file);
  return is_read ? direction : 0;
}

// True if the clock has been set forward. Reads the file only at intervals of
// kNoticeNanos, because programs read clocks very often.
bool IsForward() {
  if (is_forward.load(std::memory_order_relaxed)) return true;
  const int64_t now = SystemNanos(CLOCK_MONOTONIC);
  if (now < next_look_nanos.load(std::memory_order_relaxed)) return false;
  next_look_nanos.store(now + kNoticeNanos, std::memory_order_relaxed);
  const int error = errno;
  const bool is_set = Direction() == '>';
  errno = error;
  if (is_set) is_forward.store(true, std::memory_order_relaxed);
  return is_set;
}

// Returns the time by which waits are longer.
time_t DelaySeconds() {
  switch (Direction()) {
    case '-':
      return kHourSeconds;
    case '+':
      return -kHourSeconds;
    default:
      return 0;
  }
}

// Waits for a futex until `deadline` of a clock that may be set forward during
// the wait. Waits in slices, each measured with the real clock.
long WaitInSlices(long (&arguments)[6], const timespec& deadline) {
  while (true) {
    const int64_t offset = IsForward() ? kHourSeconds * kNanosPerSecond : 0;
    const int64_t end = NanosOf(deadline) - offset;
    const int64_t slice_end = SystemNanos(CLOCK_REALTIME) + kNoticeNanos;
    const bool is_last = end <= slice_end;
    const int64_t until = end < slice_end ? (end < 0 ? 0 : end) : slice_end;
    const timespec slice = {
        .tv_sec = static_cast<time_t>(until / kNanosPerSecond),
        .tv_nsec = static_cast<long>(until % kNanosPerSecond)};
    const long result = Next(next_syscall, "syscall")(
        SYS_futex, arguments[0], arguments[1], arguments[2],
        reinterpret_cast<long>(&slice), arguments[4], arguments[5]);
    if (result == 0 || errno != ETIMEDOUT || is_last) return result;
  }
}

}  // namespace

extern "C" long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex && arguments[3] != 0 &&
      (arguments[1] & FUTEX_CLOCK_REALTIME) != 0) {
    timespec deadline = *reinterpret_cast<const timespec*>(arguments[3]);
    deadline.tv_sec += DelaySeconds();
    return WaitInSlices(arguments, deadline);
  }
  return Next(next_syscall, "syscall")(number, arguments[0], arguments[1],
                                       arguments[2], arguments[3], arguments[4],
                                       arguments[5]);
}

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = Next(next_clock_gettime, "clock_gettime")(clock, time);
  if (result == 0 && clock == CLOCK_REALTIME && IsForward()) {
    time->tv_sec += kHourSeconds;
  }
  return result;
}

extern "C" int gettimeofday(timeval* time, void*) noexcept {
  timespec now;
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  if (result == 0) {
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
  }
  return result;
}

extern "C" time_t time(time_t* result) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}
