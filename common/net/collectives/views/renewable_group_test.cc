#include "common/net/collectives/views/renewable_group.h"

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "common/io/storage/disk.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/collectives/peers/testing/peer_cluster.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/group_view.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

using Renewables = std::vector<std::unique_ptr<RenewableGroup>>;

class RenewableGroupTest : public PeerGroupTest {
 protected:
  RenewableGroup::Options RenewableOptions(int rank, int task_count_min) {
    RenewableGroup::Options options{
        .group = OptionsOf(rank),
        .task_count_min = task_count_min,
        .run_dir = JoinPath(
            testing::TempDir(),
            testing::UnitTest::GetInstance()->current_test_info()->name()),
        .request_interval = absl::Milliseconds(200)};
    // Tasks that end their connections are lost at once.
    options.group.heartbeat_timeout = absl::Seconds(3);
    return options;
  }

  // Calls work(i) on a thread for each of `count` tasks.
  static void RunAll(int count, const std::function<void(int)>& work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) threads.emplace_back([&, i] { work(i); });
    for (std::thread& thread : threads) thread.join();
  }

  Renewables FormRenewables(int count, int task_count_min) {
    MakeCluster(count);
    Renewables groups(count);
    RunAll(count, [&](int i) {
      auto group = RenewableGroup::Join(RenewableOptions(i, task_count_min),
                                        Network::Grpc(), Clock::Real());
      ASSERT_OK(group);
      groups[i] = *std::move(group);
    });
    return groups;
  }

  // Ends a task as a signal does.
  static void End(std::unique_ptr<RenewableGroup>* group) {
    (*group)->Fail(WithExitCode(absl::CancelledError("stopped by a signal"),
                                ExitCode::kTerminated));
    *group = nullptr;
  }

  // Blocks until the group has ended, and returns the error.
  static absl::Status AwaitEnd(RenewableGroup& group) {
    const auto current = group.current();
    absl::Status status;
    while (status.ok()) {
      int64_t sum = 1;
      status = current->communicator(0)->AllReduce(
          ReduceOp::kSum, {DType::kInt64, 1, &sum}, {.name = "count"});
    }
    return status;
  }

  static void RenewAll(const std::vector<RenewableGroup*>& groups) {
    RunAll(static_cast<int>(groups.size()), [&](int i) {
      EXPECT_FALSE(AwaitEnd(*groups[i]).ok());
      EXPECT_OK(groups[i]->Renew());
    });
  }

  static void ExpectSum(const std::vector<RenewableGroup*>& groups) {
    RunAll(static_cast<int>(groups.size()), [&](int i) {
      const auto group = groups[i]->current();
      int64_t sum = 1;
      EXPECT_OK(group->communicator(0)->AllReduce(
          ReduceOp::kSum, {DType::kInt64, 1, &sum}, {.name = "count"}));
      EXPECT_EQ(sum, static_cast<int64_t>(groups.size()));
    });
  }

  static void LeaveAll(const std::vector<RenewableGroup*>& groups) {
    RunAll(static_cast<int>(groups.size()), [&](int i) {
      EXPECT_OK(groups[i]->Leave(absl::OkStatus(), kPatience));
    });
  }
};

TEST_F(RenewableGroupTest, IsFormedAgainWithoutTheFirstTask) {
  Renewables groups = FormRenewables(3, 1);
  End(&groups[0]);
  RenewAll({groups[1].get(), groups[2].get()});
  EXPECT_EQ(groups[1]->view().number, 1u);
  EXPECT_EQ(groups[1]->current()->task_rank(), 0);
  EXPECT_EQ(groups[2]->current()->task_rank(), 1);
  ExpectSum({groups[1].get(), groups[2].get()});
  LeaveAll({groups[1].get(), groups[2].get()});
}

TEST_F(RenewableGroupTest, ShrinksToOneTask) {
  Renewables groups = FormRenewables(3, 1);
  End(&groups[2]);
  RenewAll({groups[0].get(), groups[1].get()});
  End(&groups[0]);
  RenewAll({groups[1].get()});
  EXPECT_EQ(groups[1]->view().number, 2u);
  ExpectSum({groups[1].get()});
  LeaveAll({groups[1].get()});
}

TEST_F(RenewableGroupTest, ATaskThatASignalEndsIsALoss) {
  Renewables groups = FormRenewables(3, 1);
  groups[1]->Fail(WithExitCode(absl::CancelledError("stopped by a signal"),
                               ExitCode::kTerminated));
  RenewAll({groups[0].get(), groups[2].get()});
  ExpectSum({groups[0].get(), groups[2].get()});
  // The task that has failed does not continue.
  EXPECT_THAT(groups[1]->Renew(), StatusIs(absl::StatusCode::kCancelled));
  LeaveAll({groups[0].get(), groups[2].get()});
}

