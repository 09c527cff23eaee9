// Replaces the extension points of Abseil's synchronization, and the functions
// that lock and unlock an absl::Mutex. A definition in the executable has
// precedence over the one of Debian's shared library. A thread that is not
// simulated may lock and unlock, but not wait.

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "absl/base/config.h"
#include "absl/base/internal/spinlock_wait.h"
#include "absl/base/internal/thread_identity.h"
#include "absl/synchronization/internal/per_thread_sem.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "tests/simulation/scheduler/scheduler.h"
#include "tests/simulation/scheduler/simulated_thread.h"
#include "tests/simulation/scheduler/system_function.h"
#include "tests/simulation/scheduler/virtual_time.h"

namespace muster::sim {
namespace {

using absl::base_internal::ThreadIdentity;
using absl::synchronization_internal::KernelTimeout;

// The semaphore of a thread, in the memory that Abseil reserves for it.
// Abseil's own semaphore is at the beginning of that memory.
struct Semaphore {
  int64_t count;
  SimulatedThread* owner;  // The thread that waits, or waited last.
};
constexpr size_t kSemaphoreOffsetBytes = 64;

Semaphore& SemaphoreOf(ThreadIdentity* identity) {
  static_assert(kSemaphoreOffsetBytes + sizeof(Semaphore) <=
                sizeof(identity->waiter_state));
  return *reinterpret_cast<Semaphore*>(identity->waiter_state.data +
                                       kSemaphoreOffsetBytes);
}

constinit SystemFunction<void(absl::Mutex*)> abseil_lock(
    "_ZN4absl7debian35Mutex4LockEv");
constinit SystemFunction<void(absl::Mutex*)> abseil_reader_lock(
    "_ZN4absl7debian35Mutex10ReaderLockEv");
constinit SystemFunction<bool(absl::Mutex*)> abseil_try_lock(
    "_ZN4absl7debian35Mutex7TryLockEv");
constinit SystemFunction<bool(absl::Mutex*)> abseil_reader_try_lock(
    "_ZN4absl7debian35Mutex13ReaderTryLockEv");
constinit SystemFunction<void(absl::Mutex*)> abseil_unlock(
    "_ZN4absl7debian35Mutex6UnlockEv");
constinit SystemFunction<void(absl::Mutex*)> abseil_reader_unlock(
    "_ZN4absl7debian35Mutex12ReaderUnlockEv");

constinit SystemFunction<bool(absl::Mutex*, const absl::Condition*, absl::Time)>
    abseil_await_with_deadline(
        "_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_"
        "4TimeE");
constinit SystemFunction<bool(absl::Mutex*, const absl::Condition*, absl::Time)>
    abseil_lock_when_with_deadline(
        "_ZN4absl7debian35Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_"
        "4TimeE");
constinit SystemFunction<bool(absl::Mutex*, const absl::Condition*, absl::Time)>
    abseil_reader_lock_when_with_deadline(
        "_ZN4absl7debian35Mutex26ReaderLockWhenWithDeadlineERKNS0_"
        "9ConditionENS0_4TimeE");

void MaybeYield() {
  if (Scheduler* const scheduler = Scheduler::Running()) {
    scheduler->MaybeYield();
  }
}

void AddHeldLock() {
  if (Scheduler* const scheduler = Scheduler::Running()) {
    scheduler->AddHeldLock();
  }
}

// While a thread waits for a condition, it does not hold the mutex. It may be
// stopped there.
void ReleaseHeldLock() {
  if (Scheduler* const scheduler = Scheduler::Running()) {
    --scheduler->self()->held_lock_count;
  }
}

void RemoveHeldLock() {
  if (Scheduler* const scheduler = Scheduler::Running()) {
    scheduler->RemoveHeldLock();
  }
}

}  // namespace
}  // namespace muster::sim

namespace sim = ::muster::sim;

