#include "common/learn/strategy/synchronous/group_agreement.h"

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/learn/strategy/chief_result.h"
#include "common/learn/strategy/synchronous/broadcast_bytes.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr int kWorkers = 3;

// Runs `work` on a thread for each worker; each has `replicas` replicas.
void RunWorkers(
    const std::function<void(int worker, ReplicaGroup& group)>& work,
    int replicas = 2) {
  auto communicators = CreateLocalGroup(kWorkers * replicas).value();
  std::vector<std::thread> threads;
  for (int worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      ReplicaGroup::Communicators own;
      for (int i = 0; i < replicas; ++i) {
        own.push_back(std::move(communicators[worker * replicas + i]));
      }
      const auto group = ReplicaGroup::Create(
                             std::move(own),
                             {.worker_index = worker, .worker_count = kWorkers})
                             .value();
      work(worker, *group);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Returns an error that names a task and requests a restart.
absl::Status LossOfAServer() {
  proto::TaskFailure failure;
  failure.set_task_type("ps");
  failure.set_task_index(7);
  return WithExitCode(
      WithTaskFailure(absl::UnavailableError("ps 7 is lost"), failure),
      ExitCode::kRestartMe);
}

void ExpectLossOfAServer(const absl::Status& status) {
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("ps 7 is lost")));
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kRestartMe);
  ASSERT_TRUE(GetTaskFailure(status).has_value());
  EXPECT_EQ(GetTaskFailure(status)->task_index(), 7);
}

TEST(GroupAgreementTest, TheFirstWorkerIsTheChief) {
  RunWorkers([](int worker, ReplicaGroup& group) {
    const GroupAgreement agreement(&group, kTimeout, 5);
    EXPECT_EQ(agreement.is_chief(), worker == 0);
    EXPECT_EQ(agreement.shared_seed(), 5);
    EXPECT_THAT(agreement.FromChief("a word", worker == 0 ? "chief" : "other"),
                IsOkAndHolds("chief"));
  });
}

TEST(GroupAgreementTest, OneThatStopsStopsAll) {
  RunWorkers([](int worker, ReplicaGroup& group) {
    const GroupAgreement agreement(&group, kTimeout, std::nullopt);
    EXPECT_THAT(agreement.AgreeToStop(false), IsOkAndHolds(false));
    EXPECT_THAT(agreement.AgreeToStop(worker == 2), IsOkAndHolds(true));
  });
}

TEST(GroupAgreementTest, AllWorkersEndWithTheChiefsExitCode) {
  RunWorkers([](int worker, ReplicaGroup& group) {
    const bool is_chief = worker == 0;
    ExpectLossOfAServer(
        BroadcastStatus(&group, {.name = "a status", .timeout = kTimeout},
                        is_chief ? LossOfAServer() : absl::OkStatus()));
    const GroupAgreement agreement(&group, kTimeout, std::nullopt);
    const absl::StatusOr<std::string> own =
        is_chief ? absl::StatusOr<std::string>(LossOfAServer())
                 : absl::StatusOr<std::string>("mine");
    ExpectLossOfAServer(ResultFromChief(agreement, "a result", own).status());
    EXPECT_OK(BroadcastStatus(&group, {.name = "a status", .timeout = kTimeout},
                              is_chief ? absl::OkStatus() : LossOfAServer()));
  });
}

}  // namespace
}  // namespace muster
