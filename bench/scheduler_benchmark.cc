// The cost of scheduling: no-op closures through Schedule() and Join(), the
// time of one closure from Schedule() to Join(), and the utilisation of workers
// with closures of 100 us. Workers are separate processes. One closure is
// compared with the echo of an empty message over a gRPC stream between two
// processes.
//
//   bazel run -c opt //bench:scheduler_benchmark [-- protected]
//
// "protected" measures only no-op closures on 2 workers, for
// protection_benchmark.py. The variables in benchmark_network.h select the
// protection.
//
// The peer is TensorFlow's ClusterCoordinator: bench/peers/peers.py --bench
// closures. Budgets: 200,000 closures per second and coordinator; the echo's
// time for one closure; 95 % of the workers' time.

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/benchmark_network.h"
#include "bench/measure.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/base/check.h"
#include "common/core/base/random.h"
#include "common/core/system/clock.h"
#include "common/core/system/log.h"
#include "common/core/tensor/tensor.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"
#include "common/net/process/port_reservation.h"
#include "common/net/process/task_options.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "coordinator/closure_dispatcher.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/cluster_coordinator.h"
#include "coordinator/function.h"
#include "coordinator/parameter_server_strategy.h"
#include "ps/serve_parameters.h"
#include "worker/serve_worker.h"

namespace muster {
namespace {

constexpr int kRunCount = 5;
constexpr int kNoOpCount = 200'000;
constexpr int kLatencyCount = 2'000;
constexpr double kClosuresPerSecondBudget = 200'000;
constexpr double kUtilisationBudget = 0.95;
constexpr absl::string_view kEchoMethod = "/muster.Benchmark/Echo";

// Runs the task in this process.
[[noreturn]] void Serve(const ClusterSpec& cluster, TaskId task) {
  TaskOptions options;
  options.config.cluster = cluster;
  options.config.task = task;
  options.listen_address = *cluster.Address(task);
  options.startup_timeout = absl::Minutes(1);
  options.coordinator_timeout = absl::Seconds(10);
  options.grace_period = absl::Seconds(5);
  const TaskIdentity identity = {
      .task_type = std::string(TaskTypeName(task.type)),
      .task_index = task.index,
      .incarnation = RandomIdentity()};
  SetMinimumLogSeverity(LogSeverity::kError);
  MUSTER_CHECK(std::freopen("/dev/null", "w", stderr) != nullptr);
  Network* const network =
      BenchmarkNetwork(TaskTypeName(task.type), task.index);
  const absl::Status status = task.type == TaskType::kPs
                                  ? ServeParameters(options, identity, network)
                                  : ServeWorker(options, identity, network);
  std::_Exit(status.ok() ? 0 : 1);
}

// One server and some workers. Each is a process that was forked before this
// one started any threads.
class Processes {
 public:
  explicit Processes(int worker_count) {
    std::vector<std::string> addresses;
    for (int i = 0; i <= worker_count; ++i) {
      ports_.push_back(PortReservation::Create().value());
      addresses.push_back(absl::StrCat("127.0.0.1:", ports_.back()->port()));
    }
    const std::string server = addresses.back();
    addresses.pop_back();
    cluster_ = *ClusterSpec::FromLists(
        {{TaskType::kWorker, addresses}, {TaskType::kPs, {server}}});
    for (const TaskId task : cluster_.Members()) {
      const pid_t pid = fork();
      MUSTER_CHECK(pid >= 0);
      if (pid == 0) Serve(cluster_, task);
      pids_.push_back(pid);
    }
  }
  ~Processes() {
    for (const pid_t pid : pids_) kill(pid, SIGTERM);
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
  }
  const ClusterSpec& cluster() const { return cluster_; }

