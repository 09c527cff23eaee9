#include "common/net/cluster/missing_tasks.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
constexpr TaskId kWorker1 = {TaskType::kWorker, 1};

class MissingTasksTest : public testing::Test {
 protected:
  MissingTasksTest()
      : cluster_(*ClusterSpec::FromLists(
            {{TaskType::kWorker, {"localhost:20000", "localhost:20001"}}})),
        missing_(cluster_, cluster_.Tasks(TaskType::kWorker), &clock_) {}

  // Calls Await() on this thread. Time advances by a second at each report, and
  // otherwise only as far as the report needs.
  absl::Status AwaitWhileTimePasses(absl::Duration timeout,
                                    std::vector<std::string>* lines) {
    const absl::Time deadline = clock_.Now() + timeout;
    std::thread time([this, deadline] {
      while (clock_.Now() < deadline) clock_.Advance(absl::Seconds(1));
    });
    const absl::Status status = missing_.Await(
        deadline,
        [lines](absl::string_view line) { lines->emplace_back(line); });
    time.join();
    return status;
  }

  SimulatedClock clock_;
  const ClusterSpec cluster_;
  MissingTasks missing_;
};

TEST_F(MissingTasksTest, DoesNotWaitIfNoTaskIsMissing) {
  missing_.MarkPresent(kWorker0);
  missing_.MarkPresent(kWorker1);
  EXPECT_OK(missing_.Await(clock_.Now(), [](absl::string_view) { FAIL(); }));
  EXPECT_THAT(missing_.tasks(), IsEmpty());
}

TEST_F(MissingTasksTest, NamesMissingTasksAndReasons) {
  missing_.MarkPresent(kWorker0);
  missing_.MarkMissing(kWorker1, "connection refused");
  EXPECT_THAT(missing_.tasks(), ElementsAre(kWorker1));
  EXPECT_EQ(missing_.Describe(),
            "worker 1 (localhost:20001: connection refused)");
}

TEST_F(MissingTasksTest, ReportsEveryIntervalWithTheTimeWaited) {
  missing_.MarkPresent(kWorker0);
  missing_.MarkMissing(kWorker1, "connection refused");
  clock_.Advance(absl::Seconds(5));
  std::string first_line;
  EXPECT_OK(missing_.Await(clock_.Now() + absl::Seconds(1),
                           [&](absl::string_view line) {
                             first_line = std::string(line);
                             missing_.MarkPresent(kWorker1);
                           }));
  EXPECT_EQ(first_line,
            "waiting for worker 1 (localhost:20001: connection refused), 5 s");
}

TEST_F(MissingTasksTest, DeadlineErrorNamesAllTasks) {
  missing_.MarkMissing(kWorker0, "no such host");
  std::vector<std::string> lines;
  EXPECT_THAT(
      AwaitWhileTimePasses(absl::Seconds(60), &lines),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               HasSubstr("waiting for worker 0 (localhost:20000: no such host),"
                         " worker 1 (localhost:20001: no answer yet); ")));
}

// A clock on which each wait reaches its deadline at once.
class SkippingClock final : public Clock {
 public:
  absl::Time Now() override { return now_; }
  bool AwaitWithDeadline(absl::Mutex*, const absl::Condition& condition,
                         absl::Time deadline) override {
    if (condition.Eval()) return true;
    now_ = std::max(now_, deadline);
    return false;
  }

