#ifndef TESTS_SIMULATION_SCHEDULER_SCHEDULER_H_
#define TESTS_SIMULATION_SCHEDULER_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "tests/simulation/scheduler/choice_log.h"

// Runs the threads of this process one at a time, in an order that a seed
// determines, in virtual time. The threads are real and run unchanged code. The
// hooks of this room replace, in the whole executable, what lets a thread wait:
// the extension points of Abseil's Mutex, the threads, mutexes, condition
// variables and one-time initializers of pthreads, clocks and sleeping. A
// thread that waits passes control to another one.
//
// The same executable, seed and options give the same run, if the process
// called MakeProcessRepeatable() (repeatable_process.h).
namespace muster::sim {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// A simulated machine: its threads are stopped and killed together. A thread
// belongs to the host of the thread that created it.
using HostId = int;
// The host of the thread that starts the scheduler. It is never stopped.
inline constexpr HostId kSimulationHost = 0;

struct SchedulerOptions {
  uint64_t seed = 0;
  // Before a thread locks a mutex, another thread may run with probability
  // 1 / switch_one_in. Without this, races between critical sections are
  // rare. 0: never.
  int switch_one_in = 4;
  // The run ends with ExitCode kTooLong at this virtual time.
  absl::Duration time_max = absl::Hours(1);
  // The same for the number of choices: threads that poll make no progress in
  // virtual time.
  int64_t choice_count_max = 50'000'000;
  // Borrowed; may be null. Gets every choice.
  ChoiceLog* log = nullptr;
};

// Begins each line of Scheduler::Note().
inline constexpr absl::string_view kNoteMark = "T+";

// With which status the process exits if the scheduler ends the run. A report
// on standard error names what each thread waits for.
inline constexpr int kExitDeadlock = 3;
inline constexpr int kExitTooLong = 4;
inline constexpr int kExitReachedKernel = 5;

// The scheduler's record of one thread (simulated_thread.h).
struct SimulatedThread;

// There is one scheduler in a process, from Start() until the process exits.
// Its functions may be called by simulated threads only, except Running().
// Only one thread runs at a time, so there is nothing to lock.
class Scheduler {
 public:
  // Makes the calling thread, which must be the only one of the process, a
  // simulated thread.
  static Scheduler& Start(const SchedulerOptions& options);

  // Returns null if the calling thread is not simulated.
  static Scheduler* Running();

  // Virtual time since the start.
  absl::Duration Elapsed() const { return absl::Nanoseconds(now_); }
  int64_t now_nanoseconds() const { return now_; }
  // Identifies all choices so far.
  uint64_t choice_hash() const { return choices_.hash(); }
  int64_t choice_count() const { return choices_.count(); }
  uint64_t seed() const { return options_.seed; }

  // Uniform in [0, bound). All randomness of a simulation comes from here.
  uint64_t Below(uint64_t bound);

  HostId AddHost(std::string name);
  const std::string& host_name(HostId host) const { return hosts_[host].name; }
  HostId current_host() const;
  // Calls `work` on a new thread of `host`, with `name` in reports.
  void StartThread(HostId host, const std::string& name,
                   std::function<void()> work);

  // Stops the threads of a host until Resume(), as SIGSTOP does. Each runs on
  // until it neither holds a lock nor waits for one, because the hosts of one
  // process share locks, such as that of the log. A thread that waits for a
  // condition does not hold the mutex: no two hosts share such a mutex.
  void Stop(HostId host);
  void Resume(HostId host);
  // Stops the threads of a host. They never run again, and their memory is
  // never freed.
  void Kill(HostId host);
  bool IsRunning(HostId host) const {
    return hosts_[host].state == HostState::kRunning;
  }

  // Moves the wall clock of a host (CLOCK_REALTIME), as an administrator or a
  // time server may do. The other clocks go on.
  void MoveClock(HostId host, absl::Duration by);
  // By how much the wall clock of the calling thread's host was moved.
  int64_t clock_offset_nanoseconds() const;

  // Writes a line of the timeline to standard error: kNoteMark, the virtual
  // time, the host and `line`.
  void Note(absl::string_view line) const;

  // Writes to standard error what each thread waits for, with its stack.
  void ReportThreads();

  // For the hooks.

  SimulatedThread* self() const;

  // From now on, a thread may pause before it locks a mutex, with probability
  // 1 / `one_in`, for up to `longest`, as if the kernel ran other threads
  // meanwhile. `one_in` 0: never, as at the start.
  void SetPauses(int one_in, absl::Duration longest);

  // Lets any thread that can run continue, perhaps the calling one.
  void Yield();
  // Yields with the probability of the options, or pauses: see SetPauses().
  void MaybeYield();
  // Blocks the calling thread until Wake() or `deadline`. `kind` says what it
  // waits for, and `object` which one. Returns false at the deadline. A thread
  // may be woken although the reason is gone.
  bool Block(const char* kind, const void* object, int64_t deadline);
  // Wakes `thread` if it is blocked on `object`.
  void Wake(SimulatedThread* thread, const void* object);
  // The same for one or for all of the threads that are blocked on `object`.
  void WakeOne(const void* object);
  void WakeAll(const void* object);
  // Counts the locks that the calling thread holds or waits for.
  void AddHeldLock();
  void RemoveHeldLock();
  SimulatedThread* AddThread(void* (*work)(void*), void* argument);
  void PassTime(int64_t nanoseconds) { now_ += nanoseconds; }
  // Ends the process: simulated code called a function that would block it.
  [[noreturn]] void RefuseKernelCall(const char* function);

 private:
  enum class HostState { kRunning, kStopped, kKilled };
  struct Host {
    std::string name;
    HostState state = HostState::kRunning;
    int64_t clock_offset_nanoseconds = 0;
  };

  explicit Scheduler(const SchedulerOptions& options);

  static void* RunThread(void* thread);
  static void AwaitTurn(SimulatedThread* thread);

  bool MayRun(const SimulatedThread& thread) const;
  void Record(const Choice& choice);
  // Returns the thread that runs next.
  SimulatedThread* Choose();
  void SwitchTo(SimulatedThread* next);
  void SetHostState(HostId host, HostState state);
  [[noreturn]] void EndRun(int exit_status, absl::string_view why);

  const SchedulerOptions options_;
  RandomStream random_;
  ChoiceHash choices_;
  int pause_one_in_ = 0;
  int64_t pause_max_nanoseconds_ = 1;
  int64_t now_ = 0;
  int next_thread_id_ = 0;
  HostId host_of_next_thread_ = -1;  // -1: that of the creating thread.
  std::vector<Host> hosts_;
  std::vector<SimulatedThread*> threads_;  // In the order of creation.
  std::vector<SimulatedThread*> can_run_;  // Scratch of Choose().
};

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_SCHEDULER_SCHEDULER_H_
