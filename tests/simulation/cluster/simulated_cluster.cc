#include "tests/simulation/cluster/simulated_cluster.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/core/base/check.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/system/metrics.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/service.h"
#include "ps/parameter_server.h"
#include "worker/remote_session_variables.h"
#include "worker/worker_service.h"

namespace muster::sim {
namespace {

// Fixed, because the default depends on this machine.
constexpr size_t kMemoryBytesMax = size_t{1} << 30;
constexpr absl::Duration kServerGrace = absl::Seconds(1);
constexpr absl::Duration kRestartDelay = absl::Seconds(1);

std::vector<TaskId> ServedTasks(const ClusterSpec& spec) {
  std::vector<TaskId> tasks = spec.Tasks(TaskType::kWorker);
  for (const TaskId task : spec.Tasks(TaskType::kPs)) tasks.push_back(task);
  return tasks;
}

}  // namespace

ClusterSpec SimulatedCluster::SpecOf(const SimulatedClusterOptions& options) {
  const auto addresses = [](int role, int count) {
    std::vector<std::string> list;
    for (int i = 0; i < count; ++i) {
      list.push_back(absl::StrCat("10.0.", role, ".", i, ":2222"));
    }
    return list;
  };
  auto spec = ClusterSpec::FromLists(
      {{TaskType::kChief, addresses(0, 1)},
       {TaskType::kWorker, addresses(1, options.worker_count)},
       {TaskType::kPs, addresses(2, options.server_count)}});
  MUSTER_CHECK(spec.ok());
  return *std::move(spec);
}

SimulatedCluster::SimulatedCluster(Scheduler* scheduler,
                                   SimulatedNetwork* network,
                                   const SimulatedClusterOptions& options,
                                   CoordinatorProgram coordinator_program)
    : scheduler_(scheduler),
      network_(network),
      options_(options),
      coordinator_program_(std::move(coordinator_program)),
      spec_(SpecOf(options)),
      served_tasks_(ServedTasks(spec_)) {}

std::string SimulatedCluster::MachineOf(TaskId task) const {
  const std::string address = *spec_.Address(task);
  return address.substr(0, address.rfind(':'));
}

void SimulatedCluster::Start(TaskId task) {
  HostId host;
  {
    absl::MutexLock lock(&mutex_);
    Process& process = processes_[task];
    if (process.is_running) return;
    host = scheduler_->AddHost(task.ToString());
    process = {.host = host, .is_running = true};
    scheduler_->MoveClock(host, clock_offsets_[task]);
    if (task.type == TaskType::kPs) ++server_start_count_;
  }
  scheduler_->Note(absl::StrCat("starts ", task.ToString()));
  network_->transport().AddHost(host, MachineOf(task));
  scheduler_->StartThread(host, "main", [this, task, host] {
    const TaskIdentity identity = {
        .task_type = std::string(TaskTypeName(task.type)),
        .task_index = task.index,
        .incarnation = RandomIdentity()};
    OnProcessEnd(task, host, RunProcess(task, identity));
  });
}

absl::Status SimulatedCluster::RunProcess(TaskId task,
                                          const TaskIdentity& identity) {
  switch (task.type) {
    case TaskType::kWorker:
      return RunWorker(task, identity);
    case TaskType::kPs:
      return RunServer(task, identity);
    default:
      return coordinator_program_(identity);
  }
}

void SimulatedCluster::OnProcessEnd(TaskId task, HostId host,
                                    const absl::Status& status) {
  scheduler_->Note(absl::StrCat("ends with exit status ",
                                static_cast<int>(ExitCodeOf(status)),
                                status.ok() ? "" : ": ", status.message()));
  network_->transport().KillHost(host);
  {
    absl::MutexLock lock(&mutex_);
    Process& process = processes_[task];
    if (process.host != host) return;
    process.is_running = false;
    process.is_restarting = ExitCodeOf(status) == ExitCode::kRestartMe;
    process.status = status;
    if (!process.is_restarting) return;
  }
  scheduler_->StartThread(kSimulationHost, "restart", [this, task] {
    absl::SleepFor(kRestartDelay);
    Start(task);
  });
}

bool SimulatedCluster::Kill(TaskId task) {
  HostId host;
  {
    absl::MutexLock lock(&mutex_);
    Process& process = processes_[task];
    if (!process.is_running) return false;
    process.is_running = false;
    process.status = absl::UnavailableError("killed");
    host = process.host;
  }
  // First, so that what the process does until it stops reaches no other.
  network_->transport().KillHost(host);
  scheduler_->Kill(host);
  return true;
}

void SimulatedCluster::Stop(TaskId task) {
  absl::MutexLock lock(&mutex_);
  Process& process = processes_[task];
  if (!process.is_running || process.is_stopped) return;
  process.is_stopped = true;
  scheduler_->Stop(process.host);
}

void SimulatedCluster::Resume(TaskId task) {
  absl::MutexLock lock(&mutex_);
  Process& process = processes_[task];
  if (!process.is_running || !process.is_stopped) return;
  process.is_stopped = false;
  scheduler_->Note(absl::StrCat("resumes ", task.ToString()));
  scheduler_->Resume(process.host);
}

void SimulatedCluster::MoveClock(TaskId task, absl::Duration by) {
  absl::MutexLock lock(&mutex_);
  clock_offsets_[task] += by;
  const Process& process = processes_[task];
  if (process.is_running) scheduler_->MoveClock(process.host, by);
}

bool SimulatedCluster::ReplaceCoordinator() {
  {
    absl::MutexLock lock(&mutex_);
    Process& process = processes_[coordinator()];
    if (!process.is_running || !process.is_stopped) return false;
    replaced_.push_back(process.host);
    process = {};
  }
  Start(coordinator());
  return true;
}

void SimulatedCluster::ResumeReplaced() {
  absl::MutexLock lock(&mutex_);
  for (const HostId host : std::exchange(replaced_, {})) {
    scheduler_->Note("resumes the coordinator that was replaced");
    scheduler_->Resume(host);
  }
}

bool SimulatedCluster::HasReplacedServers() const {
  absl::MutexLock lock(&mutex_);
  return server_start_count_ > options_.server_count;
}

bool SimulatedCluster::HasEnded(TaskId task) const {
  absl::MutexLock lock(&mutex_);
  const auto found = processes_.find(task);
  return found != processes_.end() && !found->second.is_running &&
         !found->second.is_restarting;
}

absl::Status SimulatedCluster::AwaitEnd(TaskId task, absl::Time deadline) {
  const auto has_ended = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    const Process& process = processes_[task];
    return !process.is_running && !process.is_restarting;
  };
  absl::MutexLock lock(&mutex_);
  if (!Clock::Real()->AwaitWithDeadline(&mutex_, absl::Condition(&has_ended),
                                        deadline)) {
    return absl::DeadlineExceededError(
        absl::StrCat(task.ToString(), " has not ended"));
  }
  return processes_[task].status;
}