TEST_F(RenewableGroupTest, AnErrorOfATaskIsNoLoss) {
  Renewables groups = FormRenewables(2, 1);
  groups[1]->Fail(absl::InvalidArgumentError("no such column"));
  EXPECT_FALSE(AwaitEnd(*groups[0]).ok());
  EXPECT_THAT(groups[0]->Renew(), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("no such column")));
}

TEST_F(RenewableGroupTest, EndsBelowTheMinimum) {
  Renewables groups = FormRenewables(2, 2);
  End(&groups[0]);
  EXPECT_FALSE(AwaitEnd(*groups[1]).ok());
  const absl::Status status = groups[1]->Renew();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("1 tasks are left, and the group needs 2")));
  EXPECT_EQ(GroupErrorKindOf(status), GroupErrorKind::kPeerLost);
}

TEST_F(RenewableGroupTest, ATaskOutsideOfTheNextViewEnds) {
  Renewables groups = FormRenewables(3, 1);
  // Task 0 is taken for lost, although it runs.
  RenewableGroup* const left = groups[0].get();
  const absl::Status loss = WithGroupErrorKind(
      absl::UnavailableError("worker 0 is lost"), GroupErrorKind::kPeerLost);
  const ViewClaims claims(
      Disk::Real(),
      JoinRequests::CurrentFolder(Disk::Real(), RenewableOptions(0, 1).run_dir)
          .value());
  GroupView next = left->view();
  next.number = 1;
  next.members.erase(next.members.begin());
  next.claimed_by = {TaskType::kWorker, 1};
  ASSERT_OK(claims.Claim(next));
  groups[1]->Fail(loss);
  RunAll(3, [&](int i) {
    EXPECT_FALSE(AwaitEnd(*groups[i]).ok());
    const absl::Status renewed = groups[i]->Renew();
    if (i > 0) {
      EXPECT_OK(renewed);
      return;
    }
    EXPECT_THAT(renewed, StatusIs(absl::StatusCode::kAborted,
                                  HasSubstr("continue without this one")));
    EXPECT_EQ(GroupErrorKindOf(renewed), GroupErrorKind::kLeftBehind);
  });
  LeaveAll({groups[1].get(), groups[2].get()});
}

TEST_F(RenewableGroupTest, TakesInAProcessThatJoins) {
  Renewables groups = FormRenewables(3, 1);
  End(&groups[1]);
  RenewAll({groups[0].get(), groups[2].get()});
  proto::GroupStart start;
  start.add_results("agreed");
  ASSERT_OK(groups[0]->WriteStart(start));
  // A new process of task 1.
  auto joined = RenewableGroup::Join(RenewableOptions(1, 1), Network::Grpc(),
                                     Clock::Real());
  ASSERT_OK(joined);
  groups[1] = *std::move(joined);
  ASSERT_TRUE(groups[1]->is_joining());
  ASSERT_OK_AND_ASSIGN(const proto::GroupStart read, groups[1]->AwaitStart());
  EXPECT_THAT(read.results(), testing::ElementsAre("agreed"));
  EXPECT_FALSE(groups[0]->has_joiners());
  std::thread joiner([&] { EXPECT_OK(groups[1]->AwaitAdmission()); });
  ASSERT_TRUE(AwaitTrue([&] { return groups[0]->has_joiners(); }));
  EXPECT_OK(groups[0]->ClaimWithJoiners());
  RunAll(2, [&](int i) { EXPECT_OK(groups[2 * i]->Advance()); });
  joiner.join();
  EXPECT_FALSE(groups[1]->is_joining());
  EXPECT_EQ(groups[1]->current()->task_rank(), 1);
  const std::vector<RenewableGroup*> all = {groups[0].get(), groups[1].get(),
                                            groups[2].get()};
  ExpectSum(all);
  LeaveAll(all);
}

TEST_F(RenewableGroupTest, TheFirstTaskIsDoneAlthoughAnotherIsLostAtTheEnd) {
  Renewables groups = FormRenewables(2, 1);
  End(&groups[1]);
  EXPECT_FALSE(AwaitEnd(*groups[0]).ok());
  EXPECT_OK(groups[0]->Leave(absl::OkStatus(), kPatience));
  groups = FormRenewables(2, 1);
  End(&groups[0]);
  EXPECT_FALSE(AwaitEnd(*groups[1]).ok());
  EXPECT_FALSE(groups[1]->Leave(absl::OkStatus(), kPatience).ok());
}

TEST_F(RenewableGroupTest, NeedsARunDirectoryAndEnoughTasks) {
  MakeCluster(2);
  RenewableGroup::Options options = RenewableOptions(0, 3);
  const auto join = [&] {
    return RenewableGroup::Join(options, Network::Grpc(), Clock::Real())
        .status();
  };
  EXPECT_THAT(join(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("cannot keep 3 of them")));
  options.task_count_min = 1;
  options.run_dir.clear();
  EXPECT_THAT(join(), StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("--run_dir")));
}

}  // namespace
}  // namespace muster
