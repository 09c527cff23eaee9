// Tests which tasks form a group and which are refused.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/cluster/task_id.h"
#include "common/net/collectives/communication_implementation.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/collectives/peers/job_digest.h"
#include "common/net/collectives/peers/peer_group.h"
#include "common/net/collectives/peers/testing/peer_cluster.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/identity.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

using PeerGroupStartupTest = PeerGroupTest;

TEST_F(PeerGroupStartupTest, TasksStartInAnyOrderAndLogForWhichTheyWait) {
  MakeCluster(3);
  std::vector<PeerGroup::Options> all = AllOptions();
  for (auto& options : all) options.report_interval = absl::Milliseconds(50);
  Groups groups(3);
  std::vector<std::thread> threads;
  const auto start = [&](int rank) {
    threads.emplace_back([&, rank] {
      auto joined = Join(all[rank]);
      EXPECT_OK(joined);
      if (joined.ok()) groups[rank] = *std::move(joined);
    });
  };
  start(2);
  EXPECT_TRUE(lines_[2].Await("waiting for worker 0 (localhost:"));
  start(0);
  EXPECT_TRUE(lines_[0].Await("waiting for worker 1 (localhost:"));
  EXPECT_TRUE(lines_[2].Await("waiting for worker 1 (localhost:"));
  start(1);
  for (std::thread& thread : threads) thread.join();
  ASSERT_THAT(groups, Each(testing::NotNull()));
  EXPECT_THAT(lines_[2].text(), HasSubstr("onnect"));  // "Connection refused".
  ExpectSums(groups);
  LeaveAll(groups);
}

TEST_F(PeerGroupStartupTest, ATaskThatDoesNotStartIsNamedAtTheDeadline) {
  MakeCluster(2);
  PeerGroup::Options options = OptionsOf(0);
  options.startup_timeout = absl::Milliseconds(300);
  const absl::Status status = Join(options).status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("gave up after"),
                             HasSubstr(absl::StrCat(
                                 "worker 1 (",
                                 *cluster_.Address({TaskType::kWorker, 1}))))));
  EXPECT_EQ(GroupErrorKindOf(status), GroupErrorKind::kPeerLost);
}

// Lets two tasks join at the same time, of which `leader` fails. Returns the
// error that the other one receives.
absl::Status ResultOfOneWhoIsTold(
    const PeerGroup::Options& leader, PeerGroup::Options other,
    const std::function<absl::Status(const PeerGroup::Options&)>& join) {
  absl::Status told;
  std::thread thread([&] { told = join(other); });
  EXPECT_FALSE(join(leader).ok());
  thread.join();
  return told;
}

TEST_F(PeerGroupStartupTest, ALeaderThatTimesOutSendsItsErrorToPresentTasks) {
  MakeCluster(3);
  PeerGroup::Options leader = OptionsOf(0);
  leader.startup_timeout = absl::Seconds(5);
  PeerGroup::Options other = OptionsOf(1);
  other.startup_timeout = absl::Minutes(10);
  const absl::Status told = ResultOfOneWhoIsTold(
      leader, other,
      [](const auto& options) { return Join(options).status(); });
  EXPECT_THAT(
      told,
      StatusIs(
          absl::StatusCode::kDeadlineExceeded,
          AllOf(HasSubstr("worker 0 (localhost:"),
                HasSubstr("failed before the group was formed: gave up after"),
                HasSubstr("worker 2 (localhost:"))));
  EXPECT_EQ(GroupErrorKindOf(told), GroupErrorKind::kPeerLost);
}

TEST_F(PeerGroupStartupTest, ATaskThatCannotTrainTellsTheOthers) {
  MakeCluster(2);
  for (const int failing : {0, 1}) {
    std::vector<PeerGroup::Options> all = AllOptions();
    all[failing].failure = absl::InvalidArgumentError("the folder is a file");
    const auto results = TryJoinAll(all);
    EXPECT_THAT(results[failing].status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         testing::Eq("the folder is a file")));
    const absl::Status told = results[1 - failing].status();
    EXPECT_THAT(told, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("the folder is a file")));
    EXPECT_EQ(GroupErrorKindOf(told), GroupErrorKind::kPeerFailed);
  }
}

void ExpectBoth(
    const std::vector<absl::StatusOr<std::unique_ptr<PeerGroup>>>& results,
    GroupErrorKind kind, const std::string& first, const std::string& second) {
  ASSERT_EQ(results.size(), 2);
  EXPECT_THAT(results[0], StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr(first)));
  EXPECT_THAT(results[1], StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr(second)));
  EXPECT_EQ(GroupErrorKindOf(results[0].status()), kind);
  EXPECT_EQ(GroupErrorKindOf(results[1].status()), kind);
}

