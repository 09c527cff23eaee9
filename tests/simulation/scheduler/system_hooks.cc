// Replaces the clocks, sleeping, random numbers and the identity of the
// process, and refuses calls that wait for other processes. A thread that is
// not simulated gets the functions of the system.

#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tests/simulation/scheduler/scheduler.h"
#include "tests/simulation/scheduler/system_function.h"
#include "tests/simulation/scheduler/virtual_time.h"

namespace muster::sim {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
// What reading a clock takes. A thread that polls a clock reaches its deadline.
constexpr int64_t kReadClockNanoseconds = 100;
constexpr pid_t kProcessId = 1;
constexpr char kHostName[] = "simulated";

constinit SystemFunction<int(clockid_t, timespec*)> get_time("clock_gettime");
constinit SystemFunction<int(timeval*, void*)> get_time_of_day("gettimeofday");
constinit SystemFunction<time_t(time_t*)> get_seconds("time");
constinit SystemFunction<int(const timespec*, timespec*)> sleep_for(
    "nanosleep");
constinit SystemFunction<int(clockid_t, int, const timespec*, timespec*)>
    sleep_by_clock("clock_nanosleep");
constinit SystemFunction<int(useconds_t)> sleep_microseconds("usleep");
constinit SystemFunction<int()> yield("sched_yield");
constinit SystemFunction<unsigned int(void*)> draw(
    "_ZNSt13random_device9_M_getvalEv");
constinit SystemFunction<pid_t()> get_process_id("getpid");
constinit SystemFunction<int(char*, size_t)> get_host_name("gethostname");
constinit SystemFunction<int(int, const sigset_t*, sigset_t*)> set_signal_mask(
    "pthread_sigmask");
constinit SystemFunction<int(int, int, int)> open_socket("socket");
constinit SystemFunction<int(pollfd*, nfds_t, int)> poll_files("poll");
constinit SystemFunction<int(int, epoll_event*, int, int)> poll_set(
    "epoll_wait");
constinit SystemFunction<int(int, fd_set*, fd_set*, fd_set*, timeval*)>
    select_files("select");
constinit SystemFunction<int(const char*, const char*, const addrinfo*,
                             addrinfo**)>
    resolve("getaddrinfo");

int64_t Nanoseconds(const timespec& time) {
  return time.tv_sec * kNanosecondsPerSecond + time.tv_nsec;
}

// The time of a clock when the simulation starts.
int64_t StartOf(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      return kStartRealtimeSeconds * kNanosecondsPerSecond +
             Scheduler::Running()->clock_offset_nanoseconds();
    case CLOCK_THREAD_CPUTIME_ID:
    case CLOCK_PROCESS_CPUTIME_ID:
      return 0;
    default:
      return kStartMonotonicSeconds * kNanosecondsPerSecond;
  }
}

void SleepUntil(Scheduler& scheduler, int64_t deadline) {
  while (scheduler.now_nanoseconds() < deadline) {
    scheduler.Block("a sleep", nullptr, deadline);
  }
}

}  // namespace

int64_t FromClock(clockid_t clock, const timespec& time) {
  // A deadline in the far future overflows.
  if (time.tv_sec >= kNever / kNanosecondsPerSecond) return kNever;
  return Nanoseconds(time) - StartOf(clock);
}

timespec ToClock(clockid_t clock, int64_t nanoseconds) {
  const int64_t time = StartOf(clock) + nanoseconds;
  return {.tv_sec = time / kNanosecondsPerSecond,
          .tv_nsec = time % kNanosecondsPerSecond};
}

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return get_time(clock, time);
  scheduler->PassTime(kReadClockNanoseconds);
  *time = ToClock(clock, scheduler->now_nanoseconds());
  return 0;
}

int gettimeofday(timeval* __restrict time, void* __restrict zone) noexcept {
  if (Scheduler::Running() == nullptr) return get_time_of_day(time, zone);
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* out) noexcept {
  if (Scheduler::Running() == nullptr) return get_seconds(out);
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

int nanosleep(const timespec* duration, timespec* remaining) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return sleep_for(duration, remaining);
  SleepUntil(*scheduler, scheduler->now_nanoseconds() + Nanoseconds(*duration));
  return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time,
                    timespec* remaining) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) {
    return sleep_by_clock(clock, flags, time, remaining);
  }
  SleepUntil(*scheduler,
             (flags & TIMER_ABSTIME) != 0
                 ? FromClock(clock, *time)
                 : scheduler->now_nanoseconds() + Nanoseconds(*time));
  return 0;
}

int usleep(useconds_t microseconds) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return sleep_microseconds(microseconds);
  SleepUntil(*scheduler,
             scheduler->now_nanoseconds() + int64_t{microseconds} * 1000);
  return 0;
}

int sched_yield() noexcept {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return yield();
  scheduler->Yield();
  return 0;
}

// std::random_device::_M_getval().
unsigned int _ZNSt13random_device9_M_getvalEv(void* device) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return draw(device);
  return static_cast<unsigned int>(scheduler->Below(uint64_t{1} << 32));
}

pid_t getpid() noexcept {
  return Scheduler::Running() == nullptr ? get_process_id() : kProcessId;
}

// With _FORTIFY_SOURCE, headers define a function of this name, and one named
// poll, in each source.
int HookOfGetHostName(char* name, size_t size) noexcept __asm__("gethostname");
int HookOfGetHostName(char* name, size_t size) noexcept {
  if (Scheduler::Running() == nullptr) return get_host_name(name, size);
  std::memcpy(name, kHostName, std::min(size, sizeof(kHostName)));
  return 0;
}

// SIGSEGV is never blocked: see ReplaceCycleCounter().
int pthread_sigmask(int how, const sigset_t* signals,
                    sigset_t* before) noexcept {
  if (signals == nullptr) return set_signal_mask(how, signals, before);
  sigset_t others = *signals;
  if (how != SIG_UNBLOCK) sigdelset(&others, SIGSEGV);
  return set_signal_mask(how, &others, before);
}

int socket(int domain, int type, int protocol) noexcept {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler != nullptr) scheduler->RefuseKernelCall("socket");
  return open_socket(domain, type, protocol);
}

int HookOfPoll(pollfd* files, nfds_t count, int timeout) __asm__("poll");
int HookOfPoll(pollfd* files, nfds_t count, int timeout) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler != nullptr) scheduler->RefuseKernelCall("poll");
  return poll_files(files, count, timeout);
}

int epoll_wait(int set, epoll_event* events, int count, int timeout) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler != nullptr) scheduler->RefuseKernelCall("epoll_wait");
  return poll_set(set, events, count, timeout);
}

int select(int count, fd_set* readable, fd_set* writable, fd_set* failed,
           timeval* timeout) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler != nullptr) scheduler->RefuseKernelCall("select");
  return select_files(count, readable, writable, failed, timeout);
}

int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                addrinfo** found) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler != nullptr) scheduler->RefuseKernelCall("getaddrinfo");
  return resolve(name, service, hints, found);
}

}  // extern "C"
}  // namespace muster::sim
