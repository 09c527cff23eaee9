// A library to preload. Once the file exists that SET_BACK_CLOCK_FILE names,
// every wait of the process until a time of the realtime clock takes an hour
// longer, as it does when the clock is set back by an hour during the wait.
// Abseil makes its futex calls through syscall() of the C library.
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>

extern "C" long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  timespec later;
  static const char* const file = std::getenv("SET_BACK_CLOCK_FILE");
  if (number == SYS_futex && arguments[3] != 0 &&
      (arguments[1] & FUTEX_CLOCK_REALTIME) != 0 && file != nullptr &&
      access(file, F_OK) == 0) {
    later = *reinterpret_cast<const timespec*>(arguments[3]);
    later.tv_sec += 3600;
    arguments[3] = reinterpret_cast<long>(&later);
  }
  using Function = long (*)(long, ...);
  static const auto next =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "syscall"));
  return next(number, arguments[0], arguments[1], arguments[2], arguments[3],
              arguments[4], arguments[5]);
}
