// Replaces the functions of pthreads and of the C++ runtime by which threads
// start, end and wait for each other. A thread that is not simulated gets the
// functions of the system.

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <cstdint>

#include "tests/simulation/scheduler/scheduler.h"
#include "tests/simulation/scheduler/simulated_thread.h"
#include "tests/simulation/scheduler/system_function.h"
#include "tests/simulation/scheduler/virtual_time.h"

namespace muster::sim {
namespace {

constinit SystemFunction<int(pthread_t*, const pthread_attr_t*,
                             void* (*)(void*), void*)>
    create("pthread_create");
constinit SystemFunction<int(pthread_t, void**)> join("pthread_join");
constinit SystemFunction<int(pthread_t)> detach("pthread_detach");
constinit SystemFunction<int(pthread_t, const char*)> set_name(
    "pthread_setname_np");
constinit SystemFunction<int(pthread_mutex_t*)> lock("pthread_mutex_lock");
constinit SystemFunction<int(pthread_mutex_t*)> try_lock(
    "pthread_mutex_trylock");
constinit SystemFunction<int(pthread_mutex_t*)> unlock("pthread_mutex_unlock");
// Older programs get another layout of condition variables.
constexpr char kConditionVersion[] = "GLIBC_2.3.2";
constinit SystemFunction<int(pthread_cond_t*, pthread_mutex_t*)> wait(
    "pthread_cond_wait", kConditionVersion);
constinit SystemFunction<int(pthread_cond_t*, pthread_mutex_t*,
                             const timespec*)>
    timed_wait("pthread_cond_timedwait", kConditionVersion);
constinit SystemFunction<int(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                             const timespec*)>
    clock_wait("pthread_cond_clockwait");
constinit SystemFunction<int(pthread_cond_t*)> signal_one("pthread_cond_signal",
                                                          kConditionVersion);
constinit SystemFunction<int(pthread_cond_t*)> signal_all(
    "pthread_cond_broadcast", kConditionVersion);
constinit SystemFunction<int(pthread_once_t*, void (*)())> once("pthread_once");
constinit SystemFunction<int(int64_t*)> guard_acquire("__cxa_guard_acquire");
constinit SystemFunction<void(int64_t*)> guard_release("__cxa_guard_release");
constinit SystemFunction<void(int64_t*)> guard_abort("__cxa_guard_abort");

void LockSimulated(Scheduler& scheduler, pthread_mutex_t* mutex) {
  scheduler.AddHeldLock();
  while (try_lock(mutex) == EBUSY) {
    scheduler.Block("a mutex", mutex, kNever);
  }
}

int WaitSimulated(Scheduler& scheduler, pthread_cond_t* condition,
                  pthread_mutex_t* mutex, int64_t deadline) {
  // No other thread runs before Block(), so that no signal is lost.
  unlock(mutex);
  scheduler.WakeAll(mutex);
  --scheduler.self()->held_lock_count;
  const bool was_woken =
      scheduler.Block("a condition variable", condition, deadline);
  LockSimulated(scheduler, mutex);
  return was_woken ? 0 : ETIMEDOUT;
}

// Ends of the Itanium C++ ABI, 3.3.3: the first byte of a guard is 1 once the
// object is initialized. The second byte is left to implementations.
struct Guard {
  bool is_initialized;
  bool is_in_progress;
};

// Values of pthread_once_t in glibc.
constexpr int kOnceInProgress = 1;
constexpr int kOnceDone = 2;

}  // namespace

int CreateSystemThread(pthread_t* handle, const pthread_attr_t* attributes,
                       void* (*work)(void*), void* argument) {
  return create(handle, attributes, work, argument);
}

void JoinSystemThread(pthread_t handle) { join(handle, nullptr); }

extern "C" {

int pthread_create(pthread_t* handle, const pthread_attr_t* attributes,
                   void* (*work)(void*), void* argument) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return create(handle, attributes, work, argument);
  *handle = reinterpret_cast<pthread_t>(scheduler->AddThread(work, argument));
  scheduler->MaybeYield();
  return 0;
}

int pthread_join(pthread_t handle, void** result) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return join(handle, result);
  auto* const thread = reinterpret_cast<SimulatedThread*>(handle);
  while (!thread->is_done) {
    scheduler->Block("the end of a thread", thread, kNever);
  }
  if (result != nullptr) *result = thread->result;
  return 0;
}

int pthread_detach(pthread_t handle) {
  if (Scheduler::Running() == nullptr) return detach(handle);
  return 0;
}

int pthread_setname_np(pthread_t handle, const char* name) {
  if (Scheduler::Running() == nullptr) return set_name(handle, name);
  // A thread that names itself uses the handle of the system.
  if (pthread_equal(handle, pthread_self()) != 0) return 0;
  reinterpret_cast<SimulatedThread*>(handle)->name = name;
  return 0;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return lock(mutex);
  scheduler->MaybeYield();
  LockSimulated(*scheduler, mutex);
  return 0;
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  const int error = try_lock(mutex);
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler != nullptr && error == 0) scheduler->AddHeldLock();
  return error;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  const int error = unlock(mutex);
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return error;
  scheduler->WakeAll(mutex);
  scheduler->RemoveHeldLock();
  return error;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return wait(condition, mutex);
  return WaitSimulated(*scheduler, condition, mutex, kNever);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* deadline) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return timed_wait(condition, mutex, deadline);
  return WaitSimulated(*scheduler, condition, mutex,
                       FromClock(CLOCK_REALTIME, *deadline));
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           clockid_t clock, const timespec* deadline) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) {
    return clock_wait(condition, mutex, clock, deadline);
  }
  return WaitSimulated(*scheduler, condition, mutex,
                       FromClock(clock, *deadline));
}

int pthread_cond_signal(pthread_cond_t* condition) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return signal_one(condition);
  scheduler->WakeOne(condition);
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return signal_all(condition);
  scheduler->WakeAll(condition);
  return 0;
}

int pthread_once(pthread_once_t* control, void (*initialize)()) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return once(control, initialize);
  while ((*control & 3) == kOnceInProgress) {
    scheduler->Block("a one-time initialization", control, kNever);
  }
  if (*control == kOnceDone) return 0;
  *control = kOnceInProgress;
  scheduler->AddHeldLock();
  initialize();
  *control = kOnceDone;
  scheduler->WakeAll(control);
  scheduler->RemoveHeldLock();
  return 0;
}

int __cxa_guard_acquire(int64_t* address) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return guard_acquire(address);
  auto* const guard = reinterpret_cast<Guard*>(address);
  while (guard->is_in_progress) {
    scheduler->Block("a static variable", guard, kNever);
  }
  if (guard->is_initialized) return 0;
  guard->is_in_progress = true;
  scheduler->AddHeldLock();
  return 1;
}

void __cxa_guard_release(int64_t* address) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return guard_release(address);
  *reinterpret_cast<Guard*>(address) = {.is_initialized = true,
                                        .is_in_progress = false};
  scheduler->WakeAll(address);
  scheduler->RemoveHeldLock();
}

void __cxa_guard_abort(int64_t* address) {
  Scheduler* const scheduler = Scheduler::Running();
  if (scheduler == nullptr) return guard_abort(address);
  *reinterpret_cast<Guard*>(address) = {.is_initialized = false,
                                        .is_in_progress = false};
  scheduler->WakeAll(address);
  scheduler->RemoveHeldLock();
}

}  // extern "C"
}  // namespace muster::sim