 private:
  std::vector<std::unique_ptr<PortReservation>> ports_;
  ClusterSpec cluster_;
  std::vector<pid_t> pids_;
};

void Report(absl::string_view name, int worker_count, double value,
            absl::string_view unit, double budget, bool more_is_better) {
  const double ratio = more_is_better ? value / budget : budget / value;
  std::printf("%-28s W=%d  %12.2f %-10s budget %10.2f  ratio %6.2f  %s\n",
              std::string(name).c_str(), worker_count, value,
              std::string(unit).c_str(), budget, ratio,
              ratio >= 1 ? "met" : "missed");
  std::fflush(stdout);
}

// Answers each message of a stream with an empty message.
class Echo final : public StreamObserver {
 public:
  explicit Echo(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  void OnMessage(ReceivedMessage) override {
    MUSTER_CHECK(stream_->Send(Message()).ok());
  }
  void OnHalfClose() override { stream_->Finish(absl::OkStatus()); }
  void OnDone(const absl::Status&) override {}

 private:
  const std::shared_ptr<Stream> stream_;
};

// Runs a server that echoes messages until `commands` is closed. Writes its
// address to `commands`.
[[noreturn]] void ServeEcho(int commands) {
  Service service;
  service.AddStream(std::string(kEchoMethod),
                    [](std::shared_ptr<Stream> stream) {
                      return std::make_shared<Echo>(std::move(stream));
                    });
  AdmissionCheck admission({.task_type = "worker", .incarnation = 1});
  auto server =
      Network::Grpc()->Listen({.address = "127.0.0.1:0"}, &service, &admission);
  MUSTER_CHECK(server.ok());
  const std::string address = (*server)->address();
  MUSTER_CHECK(write(commands, address.data(), address.size()) > 0);
  char byte = 0;
  while (read(commands, &byte, 1) > 0) {
  }
  std::_Exit(0);
}

class EchoProcess {
 public:
  EchoProcess() {
    int ends[2];
    MUSTER_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pid_ = fork();
    MUSTER_CHECK(pid_ >= 0);
    if (pid_ == 0) {
      close(ends[0]);
      ServeEcho(ends[1]);
    }
    close(ends[1]);
    commands_ = ends[0];
  }
  ~EchoProcess() {
    close(commands_);
    waitpid(pid_, nullptr, 0);
  }

  // Blocks until the process has written its address. Call it once.
  std::string AwaitAddress() const {
    char address[64];
    const ssize_t size = read(commands_, address, sizeof(address));
    MUSTER_CHECK(size > 0);
    return std::string(address, size);
  }

 private:
  pid_t pid_ = 0;
  int commands_ = 0;
};

// Counts the echoed messages.
class EchoCounter final : public StreamObserver {
 public:
  void OnMessage(ReceivedMessage) override {
    absl::MutexLock lock(&mutex_);
    ++count_;
  }
  void OnDone(const absl::Status&) override {
    absl::MutexLock lock(&mutex_);
    is_done_ = true;
  }
  void Await(int64_t count) {
    absl::MutexLock lock(&mutex_);
    const auto reached = [this, count]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return count_ >= count || is_done_;
    };
    mutex_.Await(absl::Condition(&reached));
    MUSTER_CHECK(!is_done_);
  }
  void AwaitDone() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_done_));
  }

 private:
  absl::Mutex mutex_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_done_ ABSL_GUARDED_BY(mutex_) = false;
};

// Returns the time from sending a message on a stream until its echo arrives:
// two messages, and three threads that are woken.
double MeasureEchoMicroseconds(const EchoProcess& process) {
  const auto channel = Network::Grpc()->Connect(
      {.address = process.AwaitAddress(), .peer_task_type = "worker"});
  const auto counter = std::make_shared<EchoCounter>();
  const std::shared_ptr<Stream> stream =
      channel->OpenStream(kEchoMethod, counter);
  std::vector<double> durations_us;
  for (int i = 0; i < kLatencyCount; ++i) {
    durations_us.push_back(MicrosecondsOf([&] {
      MUSTER_CHECK(stream->Send(Message()).ok());
      counter->Await(i + 1);
    }));
  }
  stream->Finish(absl::OkStatus());
  counter->AwaitDone();
  std::printf("%-28s      %12.2f us\n", "echo over a gRPC stream, p50",
              Median(durations_us));
  return Median(durations_us);
}

// Returns a function that computes for about 100 us on this machine.
Function BusyFunction(int matmul_count) {
  return Function::Of("busy", [matmul_count](GraphBuilder& builder) {
    Value x = builder.Constant(Tensor::Full(DType::kFloat32, {64, 64}, 0.01));
    const Value y =
        builder.Constant(Tensor::Full(DType::kFloat32, {64, 64}, 0.01));
    // The seed differs from step to step, so that nothing can be precomputed.
    x = x + Cast(Sum(StepSeed(builder)), DType::kFloat32) * 0.0f;
    for (int i = 0; i < matmul_count; ++i) x = MatMul(x, y);
    return Sum(x);
  });
}

double BusyMicroseconds(ClusterCoordinator& coordinator,
                        ClosureDispatcher& dispatcher, const Function& function,
                        int count, double* wall_us) {
  const absl::Duration before = dispatcher.counters().busy;
  *wall_us = MicrosecondsOf([&] {
    for (int i = 0; i < count; ++i) {
      MUSTER_CHECK(coordinator.Schedule(function, {}).ok());
    }
    MUSTER_CHECK(coordinator.Join().ok());
  });
  return absl::ToDoubleMicroseconds(dispatcher.counters().busy - before);
}

