// Real processes behind links that deliver slowly or that break in the middle
// of messages. The program checks that every step is applied exactly once.
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"
#include "tests/cluster/faulty_link.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr TaskId kChief = ClusterUnderTest::kChief;
constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kPs1 = {TaskType::kPs, 1};

class BrokenLinksTest : public testing::Test {
 protected:
  BrokenLinksTest()
      : name_(testing::UnitTest::GetInstance()->current_test_info()->name()),
        cluster_(*ClusterUnderTest::Create(name_, 2, 2)),
        end_file_(absl::StrCat(testing::TempDir(), "/end_of_", name_)) {}

  ProcessUnderTest& process(TaskId task) { return cluster_->process(task); }

  FaultyLink* Link(TaskId task) {
    const absl::StatusOr<FaultyLink*> link = cluster_->Link(task);
    EXPECT_OK(link);
    return link.value_or(nullptr);
  }

  // Starts the program with all traffic over the links.
  void StartCounting() {
    cluster_->set_program("tests/faults/counting_program");
    ASSERT_OK(cluster_->StartAll(
        {"--shared_memory=false", "--coordinator_timeout=60s", "--set",
         absl::StrCat("until=", end_file_), "--set", "heartbeat_timeout=5s"}));
    AwaitRounds(1);
  }

  void AwaitRounds(int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_OK(process(kChief).AwaitLine("through: "));
    }
  }

  // Waits until CutAfter() has reset all its connections.
  void AwaitCuts(const FaultyLink& link) {
    while (link.pending_cut_count() > 0) {
      ASSERT_OK(process(kChief).AwaitLine("through: "));
    }
  }

  void ExpectEveryClosureCountedOnce() {
    std::ofstream(end_file_).put('1');
    for (const TaskId& task : cluster_->cluster().Members()) {
      ASSERT_OK_AND_ASSIGN(const ProcessEnd end, process(task).AwaitEnd());
      ASSERT_EQ(end.ShellCode(), 0) << task << " wrote:\n"
                                    << process(task).output();
    }
    EXPECT_THAT(process(kChief).output(),
                HasSubstr("every closure counted once: "));
  }

  const std::string name_;
  const std::unique_ptr<ClusterUnderTest> cluster_;
  const std::string end_file_;
};

TEST_F(BrokenLinksTest, LatencyAndJitterLoseNoTask) {
  FaultyLink* const worker = Link(kWorker0);
  FaultyLink* const server = Link(kPs1);
  StartCounting();
  worker->Delay(absl::Milliseconds(200));
  server->Delay(absl::Milliseconds(50));
  AwaitRounds(2);
  worker->Delay(absl::ZeroDuration());
  server->Delay(absl::ZeroDuration());
  ExpectEveryClosureCountedOnce();
  EXPECT_THAT(process(kChief).output(), Not(HasSubstr("is lost")));
}

// Byte counts from the first bytes of a connection to the middle of its
// traffic. Some of them drop the response to an update that was applied.
const std::vector<int64_t>& Cuts() {
  static const auto* const cuts = [] {
    auto* const counts =
        new std::vector<int64_t>{1, 60, 400, 700, 1500, 4000, 20000};
    for (int64_t i = 0; i < 40; ++i) counts->push_back(3000 + 331 * i);
    return counts;
  }();
  return *cuts;
}

TEST_F(BrokenLinksTest, ClosuresAreCountedOnceWhenMessagesToAWorkerAreCut) {
  FaultyLink* const link = Link(kWorker0);
  StartCounting();
  link->CutAfter(Cuts());
  AwaitCuts(*link);
  ExpectEveryClosureCountedOnce();
}

TEST_F(BrokenLinksTest, ClosuresAreCountedOnceWhenMessagesToAServerAreCut) {
  FaultyLink* const link = Link(kPs1);
  StartCounting();
  link->CutAfter(Cuts());
  AwaitCuts(*link);
  ExpectEveryClosureCountedOnce();
}

}  // namespace
}  // namespace muster