TEST_F(PeerGroupStartupTest, ATaskThatFailsEarlyNeedNotKnowTheJob) {
  MakeCluster(2);
  for (const int failing : {0, 1}) {
    std::vector<PeerGroup::Options> all = AllOptions();
    all[failing].failure = WithExitCode(
        absl::NotFoundError("no such file: x.csv"), ExitCode::kUsage);
    all[failing].digest = JobDigest();
    all[1 - failing].replicas_per_task = 2;
    const auto results = TryJoinAll(all);
    EXPECT_THAT(results[failing].status(),
                StatusIs(absl::StatusCode::kNotFound, "no such file: x.csv"));
    const absl::Status told = results[1 - failing].status();
    EXPECT_THAT(
        told,
        StatusIs(
            absl::StatusCode::kNotFound,
            AllOf(HasSubstr(absl::StrCat("worker ", failing, " (localhost:")),
                  HasSubstr("failed before the group was formed: no such file: "
                            "x.csv"))));
    EXPECT_EQ(GroupErrorKindOf(told), GroupErrorKind::kPeerFailed);
    EXPECT_EQ(ExitCodeOf(told), ExitCode::kUsage);
  }
}

TEST_F(PeerGroupStartupTest, AFailureIsToldBeforeAllTasksAreThere) {
  MakeCluster(3);
  PeerGroup::Options failing = OptionsOf(1);
  failing.failure = absl::InvalidArgumentError("the folder is a file");
  failing.startup_timeout = absl::Seconds(5);
  const absl::Status told = ResultOfOneWhoIsTold(
      failing, OptionsOf(2),
      [](const auto& options) { return Join(options).status(); });
  EXPECT_THAT(told, StatusIs(absl::StatusCode::kInvalidArgument,
                             HasSubstr("the folder is a file")));
}

TEST_F(PeerGroupStartupTest, TasksWithDifferentPortsRefuseEachOther) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = AllOptions();
  // In its own cluster, worker 1 has another address than in that of worker 0.
  const std::string other = NewAddress();
  all[1].config.cluster =
      ClusterSpec::FromLists(
          {{TaskType::kWorker,
            {*cluster_.Address({TaskType::kWorker, 0}), other}}})
          .value();
  ExpectBoth(TryJoinAll(all), GroupErrorKind::kDisagreement,
             absl::StrCat(other, "\"] there and"),
             absl::StrCat(other, "\"] here"));
}

TEST_F(PeerGroupStartupTest, TasksWithDifferentJobsRefuseEachOther) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = AllOptions();
  all[1].digest = JobDigest();
  all[1].digest.Add("job file", "epochs: 4\n");
  ExpectBoth(TryJoinAll(all), GroupErrorKind::kDisagreement,
             "job file, line 1, is \"epochs: 4\" there and \"epochs: 3\" here",
             "job file, line 1, is \"epochs: 3\" there and \"epochs: 4\" here");
}

TEST_F(PeerGroupStartupTest, TasksWithDifferentReplicaCountsRefuseEachOther) {
  MakeCluster(2);
  std::vector<PeerGroup::Options> all = AllOptions();
  all[1].replicas_per_task = 3;
  ExpectBoth(TryJoinAll(all), GroupErrorKind::kDisagreement,
             "the replicas: 3 there and 1 here",
             "the replicas: 1 there and 3 here");
}

TEST_F(PeerGroupStartupTest, ASecondProcessAtTheSameAddressIsRefused) {
  MakeCluster(2);
  const PeerGroup::Options first = OptionsOf(0);
  std::unique_ptr<PeerGroup> group;
  std::thread thread([&] {
    auto joined = Join(first);
    EXPECT_OK(joined);
    if (joined.ok()) group = *std::move(joined);
  });
  PeerGroup::Options waiting = OptionsOf(1);
  waiting.report_interval = absl::Milliseconds(20);
  // After worker 1 has formed a group with it, worker 0 is present.
  auto other = Join(waiting);
  thread.join();
  ASSERT_OK(other);
  const auto second = Join(OptionsOf(0));
  EXPECT_THAT(
      second,
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("worker 0 (localhost:"),
                     HasSubstr(IncarnationString(first.identity.incarnation)),
                     HasSubstr("is already there"))));
  EXPECT_EQ(GroupErrorKindOf(second.status()), GroupErrorKind::kDuplicateTask);
  Groups groups;
  groups.push_back(std::move(group));
  groups.push_back(*std::move(other));
  ExpectSums(groups);
  LeaveAll(groups);
}

