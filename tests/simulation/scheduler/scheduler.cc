#include "tests/simulation/scheduler/scheduler.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/debugging/symbolize.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/base/check.h"
#include "tests/simulation/scheduler/simulated_memory.h"
#include "tests/simulation/scheduler/simulated_thread.h"

namespace muster::sim {
namespace {

// Each choice takes this much virtual time, so that threads that poll reach
// their deadlines.
constexpr int64_t kChoiceNanoseconds = 1000;
constexpr int kStackDepthMax = 40;
// As by default. Pages that are not used take no memory.
constexpr size_t kStackBytes = size_t{8} << 20;

Scheduler* process_scheduler = nullptr;
thread_local SimulatedThread* current = nullptr;
// The thread whose function has just returned. The next thread that runs joins
// it, so that the destructors of its thread-local objects run alone.
SimulatedThread* exited = nullptr;
// While not null, a thread that gets its turn only writes its stack, and posts
// this semaphore.
sem_t* stack_was_written = nullptr;

void WriteError(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void Await(sem_t* semaphore) {
  while (sem_wait(semaphore) != 0) {
  }
}

void WriteStack() {
  // The symbolizer reads files of this process, by its actual id.
  SimulatedThread* const thread = std::exchange(current, nullptr);
  void* frames[kStackDepthMax];
  const int count = backtrace(frames, kStackDepthMax);
  for (int i = 0; i < count; ++i) {
    char name[200];
    if (absl::Symbolize(static_cast<char*>(frames[i]) - 1, name,
                        sizeof(name))) {
      WriteError(absl::StrCat("      ", name, "\n"));
    }
  }
  current = thread;
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options), random_(FoldIn(options.seed, "scheduler")) {
  hosts_.push_back({.name = "simulation"});
}

Scheduler& Scheduler::Start(const SchedulerOptions& options) {
  MUSTER_CHECK(process_scheduler == nullptr);
  // Debian builds Abseil with its deadlock detection, which looks up each lock
  // in a graph of all locks.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  ReserveSimulatedMemory();
  process_scheduler = new Scheduler(options);
  current = process_scheduler->AddThread(nullptr, nullptr);
  current->name = "main";
  return *process_scheduler;
}

Scheduler* Scheduler::Running() {
  return current == nullptr ? nullptr : process_scheduler;
}

HostId Scheduler::AddHost(std::string name) {
  hosts_.push_back({.name = std::move(name)});
  return static_cast<HostId>(hosts_.size()) - 1;
}

SimulatedThread* Scheduler::self() const { return current; }

HostId Scheduler::current_host() const { return current->host; }

SimulatedThread* Scheduler::AddThread(void* (*work)(void*), void* argument) {
  auto* const thread = new SimulatedThread;
  thread->id = next_thread_id_++;
  sem_init(&thread->turn, 0, 0);
  thread->work = work;
  thread->argument = argument;
  if (current != nullptr) thread->host = current->host;
  if (host_of_next_thread_ >= 0) thread->host = host_of_next_thread_;
  host_of_next_thread_ = -1;
  threads_.push_back(thread);
  if (work == nullptr) return thread;
  // Stacks of the system have addresses that depend on its other mappings.
  thread->stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  MUSTER_CHECK(thread->stack != MAP_FAILED);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, thread->stack, kStackBytes);
  MUSTER_CHECK(
      CreateSystemThread(&thread->handle, &attributes, RunThread, thread) == 0);
  pthread_attr_destroy(&attributes);
  return thread;
}

void Scheduler::StartThread(HostId host, const std::string& name,
                            std::function<void()> work) {
  host_of_next_thread_ = host;
  std::thread thread(std::move(work));
  pthread_setname_np(thread.native_handle(), name.c_str());
  thread.detach();
}

void* Scheduler::RunThread(void* argument) {
  auto* const thread = static_cast<SimulatedThread*>(argument);
  current = thread;
  AwaitTurn(thread);
  thread->result = thread->work(thread->argument);
  Scheduler& scheduler = *process_scheduler;
  thread->is_done = true;
  thread->can_run = false;
  std::erase(scheduler.threads_, thread);
  scheduler.WakeAll(thread);
  exited = thread;
  SimulatedThread* const next = scheduler.Choose();
  // The destructors of thread-local objects run outside of the simulation.
  current = nullptr;
  sem_post(&next->turn);
  return nullptr;
}

void Scheduler::AwaitTurn(SimulatedThread* thread) {
  Await(&thread->turn);
  while (stack_was_written != nullptr) {
    WriteStack();
    sem_post(stack_was_written);
    Await(&thread->turn);
  }
  if (exited == nullptr) return;
  SimulatedThread* const joined = std::exchange(exited, nullptr);
  JoinSystemThread(joined->handle);
  munmap(joined->stack, kStackBytes);
}

bool Scheduler::MayRun(const SimulatedThread& thread) const {
  return hosts_[thread.host].state == HostState::kRunning ||
         thread.held_lock_count > 0;
}

void Scheduler::Record(const Choice& choice) {
  choices_.Add(choice);
  if (options_.log != nullptr) options_.log->Add(choice);
}

uint64_t Scheduler::Below(uint64_t bound) {
  const uint64_t drawn = random_.Below(bound);
  Record({.thread = current->id,
          .candidate_count =
              -static_cast<int32_t>(std::min<uint64_t>(bound, 1000)),
          .time_nanoseconds = now_});
  return drawn;
}

SimulatedThread* Scheduler::Choose() {
  if (choices_.count() >= options_.choice_count_max) {
    EndRun(kExitTooLong, "the run made too many choices");
  }
  now_ += kChoiceNanoseconds;
  while (true) {
    can_run_.clear();
    int64_t earliest = kNever;
    for (SimulatedThread* const thread : threads_) {
      if (!MayRun(*thread)) continue;
      if (!thread->can_run && thread->deadline <= now_) {
        thread->can_run = true;
        thread->timed_out = true;
      }
      if (thread->can_run) {
        can_run_.push_back(thread);
      } else {
        earliest = std::min(earliest, thread->deadline);
      }
    }
    if (!can_run_.empty()) break;
    if (earliest == kNever) {
      EndRun(kExitDeadlock, "deadlock: no thread can run");
    }
    now_ = earliest;
  }
  if (absl::Nanoseconds(now_) > options_.time_max) {
    EndRun(kExitTooLong, "the run took too much virtual time");
  }
  const size_t count = can_run_.size();
  SimulatedThread* const chosen =
      can_run_[count == 1 ? 0 : random_.Below(count)];
  const Choice choice = {.thread = chosen->id,
                         .candidate_count = static_cast<int32_t>(count),
                         .time_nanoseconds = now_};
  Record(choice);
  return chosen;
}

void Scheduler::SwitchTo(SimulatedThread* next) {
  SimulatedThread* const thread = current;
  if (next == thread) return;
  sem_post(&next->turn);
  AwaitTurn(thread);
}

void Scheduler::Yield() { SwitchTo(Choose()); }

void Scheduler::SetPauses(int one_in, absl::Duration longest) {
  pause_one_in_ = one_in;
  pause_max_nanoseconds_ =
      std::max<int64_t>(1, absl::ToInt64Nanoseconds(longest));
}

void Scheduler::MaybeYield() {
  if (pause_one_in_ > 0 && Below(static_cast<uint64_t>(pause_one_in_)) == 0) {
    const uint64_t pause = Below(static_cast<uint64_t>(pause_max_nanoseconds_));
    Block("a processor", nullptr, now_ + static_cast<int64_t>(pause));
  }
  if (options_.switch_one_in == 0) return;
  if (Below(static_cast<uint64_t>(options_.switch_one_in)) == 0) {
    Yield();
  }
}

bool Scheduler::Block(const char* kind, const void* object, int64_t deadline) {
  SimulatedThread* const thread = current;
  thread->can_run = false;
  thread->timed_out = false;
  thread->deadline = deadline;
  thread->waits_for = kind;
  thread->waits_on = object;
  Yield();
  thread->waits_on = nullptr;
  return !thread->timed_out;
}

void Scheduler::Wake(SimulatedThread* thread, const void* object) {
  if (thread == nullptr || thread->can_run || thread->waits_on != object) {
    return;
  }
  thread->can_run = true;
}

void Scheduler::WakeOne(const void* object) {
  std::vector<SimulatedThread*> waiting;
  for (SimulatedThread* const thread : threads_) {
    if (!thread->can_run && thread->waits_on == object) {
      waiting.push_back(thread);
    }
  }
  if (!waiting.empty()) waiting[Below(waiting.size())]->can_run = true;
}

void Scheduler::WakeAll(const void* object) {
  for (SimulatedThread* const thread : threads_) Wake(thread, object);
}

void Scheduler::AddHeldLock() { ++current->held_lock_count; }

void Scheduler::RemoveHeldLock() {
  --current->held_lock_count;
  // A stopped host runs until here.
  if (!MayRun(*current)) Yield();
}

void Scheduler::SetHostState(HostId host, HostState state) {
  MUSTER_CHECK(host != kSimulationHost && host != current->host);
  MUSTER_CHECK(hosts_[host].state != HostState::kKilled);
  hosts_[host].state = state;
}

void Scheduler::Stop(HostId host) { SetHostState(host, HostState::kStopped); }
void Scheduler::Resume(HostId host) { SetHostState(host, HostState::kRunning); }
void Scheduler::Kill(HostId host) { SetHostState(host, HostState::kKilled); }

void Scheduler::MoveClock(HostId host, absl::Duration by) {
  hosts_[host].clock_offset_nanoseconds += absl::ToInt64Nanoseconds(by);
}

int64_t Scheduler::clock_offset_nanoseconds() const {
  return hosts_[current->host].clock_offset_nanoseconds;
}

void Scheduler::Note(absl::string_view line) const {
  WriteError(absl::StrCat(
      kNoteMark,
      absl::FormatDuration(absl::Trunc(Elapsed(), absl::Microseconds(1))), " ",
      hosts_[current == nullptr ? kSimulationHost : current->host].name, ": ",
      line, "\n"));
}

void Scheduler::ReportThreads() {
  sem_t written;
  sem_init(&written, 0, 0);
  for (SimulatedThread* const thread : threads_) {
    if (hosts_[thread->host].state == HostState::kKilled) continue;
    std::string state = "can run";
    if (!thread->can_run) state = absl::StrCat("waits for ", thread->waits_for);
    if (!thread->can_run && thread->deadline != kNever) {
      absl::StrAppend(
          &state, " until ",
          absl::FormatDuration(absl::Nanoseconds(thread->deadline)));
    }
    WriteError(absl::StrCat("  thread ", thread->id, " ", thread->name, " of ",
                            hosts_[thread->host].name,
                            IsRunning(thread->host) ? "" : " (stopped)", " ",
                            state, ", holds or waits for ",
                            thread->held_lock_count, " locks\n"));
    if (thread == current) {
      WriteStack();
      continue;
    }
    stack_was_written = &written;
    sem_post(&thread->turn);
    Await(&written);
    stack_was_written = nullptr;
  }
}

void Scheduler::EndRun(int exit_status, absl::string_view why) {
  WriteError(absl::StrCat(why, " at ", absl::FormatDuration(Elapsed()),
                          " after ", choice_count(), " choices\n"));
  ReportThreads();
  _exit(exit_status);
}

void Scheduler::RefuseKernelCall(const char* function) {
  WriteError(absl::StrCat("simulated code called ", function,
                          "(), which waits outside of the simulation\n"));
  WriteStack();
  _exit(kExitReachedKernel);
}

}  // namespace muster::sim
