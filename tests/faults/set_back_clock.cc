// A library to preload. Once the file exists that SET_BACK_CLOCK_FILE names,
// every wait of the process until a time of the realtime clock takes an hour
// longer, as it does when the clock is set back by an hour during the wait.
// Abseil makes its futex calls through syscall() of the C library.
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdlib>

namespace {

using Syscall = long (*)(long, ...);

// No static variable of a function: threads that initialize it at the same time
// wait through syscall().
std::atomic<Syscall> next_syscall{nullptr};

Syscall NextSyscall() {
  Syscall next = next_syscall.load();
  if (next == nullptr) {
    next = reinterpret_cast<Syscall>(dlsym(RTLD_NEXT, "syscall"));
    next_syscall.store(next);
  }
  return next;
}

bool IsSetBack() {
  const char* const file = std::getenv("SET_BACK_CLOCK_FILE");
  return file != nullptr && access(file, F_OK) == 0;
}

}  // namespace

extern "C" long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  timespec later;
  if (number == SYS_futex && arguments[3] != 0 &&
      (arguments[1] & FUTEX_CLOCK_REALTIME) != 0 && IsSetBack()) {
    later = *reinterpret_cast<const timespec*>(arguments[3]);
    later.tv_sec += 3600;
    arguments[3] = reinterpret_cast<long>(&later);
  }
  return NextSyscall()(number, arguments[0], arguments[1], arguments[2],
                       arguments[3], arguments[4], arguments[5]);
}