absl::Status SimulatedCluster::RunWorker(TaskId task,
                                         const TaskIdentity& identity) {
  AdmissionCheck admission_check(identity);
  WorkerService worker(
      {.self = identity,
       .admission_check = &admission_check,
       .cluster = spec_,
       .executable = {.intra_op_thread_count = 1,
                      .plan_bytes_max = kMemoryBytesMax,
                      .host_kernels = &CpuKernels()},
       .coordinator_grace = options_.coordinator_timeout,
       .shared_memory = false},
      &BuiltinOps(), &CpuKernels(),
      [&](const TaskIdentity& self, const SessionJob& job) {
        return std::make_unique<RemoteSessionVariables>(
            network_, spec_, self, job, /*shared_memory=*/false);
      },
      Clock::Real());
  Service methods;
  worker.AddTo(&methods);
  ASSIGN_OR_RETURN(const std::unique_ptr<Server> server,
                   network_->Listen({.address = *spec_.Address(task)}, &methods,
                                    &admission_check));
  const absl::StatusOr<WorkerService::JobEnd> end =
      worker.AwaitJobEnd({.exit_when_coordinator_lost = true},
                         [](absl::string_view line) { LOG(INFO) << line; });
  worker.EndShares();
  server->Shutdown(kServerGrace);
  RETURN_IF_ERROR(end.status());
  return JobEndStatus(end->exit_code, end->reason);
}

absl::Status SimulatedCluster::RunServer(TaskId task,
                                         const TaskIdentity& identity) {
  ParameterServer::Options options;
  options.self = identity;
  options.address = *spec_.Address(task);
  options.shard.thread_count = 2;
  options.shard.memory_bytes_max = kMemoryBytesMax;
  options.shared_memory = false;
  options.cluster = spec_;
  options.coordinator_grace = options_.coordinator_timeout;
  ASSIGN_OR_RETURN(const std::unique_ptr<ParameterServer> server,
                   ParameterServer::Start(network_, options));
  const ParameterService::Outcome outcome = server->AwaitEnd();
  server->Shutdown();
  if (outcome.end == ParameterService::End::kJobEnd) {
    return JobEndStatus(outcome.exit_code, outcome.reason);
  }
  return WithExitCode(outcome.why, ExitCode::kRestartMe);
}

int64_t SimulatedCluster::RepeatedPushCount() const {
  double count = 0;
  for (const MetricFamily& family : ReadMetrics()) {
    if (family.name != "muster_duplicate_updates_dropped_total") continue;
    for (const MetricFamily::Sample& sample : family.samples) {
      count += sample.value;
    }
  }
  return static_cast<int64_t>(count);
}

}  // namespace muster::sim
