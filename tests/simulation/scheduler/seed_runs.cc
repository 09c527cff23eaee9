#include "tests/simulation/scheduler/seed_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "tests/simulation/scheduler/choice_log.h"
#include "tests/simulation/scheduler/repeatable_process.h"

namespace muster::sim {
namespace {

constexpr size_t kLoggedChoiceCountMax = size_t{1} << 23;

class Runs {
 public:
  Runs(const SeedRunsOptions& options, const SeedProgram& program)
      : options_(options),
        program_(program),
        per_seed_(options.twice ? 2 : 1),
        slots_(options.process_count > 0 ? options.process_count : CpuCount()),
        run_count_(options.seed_count * per_seed_),
        reports_(static_cast<RunReport*>(
            mmap(nullptr, sizeof(RunReport) * run_count_,
                 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))),
        wait_statuses_(run_count_),
        repeats_(options.seed_count) {
    MUSTER_CHECK(reports_ != MAP_FAILED);
    for (int i = 0; i < options.seed_count && options.keeps_choices; ++i) {
      kept_logs_.push_back(std::make_shared<ChoiceLog>(kLoggedChoiceCountMax));
    }
    for (Slot& slot : slots_) {
      for (int run = 0; run < per_seed_ && options.twice; ++run) {
        slot.logs[run] = std::make_unique<ChoiceLog>(kLoggedChoiceCountMax);
      }
    }
  }
  ~Runs() { munmap(reports_, sizeof(RunReport) * run_count_); }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  absl::Status Run() {
    int next_seed = 0;
    int running = 0;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (next_seed == options_.seed_count) break;
      slots_[i].cpu = static_cast<int>(i) % CpuCount();
      RETURN_IF_ERROR(Begin(&slots_[i], next_seed++, /*run=*/0));
      ++running;
    }
    while (running > 0) {
      int wait_status = 0;
      const pid_t ended = waitpid(-1, &wait_status, 0);
      if (ended < 0 && errno == EINTR) continue;
      if (ended < 0) return absl::UnavailableError("waitpid failed");
      for (Slot& slot : slots_) {
        if (slot.process != ended) continue;
        wait_statuses_[slot.index * per_seed_ + slot.run] = wait_status;
        if (slot.run + 1 < per_seed_) {
          RETURN_IF_ERROR(Begin(&slot, slot.index, slot.run + 1));
          break;
        }
        if (options_.twice) {
          repeats_[slot.index] = LogOf(slot, 0)->Compare(*LogOf(slot, 1));
        }
        slot.process = -1;
        if (next_seed < options_.seed_count) {
          RETURN_IF_ERROR(Begin(&slot, next_seed++, /*run=*/0));
        } else {
          --running;
        }
        break;
      }
    }
    return absl::OkStatus();
  }

  std::vector<SeedRun> Results() const {
    std::vector<SeedRun> results(options_.seed_count);
    for (int i = 0; i < options_.seed_count; ++i) {
      results[i].seed = options_.first_seed + i;
      results[i].wait_status = wait_statuses_[i * per_seed_];
      results[i].report = reports_[i * per_seed_];
      results[i].repeats = repeats_[i];
      if (!kept_logs_.empty()) results[i].choices = kept_logs_[i];
    }
    return results;
  }

 private:
  struct Slot {
    pid_t process = -1;
    int cpu = 0;
    int index = 0;  // Of the seed.
    int run = 0;    // 0 or 1 of the seed.
    std::unique_ptr<ChoiceLog> logs[2];
  };

  // Null if no choices are logged.
  ChoiceLog* LogOf(const Slot& slot, int run) const {
    if (run == 0 && !kept_logs_.empty()) return kept_logs_[slot.index].get();
    return slot.logs[run].get();
  }

  absl::Status Begin(Slot* slot, int index, int run) {
    slot->index = index;
    slot->run = run;
    slot->process = fork();
    if (slot->process < 0) {
      return absl::UnavailableError(
          absl::StrCat("fork failed: ", std::strerror(errno)));
    }
    if (slot->process == 0) RunInChild(*slot);
    return absl::OkStatus();
  }

  [[noreturn]] void RunInChild(const Slot& slot) {
    UseCpu(slot.cpu);
    ReplaceCycleCounter();
    alarm(static_cast<unsigned int>(absl::ToInt64Seconds(options_.timeout)));
    SchedulerOptions scheduler_options = options_.scheduler;
    scheduler_options.seed = options_.first_seed + slot.index;
    scheduler_options.log = LogOf(slot, slot.run);
    if (scheduler_options.log != nullptr) scheduler_options.log->Clear();
    if (!options_.output_folder.empty()) {
      const std::string file =
          OutputFile(options_.output_folder, scheduler_options.seed);
      const int output =
          open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
      MUSTER_CHECK(output >= 0);
      dup2(output, STDOUT_FILENO);
      dup2(output, STDERR_FILENO);
    }
    RunReport* const report = &reports_[slot.index * per_seed_ + slot.run];
    Scheduler& scheduler = Scheduler::Start(scheduler_options);
    int exit_status = 0;
    // The addresses on the stack of the first thread depend on the arguments
    // and the environment of the process.
    std::thread thread([&] { exit_status = program_(scheduler, report); });
    thread.join();
    report->choice_hash = scheduler.choice_hash();
    report->choice_count = scheduler.choice_count();
    report->virtual_nanoseconds = scheduler.now_nanoseconds();
    std::fflush(nullptr);
    _exit(exit_status);
  }

  const SeedRunsOptions& options_;
  const SeedProgram& program_;
  const int per_seed_;
  std::vector<Slot> slots_;
  const size_t run_count_;
  RunReport* const reports_;
  std::vector<int> wait_statuses_;
  std::vector<absl::Status> repeats_;
  std::vector<std::shared_ptr<ChoiceLog>> kept_logs_;  // By seed.
};

}  // namespace

std::string SeedRun::Problem() const {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return signal == SIGALRM ? "killed at the real time limit"
                             : absl::StrCat("killed by signal ", signal);
  }
  const int exit_status = WEXITSTATUS(wait_status);
  if (exit_status == kExitDeadlock) return "deadlock";
  if (exit_status == kExitTooLong) return "did not end";
  if (exit_status == kExitReachedKernel) return "called the kernel";
  if (exit_status != 0) return absl::StrCat("exit status ", exit_status);
  return std::string(repeats.message());
}

std::string OutputFile(const std::string& folder, uint64_t seed) {
  return absl::StrCat(folder, "/seed_", seed, ".txt");
}

absl::StatusOr<std::vector<SeedRun>> RunSeeds(const SeedRunsOptions& options,
                                              const SeedProgram& program) {
  ReplaceCycleCounter();
  Runs runs(options, program);
  RETURN_IF_ERROR(runs.Run());
  return runs.Results();
}

}  // namespace muster::sim
