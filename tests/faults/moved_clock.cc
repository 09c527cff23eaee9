// A library to preload. Once the file exists that MOVED_CLOCK_FILE names, every
// wait of the process until a time of the realtime clock is as if the clock
// were set by an hour during the wait: it takes an hour longer if the file
// begins with '-', and ends at once if it begins with '+'. Abseil makes its
// futex calls through syscall() of the C library.
#include <dlfcn.h>
#include <fcntl.h>
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

// By how much waits are longer.
time_t DelaySeconds() {
  const char* const path = std::getenv("MOVED_CLOCK_FILE");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char direction = 0;
  const bool is_read = read(file, &direction, 1) == 1;
  close(file);
  if (!is_read) return 0;
  return direction == '-' ? 3600 : -3600;
}

}  // namespace

extern "C" long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  timespec moved;
  if (number == SYS_futex && arguments[3] != 0 &&
      (arguments[1] & FUTEX_CLOCK_REALTIME) != 0) {
    moved = *reinterpret_cast<const timespec*>(arguments[3]);
    moved.tv_sec += DelaySeconds();
    arguments[3] = reinterpret_cast<long>(&moved);
  }
  return NextSyscall()(number, arguments[0], arguments[1], arguments[2],
                       arguments[3], arguments[4], arguments[5]);
}
