// The reports of a coordinator, its workers and its parameter servers, all in
// one process.
#include "common/net/status/status_report.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/variable_ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/metrics.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "common/net/process/exit_code.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/cluster_coordinator.h"
#include "coordinator/function.h"
#include "coordinator/parameter_server_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"
#include "tests/cluster/test_cluster.h"

namespace muster {
namespace {

using State = TaskStatus::State;
using ::testing::HasSubstr;

const VariableHandle kCounter = {"counter", {DType::kFloat32, {}}};

absl::Time Soon() { return absl::Now() + absl::Seconds(120); }

// Returns the coordinator's report about `task`. Tasks also report about
// themselves, but without an address.
TaskStatus Find(absl::string_view task) {
  for (const TaskStatus& status : ReadStatus().tasks) {
    if (status.task == task && !status.address.empty()) return status;
  }
  ADD_FAILURE() << "nothing is reported about " << task;
  return {};
}

// Returns the sum of the series of `name`.
double Read(absl::string_view name) {
  double sum = 0;
  for (const MetricFamily& family : ReadMetrics()) {
    if (family.name != name) continue;
    for (const MetricFamily::Sample& sample : family.samples) {
      sum += sample.value;
      for (const int64_t count : sample.counts) {
        sum += static_cast<double>(count);
      }
    }
  }
  return sum;
}

bool AwaitState(absl::string_view task, State state) {
  absl::Notification never;
  const absl::Time deadline = Soon();
  while (Find(task).state != state) {
    if (absl::Now() > deadline) return false;
    never.WaitForNotificationWithTimeout(absl::Milliseconds(5));
  }
  return true;
}

class StatusReportTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(strategy_, cluster_.Connect());
    proto::VariableSpec spec;
    spec.set_name(kCounter.name);
    spec.set_dtype(proto::DT_FLOAT);
    spec.mutable_shape();
    spec.mutable_initializer()->mutable_constant()->set_value(0);
    ASSERT_OK(strategy_->variables().Create(spec));
    coordinator_ = std::make_unique<ClusterCoordinator>(*strategy_);
  }

  void Train(int step_count) {
    for (int i = 0; i < step_count; ++i) {
      ASSERT_OK(coordinator_->Schedule(step_, {}, Soon()));
    }
    ASSERT_OK(coordinator_->Join(Soon()));
  }

  const Function step_ = Function::Of("count", [](GraphBuilder& builder) {
    const Value counter = ReadVariable(builder, kCounter);
    AssignAddVariable(kCounter, builder.Constant(Tensor::Scalar(1.0f)));
    return counter;
  });
  TestCluster cluster_{2, 1};
  std::unique_ptr<ParameterServerStrategy> strategy_;
  std::unique_ptr<ClusterCoordinator> coordinator_;
};

TEST_F(StatusReportTest, CountsStepsOnAllTasks) {
  const std::map<std::string, double> before = {
      {"muster_closures_done_total", Read("muster_closures_done_total")},
      {"muster_worker_steps_total", Read("muster_worker_steps_total")},
      {"muster_closure_seconds", Read("muster_closure_seconds")},
      {"muster_updates_total", Read("muster_updates_total")}};
  Train(100);
  for (const auto& [name, value] : before) {
    EXPECT_EQ(Read(name) - value, 100) << name;
  }
  EXPECT_GE(Read("muster_exchange_seconds"), 100);
  EXPECT_GE(Read("muster_exchange_round_trip_seconds"), 100);
  EXPECT_GT(Read("muster_tensor_bytes_received_total"), 0);
  EXPECT_GT(Read("muster_tensor_bytes_sent_total"), 0);
  EXPECT_GT(Read("muster_rpc_bytes_sent_total"), 0);
  EXPECT_GT(Read("muster_rpc_bytes_received_total"), 0);
  EXPECT_EQ(Read("muster_closures_queued"), 0);
  EXPECT_EQ(Read("muster_closures_in_flight"), 0);
  EXPECT_EQ(Read("muster_peer_connected"), 3);
  EXPECT_EQ(Read("muster_variables"), 1);
  EXPECT_EQ(Read("muster_variable_bytes"), 4);

  const StatusReport report = ReadStatus();
  EXPECT_OK(Readiness(report));
  ASSERT_TRUE(report.queue.has_value());
  EXPECT_EQ(report.queue->done_count, 100);
  EXPECT_EQ(Find("worker 0").closures_done.value_or(0) +
                Find("worker 1").closures_done.value_or(0),
            100);
}

// The coordinator receives the activity with the heartbeats of the server.
TEST_F(StatusReportTest, ShowsTheActivityOfServers) {
  Train(50);
  absl::Notification never;
  const absl::Time deadline = Soon();
  while (Find("ps 0").update_count.value_or(0) < 50 && absl::Now() < deadline) {
    never.WaitForNotificationWithTimeout(absl::Milliseconds(5));
  }
  const TaskStatus server = Find("ps 0");
  EXPECT_EQ(server.update_count, 50);
  EXPECT_GT(server.bytes_received.value_or(0), 0);
  EXPECT_EQ(server.variable_bytes, 4);
}

