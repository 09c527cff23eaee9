// The payloads of an error are delivered wherever the error is sent: the task
// that failed, the exit code of the process, and the lost device.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device_context.h"
#include "common/learn/strategy/chief_result.h"
#include "common/learn/strategy/synchronous/broadcast_bytes.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/collectives/peers/testing/peer_cluster.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "common/net/rpc/status_detail.h"
#include "coordinator/cluster_coordinator.h"
#include "coordinator/parameter_server_strategy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"
#include "tests/cluster/counters.h"
#include "tests/cluster/test_cluster.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::string_view kForeignUrl = "example.com/Foreign";
constexpr absl::string_view kLargeUrl = "type.muster/Large";

// An error with every payload of Muster, and two that must not be sent.
absl::Status FullError() {
  proto::TaskFailure failure;
  failure.set_task_type("worker");
  failure.set_task_index(3);
  absl::Status status = WithGroupErrorKind(
      WithExitCode(
          WithTaskFailure(absl::UnavailableError("a GPU is lost"), failure),
          ExitCode::kRestartMe),
      GroupErrorKind::kPeerLost);
  status.SetPayload(kDeviceLostUrl, absl::Cord("GPU 1"));
  status.SetPayload(kForeignUrl, absl::Cord("x"));
  status.SetPayload(kLargeUrl, absl::Cord(std::string(5000, 'x')));
  return status;
}

void ExpectArrived(const absl::Status& status) {
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("a GPU is lost")));
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kRestartMe);
  EXPECT_EQ(GroupErrorKindOf(status), GroupErrorKind::kPeerLost);
  EXPECT_EQ(status.GetPayload(kDeviceLostUrl), absl::Cord("GPU 1"));
  const auto failure = GetTaskFailure(status);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->task_type(), "worker");
  EXPECT_EQ(failure->task_index(), 3);
  EXPECT_FALSE(status.GetPayload(kForeignUrl).has_value());
  EXPECT_FALSE(status.GetPayload(kLargeUrl).has_value());
}

// While it exists, the `occurrence`-th pass of a fault point fails with
// FullError().
class FailingPoint {
 public:
  FailingPoint(absl::string_view point, int64_t occurrence) {
    SetFaults({{.point = std::string(point),
                .occurrence = occurrence,
                .action = FaultAction::kFail,
                .error = FullError()}});
  }
  ~FailingPoint() { SetFaults({}); }
};

// Returns the error that a caller receives from a method that fails.
absl::Status OverACall() {
  Service service;
  service.AddUnary("/test/Fail", [](ReceivedMessage, Responder responder) {
    responder.Respond(FullError());
  });
  AdmissionCheck check({"ps", 1, 77});
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Server> server,
      Network::Grpc()->Listen({.address = "127.0.0.1:0"}, &service, &check));
  const std::unique_ptr<Channel> channel =
      Network::Grpc()->Connect({.address = server->address(),
                                .peer_task_type = "ps",
                                .peer_task_index = 1,
                                .caller = {"worker", 0, 5},
                                .job_id = "job"});
  return channel->CallAndWait("/test/Fail", {}, {}).status();
}

// Returns the error that the coordinator receives from a worker whose step
// fails.
absl::Status OverAWorkersReport() {
  TestCluster cluster(/*worker_count=*/1, /*server_count=*/1);
  ASSIGN_OR_RETURN(const auto strategy, cluster.Connect());
  RETURN_IF_ERROR(CreateCounters(strategy->variables()));
  const FailingPoint failing("worker.before_step", 1);
  ClusterCoordinator coordinator(*strategy);
  RETURN_IF_ERROR(coordinator.Schedule(CountingStep(), {}).status());
  return coordinator.Join(absl::Now() + kPatience);
}

