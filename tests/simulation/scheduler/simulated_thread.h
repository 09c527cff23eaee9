#ifndef TESTS_SIMULATION_SCHEDULER_SIMULATED_THREAD_H_
#define TESTS_SIMULATION_SCHEDULER_SIMULATED_THREAD_H_

#include <pthread.h>
#include <semaphore.h>

#include <cstdint>
#include <string>

#include "tests/simulation/scheduler/scheduler.h"

namespace muster::sim {

// A thread of the simulated program. `pthread_t` handles of the program point
// to it. It is never freed.
struct SimulatedThread {
  int id = 0;
  HostId host = kSimulationHost;
  std::string name;

  sem_t turn;  // Posted when the thread may continue.
  bool can_run = true;
  bool timed_out = false;
  bool is_done = false;  // Its function has returned.
  int64_t deadline = kNever;
  // What it waits for, if !can_run.
  const char* waits_for = "";
  const void* waits_on = nullptr;
  int held_lock_count = 0;

  void* (*work)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  pthread_t handle = {};  // That of the system.
  void* stack = nullptr;
};

// The functions of the system behind the hooks of thread_hooks.cc.
int CreateSystemThread(pthread_t* handle, const pthread_attr_t* attributes,
                       void* (*work)(void*), void* argument);
void JoinSystemThread(pthread_t handle);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_SCHEDULER_SIMULATED_THREAD_H_