// Most models have one large variable and several small ones.
TEST(DefaultPlacementTest, BalancesBytes) {
  EXPECT_EQ(ParameterServerStrategyOptions().placement,
            ClusterConnection::Options().placement);
  TestCluster cluster(1, 2);
  ASSERT_OK_AND_ASSIGN(const auto strategy, cluster.Connect());
  int64_t bytes = 0;
  for (const int64_t rows : {1000, 10, 601, 11, 300}) {
    proto::VariableSpec spec;
    spec.set_name(absl::StrCat("of_", rows));
    spec.set_dtype(proto::DT_FLOAT);
    spec.mutable_shape()->add_dim(rows);
    spec.mutable_initializer()->mutable_constant()->set_value(0);
    ASSERT_OK(strategy->variables().Create(spec));
    bytes += rows * 4;
  }
  absl::Notification never;
  const absl::Time deadline = Soon();
  const auto bytes_of = [](absl::string_view task) {
    return Find(task).variable_bytes.value_or(0);
  };
  while (bytes_of("ps 0") + bytes_of("ps 1") < bytes &&
         absl::Now() < deadline) {
    never.WaitForNotificationWithTimeout(absl::Milliseconds(5));
  }
  EXPECT_EQ(bytes_of("ps 0"), 4000);
  EXPECT_EQ(bytes_of("ps 1"), bytes - 4000);
}

TEST_F(StatusReportTest, ShowsALostWorkerAndItsReturn) {
  Train(10);
  const TaskStatus before = Find("worker 1");
  EXPECT_EQ(before.state, State::kConnected);
  EXPECT_EQ(before.incarnation, cluster_.worker(1).incarnation());
  EXPECT_EQ(before.problem, "");

  cluster_.worker(1).Kill();
  ASSERT_TRUE(AwaitState("worker 1", State::kLost));
  const TaskStatus lost = Find("worker 1");
  EXPECT_NE(lost.problem, "");
  EXPECT_LT(lost.in_state, absl::Minutes(1));
  EXPECT_EQ(Read("muster_peers_lost_total"), 1);
  EXPECT_EQ(Read("muster_peer_connected"), 2);

  cluster_.worker(1).Start();
  ASSERT_TRUE(AwaitState("worker 1", State::kConnected));
  EXPECT_EQ(Find("worker 1").incarnation, cluster_.worker(1).incarnation());
  EXPECT_NE(Find("worker 1").incarnation, before.incarnation);
  EXPECT_EQ(Read("muster_peers_returned_total"), 1);
}

// The coordinator then exits with kRestartMe.
TEST_F(StatusReportTest, ALossOfAllWorkersTurnsATimeoutIntoARestart) {
  const auto code_of = [this](const absl::Status& status) {
    return ExitCodeOf(strategy_->connection()->WithLoss(status));
  };
  const absl::Status late = absl::DeadlineExceededError("no step has finished");
  Train(10);
  cluster_.worker(0).Kill();
  ASSERT_TRUE(AwaitState("worker 0", State::kLost));
  EXPECT_EQ(code_of(late), ExitCode::kFailure);
  cluster_.worker(1).Kill();
  ASSERT_TRUE(AwaitState("worker 1", State::kLost));
  EXPECT_EQ(code_of(late), ExitCode::kRestartMe);
  EXPECT_EQ(code_of(absl::InvalidArgumentError("a label is 10")),
            ExitCode::kFailure);
  cluster_.worker(1).Start();
  ASSERT_TRUE(AwaitState("worker 1", State::kConnected));
  EXPECT_EQ(code_of(late), ExitCode::kFailure);
}

TEST_F(StatusReportTest, AMistakeThatAServerRefusesAsksForNoRestart) {
  ASSERT_OK(strategy_->variables().SetOptimizer(Adam()));
  const absl::Status refusal = strategy_->variables().SetOptimizer(Adagrad());
  ASSERT_THAT(refusal, StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("ps ")));
  EXPECT_EQ(ExitCodeOf(strategy_->connection()->WithLoss(refusal)),
            ExitCode::kFailure);
}

TEST_F(StatusReportTest, ShowsALostServer) {
  Train(10);
  cluster_.KillServer(0);
  ASSERT_TRUE(AwaitState("ps 0", State::kLost));
  EXPECT_EQ(ExitCodeOf(strategy_->connection()->WithLoss(
                absl::UnavailableError("ps 0 is lost"))),
            ExitCode::kRestartMe);
  EXPECT_NE(Find("ps 0").problem, "");
  EXPECT_EQ(Read("muster_peers_lost_total"), 1);
}

}  // namespace
}  // namespace muster