 private:
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(MissingTasksTest, IntervalsBetweenReportsGrow) {
  SkippingClock clock;
  MissingTasks missing(cluster_, {kWorker0}, &clock);
  std::vector<std::string> waits;
  EXPECT_THAT(
      missing.Await(clock.Now() + absl::Seconds(270),
                    [&](absl::string_view line) {
                      waits.emplace_back(line.substr(line.rfind(',') + 2));
                    }),
      StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(waits, ElementsAre("5 s", "10 s", "20 s", "40 s", "80 s", "140 s",
                                 "200 s", "260 s"));
}

TEST_F(MissingTasksTest, ReturningTaskEndsTheWait) {
  missing_.MarkPresent(kWorker0);
  std::thread dialler([this] { missing_.MarkPresent(kWorker1); });
  EXPECT_OK(missing_.Await(absl::InfiniteFuture(), [](absl::string_view) {}));
  dialler.join();
}

TEST_F(MissingTasksTest, PresentTaskMayBecomeMissingAgain) {
  missing_.MarkPresent(kWorker0);
  missing_.MarkPresent(kWorker1);
  missing_.MarkMissing(kWorker0, "socket closed");
  missing_.MarkMissing(kWorker0, "connection refused");
  EXPECT_THAT(missing_.tasks(), ElementsAre(kWorker0));
  missing_.MarkPresent(kWorker0);
  EXPECT_OK(missing_.Await(clock_.Now(), [](absl::string_view) {}));
}

TEST_F(MissingTasksTest, FailureEndsTheWaitAndTheFirstIsKept) {
  missing_.Fail(absl::FailedPreconditionError("disagree"));
  missing_.Fail(absl::CancelledError("shutdown"));
  EXPECT_THAT(missing_.Await(absl::InfiniteFuture(), [](absl::string_view) {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "disagree"));
}

TEST_F(MissingTasksTest, SaysThatItWaitsForANameRatherThanAProcess) {
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  NameLookup names(
      [](const std::string&) { return "Name or service not known"; },
      Clock::Real());
  const ClusterSpec cluster =
      *ClusterSpec::FromLists({{TaskType::kPs, {"h1:1"}}});
  MissingTasks missing(cluster, cluster.Members(), &clock_, {.names = &names});
  const auto is_named = [&missing] {
    return missing.Describe() ==
           "ps 0 (h1:1: the name h1 is not known: Name or service not known)";
  };
  const absl::Time give_up = Clock::Real()->Now() + absl::Seconds(30);
  while (!is_named() && Clock::Real()->Now() < give_up) {
    mutex.AwaitWithTimeout(absl::Condition(&is_named), absl::Milliseconds(1));
  }
  EXPECT_TRUE(is_named()) << missing.Describe();
}

TEST_F(MissingTasksTest, WaitsForTheWorkersNeededAndAllServers) {
  const ClusterSpec cluster = *ClusterSpec::FromLists(
      {{TaskType::kWorker, {"h:1", "h:2", "h:3"}}, {TaskType::kPs, {"h:4"}}});
  MissingTasks missing(cluster, cluster.Members(), &clock_,
                       {.worker_count_min = 1});
  const auto await = [&] {
    return missing.Await(clock_.Now(), [](absl::string_view) {});
  };
  missing.MarkPresent({TaskType::kWorker, 2});
  EXPECT_EQ(await().code(), absl::StatusCode::kDeadlineExceeded);
  missing.MarkPresent({TaskType::kPs, 0});
  EXPECT_OK(await());
  missing.MarkMissing({TaskType::kWorker, 2}, "it has crashed");
  EXPECT_EQ(await().code(), absl::StatusCode::kDeadlineExceeded);
  missing.MarkPresent(kWorker0);
  missing.MarkPresent(kWorker1);
  EXPECT_OK(await());
}

TEST_F(MissingTasksTest, EndsWhenAWorkerAndAServerAreTaken) {
  const ClusterSpec cluster = *ClusterSpec::FromLists(
      {{TaskType::kWorker, {"h:1", "h:2"}}, {TaskType::kPs, {"h:3"}}});
  MissingTasks missing(cluster, cluster.Members(), &clock_);
  const auto await = [&] {
    return missing.Await(clock_.Now(), [](absl::string_view) {});
  };
  constexpr TaskId kServer = {TaskType::kPs, 0};
  const absl::Status by_a = absl::AlreadyExistsError("A has worker 1");
  const absl::Status by_b = absl::AlreadyExistsError("B has ps 0");
  missing.MarkServesAnother(kWorker1, by_a);
  missing.MarkMissing(kWorker1, "A has disconnected");
  missing.MarkServesAnother(kServer, by_b);
  EXPECT_EQ(await().code(), absl::StatusCode::kDeadlineExceeded);
  missing.MarkPresent(kServer);
  missing.MarkServesAnother(kServer, by_b);
  missing.MarkServesAnother(kWorker1, by_a);
  EXPECT_EQ(await().code(), absl::StatusCode::kDeadlineExceeded);
  missing.MarkMissing(kServer, "it has crashed");
  missing.MarkServesAnother(kServer, by_b);
  EXPECT_EQ(await(), by_a);
}

TEST_F(MissingTasksTest, EndsWhenItKeepsAWorkerFromTheOtherCoordinator) {
  const ClusterSpec cluster = *ClusterSpec::FromLists(
      {{TaskType::kWorker, {"h:1", "h:2"}}, {TaskType::kPs, {"h:3"}}});
  MissingTasks missing(cluster, cluster.Members(), &clock_);
  const auto await = [&] {
    return missing.Await(clock_.Now(), [](absl::string_view) {});
  };
  const absl::Status taken = absl::AlreadyExistsError("B has ps 0");
  missing.MarkServesAnother({TaskType::kPs, 0}, taken);
  EXPECT_EQ(await().code(), absl::StatusCode::kDeadlineExceeded);
  missing.MarkPresent(kWorker1);
  EXPECT_EQ(await(), taken);
}

TEST_F(MissingTasksTest, CountsTheRestOfALongList) {
  const ClusterSpec cluster =
      *ClusterSpec::FromLists({{TaskType::kPs, {"h:1", "h:2", "h:3", "h:4"}}});
  MissingTasks missing(cluster, cluster.Members(), &clock_,
                       {.named_tasks_max = 1});
  clock_.Advance(absl::Seconds(5));
  std::string line;
  EXPECT_THAT(
      missing.Await(clock_.Now() + absl::Seconds(1),
                    [&](absl::string_view text) {
                      line = std::string(text);
                      clock_.Advance(absl::Seconds(1));
                    }),
      StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("ps 3 (h:4")));
  EXPECT_EQ(line, "waiting for ps 0 (h:1: no answer yet) and 3 more, 5 s");
}

}  // namespace
}  // namespace muster