// Returns the error that the coordinator receives from a server that cannot
// write a checkpoint.
absl::Status OverACheckpoint() {
  TestCluster cluster(/*worker_count=*/1, /*server_count=*/1);
  ASSIGN_OR_RETURN(const auto strategy, cluster.Connect());
  VariableStore& store = strategy->variables();
  RETURN_IF_ERROR(CreateCounters(store));
  const FailingPoint failing("ps.while_saving", 1);
  return store.SaveShards(absl::StrCat(testing::TempDir(), "/ckpt-1"),
                          store.checkpoint_shard_count());
}

// Returns the error that worker 1 receives if worker 0 broadcasts an error.
absl::Status OverABroadcast() {
  ASSIGN_OR_RETURN(auto communicators, CreateLocalGroup(2));
  absl::Status results[2];
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 2; ++worker) {
    threads.emplace_back([&, worker] {
      ReplicaGroup::Communicators own;
      own.push_back(std::move(communicators[worker]));
      const auto group =
          ReplicaGroup::Create(std::move(own),
                               {.worker_index = worker, .worker_count = 2})
              .value();
      results[worker] =
          BroadcastStatus(group.get(), {.name = "test", .timeout = kPatience},
                          worker == 0 ? FullError() : absl::OkStatus());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results[1];
}

absl::Status OverAChiefsResult() {
  return DecodeResult(EncodeResult(FullError())).status();
}

struct Hop {
  const char* name;
  std::function<absl::Status()> send;
};

TEST(StatusPayloadsTest, SurviveEveryHop) {
  const std::vector<Hop> hops = {
      {"call", OverACall},
      {"report of a worker", OverAWorkersReport},
      {"checkpoint", OverACheckpoint},
      {"broadcast", OverABroadcast},
      {"result of the chief", OverAChiefsResult},
  };
  for (const Hop& hop : hops) {
    SCOPED_TRACE(hop.name);
    ExpectArrived(hop.send());
  }
}

class GroupPayloadsTest : public PeerGroupTest {};

TEST_F(GroupPayloadsTest, SurviveTheReplyOfAMemberThatCannotConnect) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = AllOptions();
  for (auto& options : all) {
    options.transports.shared_memory = false;
    options.transports.raw_sockets = false;
  }
  // The first pass is the leader's: it prepares before it asks the member to.
  const FailingPoint failing("peers.prepare", 2);
  const auto results = TryJoinAll(all);
  ExpectArrived(results[0].status());
  EXPECT_THAT(results[0].status().message(), HasSubstr("worker 1: "));
  ExpectArrived(results[1].status());
}

TEST_F(GroupPayloadsTest, SurviveTheNoticeOfAMemberThatFails) {
  const Groups groups = FormCluster(2);
  ASSERT_EQ(groups.size(), 2);
  absl::Status other;
  std::thread leaving(
      [&] { other = groups[0]->Leave(absl::OkStatus(), kPatience); });
  groups[1]->Leave(FullError(), kPatience).IgnoreError();
  leaving.join();
  ExpectArrived(other);
}

// A sender that exceeds the limits of EncodeStatus().
TEST(StatusPayloadsTest, ReceivedPayloadsAreLimited) {
  proto::StatusDetail detail;
  detail.set_code(static_cast<int>(absl::StatusCode::kInternal));
  const auto add = [&](absl::string_view url, size_t size_bytes) {
    auto* const payload = detail.add_payloads();
    payload->set_type_url(std::string(url));
    payload->set_value(std::string(size_bytes, 'x'));
  };
  add(kForeignUrl, 1);
  add(kLargeUrl, 5000);
  add(kTaskFailureTypeUrl, 1);
  for (int i = 0; i < 1000; ++i) add(absl::StrCat("type.muster/", i), 1);
  int count = 0;
  DecodeStatus(detail).ForEachPayload(
      [&](absl::string_view url, const absl::Cord& value) {
        ++count;
        EXPECT_LT(url.size() + value.size(), kStatusPayloadBytesMax);
        EXPECT_NE(url, kForeignUrl);
        EXPECT_NE(url, kTaskFailureTypeUrl);
      });
  EXPECT_EQ(count, kStatusPayloadCountMax);
}

}  // namespace
}  // namespace muster