// A coordinator of the cluster's workers.
class Coordination {
 public:
  explicit Coordination(const ClusterSpec& cluster)
      : worker_count_(cluster.task_count(TaskType::kWorker)) {
    static Network* const network = BenchmarkNetwork("chief", 0);
    ClusterConnection::Options options;
    options.cluster = cluster;
    options.self = {.task_type = "chief", .incarnation = RandomIdentity()};
    auto connection = ClusterConnection::Open(options, network, Clock::Real(),
                                              [](absl::string_view) {});
    MUSTER_CHECK(connection.ok());
    connection_ = *std::move(connection);
    strategy_ = std::make_unique<ParameterServerStrategy>(
        connection_, ParameterServerStrategyOptions(), Clock::Real());
    coordinator_ = std::make_unique<ClusterCoordinator>(*strategy_);
  }
  ~Coordination() { connection_->EndJob(absl::OkStatus()); }

  int worker_count() const { return worker_count_; }

  // Runs `count` closures. Returns the time that workers were busy.
  double Run(const Function& function, int count, double* wall_us) {
    return BusyMicroseconds(*coordinator_, connection_->dispatcher(), function,
                            count, wall_us);
  }

 private:
  const int worker_count_;
  std::shared_ptr<ClusterConnection> connection_;
  std::unique_ptr<ParameterServerStrategy> strategy_;
  std::unique_ptr<ClusterCoordinator> coordinator_;
};

void MeasureNoOps(Coordination* coordination) {
  const Function no_op = Function::Of("no_op", [](GraphBuilder&) {});
  std::vector<double> rates;
  double wall_us = 0;
  for (int run = 0; run <= kRunCount; ++run) {
    coordination->Run(no_op, kNoOpCount, &wall_us);
    if (run > 0) rates.push_back(kNoOpCount / wall_us * 1e6);
  }
  Report("no-op closures", coordination->worker_count(), Median(rates),
         "closures/s", kClosuresPerSecondBudget, true);
}

void MeasureLatency(Coordination* coordination, double echo_us) {
  const Function no_op = Function::Of("no_op", [](GraphBuilder&) {});
  std::vector<double> latencies;
  for (int i = 0; i < kLatencyCount; ++i) {
    double wall_us = 0;
    coordination->Run(no_op, 1, &wall_us);
    latencies.push_back(wall_us);
  }
  std::sort(latencies.begin(), latencies.end());
  Report("one closure, p50", coordination->worker_count(),
         latencies[latencies.size() / 2], "us", echo_us, false);
  Report("one closure, p99", coordination->worker_count(),
         latencies[latencies.size() * 99 / 100], "us", 3 * echo_us, false);
}

void MeasureUtilisation(Coordination* coordination) {
  // Determines how many products take 100 us without other load.
  const Function trial = BusyFunction(10);
  double busy_us = 0;
  double wall_us = 0;
  for (int i = 0; i < 2; ++i) {
    busy_us = coordination->Run(trial, 200, &wall_us) / 200;
  }
  const int matmul_count =
      std::max(1, static_cast<int>(100 / std::max(1.0, busy_us) * 10));
  const Function busy = BusyFunction(matmul_count);
  std::vector<double> utilisations;
  double closure_us = 0;
  for (int run = 0; run <= kRunCount; ++run) {
    const int count = 10'000;
    const double sum_us = coordination->Run(busy, count, &wall_us);
    if (run == 0) continue;
    closure_us = sum_us / count;
    utilisations.push_back(sum_us / (wall_us * coordination->worker_count()));
  }
  std::printf("closures of %.0f us:\n", closure_us);
  Report("utilisation", coordination->worker_count(), Median(utilisations),
         "of time", kUtilisationBudget, true);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const bool is_protected =
      argc > 1 && argv[1] == absl::string_view("protected");
  // Forks all processes first, because a process with gRPC threads cannot fork.
  std::vector<std::unique_ptr<muster::Processes>> clusters;
  for (const int worker_count :
       is_protected ? std::vector<int>{2} : std::vector<int>{1, 2, 4}) {
    clusters.push_back(std::make_unique<muster::Processes>(worker_count));
  }
  if (is_protected) {
    muster::Coordination coordination(clusters.front()->cluster());
    muster::MeasureNoOps(&coordination);
    return 0;
  }
  const muster::EchoProcess echo;
  const double echo_us = muster::MeasureEchoMicroseconds(echo);
  for (const auto& cluster : clusters) {
    muster::Coordination coordination(cluster->cluster());
    muster::MeasureNoOps(&coordination);
    muster::MeasureLatency(&coordination, echo_us);
    muster::MeasureUtilisation(&coordination);
  }
  return 0;
}
