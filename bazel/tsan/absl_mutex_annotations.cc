// Tells ThreadSanitizer about absl::Mutex.
//
// Debian's Abseil is not built with ThreadSanitizer, and its Mutex is made of
// futexes, which the sanitizer does not follow: every guarded field would be
// reported as a race. The definitions here replace the library's, because a
// symbol of the executable has precedence over one of a shared library. They
// report each acquire and release to the sanitizer, and call the library's
// functions.
//
// Waits for a Condition poll: the library evaluates conditions inside Unlock(),
// on a thread that does not hold the mutex in the view of the sanitizer.

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <time.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

// Debian's other libraries are not instrumented either: the sanitizer can
// follow neither their code nor what one of their threads passes to another.
extern "C" const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1:second_deadlock_stack=1";
}
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libprotobuf.so\n"
         "called_from_lib:libdnnl.so\n"
         "called_from_lib:libgomp.so\n";
}

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

using MutexFunction = void (*)(Mutex*);
using TryFunction = bool (*)(Mutex*);

template <typename Function>
Function Library(const char* mangled_name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, mangled_name));
}

void Pause() {
  constexpr timespec kPollInterval = {.tv_sec = 0, .tv_nsec = 200'000};
  nanosleep(&kPollInterval, nullptr);
}

// `lock` and `unlock` are a pair for readers or for writers.
bool PollUntil(Mutex* mutex, const Condition& condition, Time deadline,
               void (Mutex::*lock)(), void (Mutex::*unlock)()) {
  while (!condition.Eval()) {
    if (Now() >= deadline) return false;
    (mutex->*unlock)();
    Pause();
    (mutex->*lock)();
  }
  return true;
}

}  // namespace

#define MUSTER_MANGLED(member) "_ZN4absl7debian35Mutex" member "Ev"

void Mutex::Lock() {
  static const auto lock = Library<MutexFunction>(MUSTER_MANGLED("4Lock"));
  lock(this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  static const auto unlock = Library<MutexFunction>(MUSTER_MANGLED("6Unlock"));
  __tsan_release(this);
  unlock(this);
}

bool Mutex::TryLock() {
  static const auto try_lock = Library<TryFunction>(MUSTER_MANGLED("7TryLock"));
  const bool locked = try_lock(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::ReaderLock() {
  static const auto lock =
      Library<MutexFunction>(MUSTER_MANGLED("10ReaderLock"));
  lock(this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  static const auto unlock =
      Library<MutexFunction>(MUSTER_MANGLED("12ReaderUnlock"));
  __tsan_release(this);
  unlock(this);
}

bool Mutex::ReaderTryLock() {
  static const auto try_lock =
      Library<TryFunction>(MUSTER_MANGLED("13ReaderTryLock"));
  const bool locked = try_lock(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

// A reader polls as a writer does: Mutex does not tell which of them calls, and
// Muster does not rely on two readers that wait at once.
void Mutex::Await(const Condition& condition) {
  PollUntil(this, condition, InfiniteFuture(), &Mutex::Lock, &Mutex::Unlock);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  return AwaitWithDeadline(condition, Now() + timeout);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  return PollUntil(this, condition, deadline, &Mutex::Lock, &Mutex::Unlock);
}

void Mutex::LockWhen(const Condition& condition) {
  Lock();
  Await(condition);
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  Lock();
  return AwaitWithTimeout(condition, timeout);
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  Lock();
  return AwaitWithDeadline(condition, deadline);
}

void Mutex::ReaderLockWhen(const Condition& condition) {
  ReaderLock();
  PollUntil(this, condition, InfiniteFuture(), &Mutex::ReaderLock,
            &Mutex::ReaderUnlock);
}

// A CondVar releases its mutex and acquires it again inside the library.
void CondVar::Wait(Mutex* mutex) {
  using WaitFunction = void (*)(CondVar*, Mutex*);
  static const auto wait =
      Library<WaitFunction>("_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  wait(this, mutex);
  __tsan_acquire(mutex);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  using WaitFunction = bool (*)(CondVar*, Mutex*, Time);
  static const auto wait = Library<WaitFunction>(
      "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  const bool expired = wait(this, mutex, deadline);
  __tsan_acquire(mutex);
  return expired;
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  return WaitWithDeadline(mutex, Now() + timeout);
}

ABSL_NAMESPACE_END
}  // namespace absl