TEST_F(PeerGroupStartupTest, ATaskWithTheIndexOfAnotherIsRefused) {
  MakeCluster(2);
  PeerGroup::Options right = OptionsOf(0);
  right.report_interval = absl::Milliseconds(20);
  // A second worker 0, which listens on the address of worker 1.
  PeerGroup::Options wrong = OptionsOf(0);
  wrong.listen_address = *cluster_.Address({TaskType::kWorker, 1});
  wrong.report = nullptr;
  absl::StatusOr<std::unique_ptr<PeerGroup>> group;
  std::thread thread([&] { group = Join(right); });
  EXPECT_TRUE(lines_[0].Await("waiting for worker 1"));
  const auto refused = Join(wrong);
  EXPECT_THAT(
      refused,
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("worker 0 (localhost:"),
                     HasSubstr(IncarnationString(right.identity.incarnation)),
                     HasSubstr("is already there"))));
  EXPECT_EQ(GroupErrorKindOf(refused.status()), GroupErrorKind::kDuplicateTask);
  auto other = Join(OptionsOf(1));
  thread.join();
  ASSERT_OK(group);
  ASSERT_OK(other);
  Groups groups;
  groups.push_back(*std::move(group));
  groups.push_back(*std::move(other));
  LeaveAll(groups);
}

TEST_F(PeerGroupStartupTest, ATaskRejoinsAfterATimeout) {
  MakeCluster(3);
  std::vector<PeerGroup::Options> all = AllOptions();
  for (auto& options : all) options.report_interval = absl::Milliseconds(50);
  Groups groups(3);
  std::vector<std::thread> threads;
  const auto start = [&](int rank) {
    threads.emplace_back([&, rank] {
      auto joined = Join(all[rank]);
      EXPECT_OK(joined);
      if (joined.ok()) groups[rank] = *std::move(joined);
    });
  };
  start(0);
  PeerGroup::Options impatient = OptionsOf(1);
  impatient.startup_timeout = absl::Milliseconds(300);
  EXPECT_THAT(Join(impatient), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                        HasSubstr("worker 2")));
  start(1);
  start(2);
  for (std::thread& thread : threads) thread.join();
  ASSERT_THAT(groups, Each(testing::NotNull()));
  ExpectSums(groups);
  LeaveAll(groups);
}

TEST_F(PeerGroupStartupTest, WithoutGpusRingReplacesNcclUnlessItIsRequired) {
  MakeCluster(1);
  PeerGroup::Options options = OptionsOf(0);
  options.implementation = CommunicationImplementation::kNccl;
  {
    const auto group = Join(options);
    ASSERT_OK(group);
    EXPECT_THAT((*group)->Describe(), HasSubstr("RING"));
    EXPECT_OK((*group)->Leave(absl::OkStatus(), kPatience));
  }
  options.implementation_is_required = true;
  EXPECT_THAT(Join(options), StatusIs(absl::StatusCode::kUnimplemented,
                                      HasSubstr("needs a GPU")));
}

TEST_F(PeerGroupStartupTest, OptionsThatMakeNoSenseAreRefused) {
  MakeCluster(2);
  PeerGroup::Options options = OptionsOf(0);
  options.replicas_per_task = 0;
  EXPECT_THAT(Join(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("replicas_per_task")));
  options = OptionsOf(0);
  options.identity.incarnation = 0;
  EXPECT_THAT(Join(options), StatusIs(absl::StatusCode::kInvalidArgument));
  options = OptionsOf(0);
  options.config.task = {TaskType::kEvaluator, 0};
  EXPECT_THAT(Join(options), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("evaluator")));
}

TEST_F(PeerGroupStartupTest, ARestartedTaskIsNotLetIntoAGroupThatWasFormed) {
  Groups groups = FormCluster(3);
  ASSERT_EQ(groups.size(), 3);
  std::thread dropping([&] { groups[2] = nullptr; });
  EXPECT_FALSE(AllReduce(*groups[0]).ok());
  dropping.join();
  PeerGroup::Options restarted = OptionsOf(2);
  restarted.startup_timeout = absl::Milliseconds(500);
  EXPECT_THAT(Join(restarted),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("the group was formed without this process")));
}

}  // namespace
}  // namespace muster