extern "C" {

void ABSL_INTERNAL_C_SYMBOL(AbslInternalPerThreadSemPost)(
    absl::base_internal::ThreadIdentity* identity) {
  sim::Semaphore& semaphore = sim::SemaphoreOf(identity);
  ++semaphore.count;
  sim::Scheduler* const scheduler = sim::Scheduler::Running();
  if (scheduler == nullptr) return;
  scheduler->Wake(semaphore.owner, &semaphore);
  scheduler->MaybeYield();
}

bool ABSL_INTERNAL_C_SYMBOL(AbslInternalPerThreadSemWait)(
    absl::synchronization_internal::KernelTimeout timeout) {
  sim::Semaphore& semaphore =
      sim::SemaphoreOf(absl::base_internal::CurrentThreadIdentityIfPresent());
  sim::Scheduler* const scheduler = sim::Scheduler::Running();
  MUSTER_CHECK(scheduler != nullptr);
  semaphore.owner = scheduler->self();
  const int64_t deadline =
      timeout.has_timeout()
          ? sim::FromClock(CLOCK_REALTIME, timeout.MakeAbsTimespec())
          : sim::kNever;
  while (semaphore.count == 0) {
    const bool was_woken =
        scheduler->Block("an absl::Mutex", &semaphore, deadline);
    if (semaphore.count == 0 && !was_woken) return false;
  }
  --semaphore.count;
  return true;
}

void ABSL_INTERNAL_C_SYMBOL(AbslInternalMutexYield)() {
  if (sim::Scheduler* const scheduler = sim::Scheduler::Running()) {
    scheduler->Yield();
  }
}

void ABSL_INTERNAL_C_SYMBOL(AbslInternalSleepFor)(absl::Duration duration) {
  const timespec time = absl::ToTimespec(duration);
  nanosleep(&time, nullptr);
}

void ABSL_INTERNAL_C_SYMBOL(AbslInternalSpinLockDelay)(
    std::atomic<uint32_t>*, uint32_t, int,
    absl::base_internal::SchedulingMode) {
  if (sim::Scheduler* const scheduler = sim::Scheduler::Running()) {
    scheduler->Yield();
  }
}

void ABSL_INTERNAL_C_SYMBOL(AbslInternalSpinLockWake)(std::atomic<uint32_t>*,
                                                      bool) {}

}  // extern "C"

namespace absl {
ABSL_NAMESPACE_BEGIN

// Abseil's own functions read the cycle counter of the processor.
int64_t GetCurrentTimeNanos() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return ToUnixNanos(TimeFromTimespec(now));
}

Time Now() { return FromUnixNanos(GetCurrentTimeNanos()); }

void Mutex::Lock() {
  sim::MaybeYield();
  sim::AddHeldLock();
  sim::abseil_lock(this);
}

void Mutex::ReaderLock() {
  sim::MaybeYield();
  sim::AddHeldLock();
  sim::abseil_reader_lock(this);
}

bool Mutex::TryLock() {
  sim::MaybeYield();
  if (!sim::abseil_try_lock(this)) return false;
  sim::AddHeldLock();
  return true;
}

bool Mutex::ReaderTryLock() {
  sim::MaybeYield();
  if (!sim::abseil_reader_try_lock(this)) return false;
  sim::AddHeldLock();
  return true;
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  sim::MaybeYield();
  const bool holds =
      sim::abseil_lock_when_with_deadline(this, &condition, deadline);
  sim::AddHeldLock();
  return holds;
}

bool Mutex::ReaderLockWhenWithDeadline(const Condition& condition,
                                       Time deadline) {
  sim::MaybeYield();
  const bool holds =
      sim::abseil_reader_lock_when_with_deadline(this, &condition, deadline);
  sim::AddHeldLock();
  return holds;
}

void Mutex::LockWhen(const Condition& condition) {
  LockWhenWithDeadline(condition, InfiniteFuture());
}

void Mutex::ReaderLockWhen(const Condition& condition) {
  ReaderLockWhenWithDeadline(condition, InfiniteFuture());
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  return LockWhenWithDeadline(condition, Now() + timeout);
}

bool Mutex::ReaderLockWhenWithTimeout(const Condition& condition,
                                      Duration timeout) {
  return ReaderLockWhenWithDeadline(condition, Now() + timeout);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  sim::ReleaseHeldLock();
  const bool holds =
      sim::abseil_await_with_deadline(this, &condition, deadline);
  sim::AddHeldLock();
  return holds;
}

void Mutex::Await(const Condition& condition) {
  AwaitWithDeadline(condition, InfiniteFuture());
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  return AwaitWithDeadline(condition, Now() + timeout);
}

void Mutex::Unlock() {
  sim::abseil_unlock(this);
  sim::RemoveHeldLock();
}

void Mutex::ReaderUnlock() {
  sim::abseil_reader_unlock(this);
  sim::RemoveHeldLock();
}

ABSL_NAMESPACE_END
}  // namespace absl
