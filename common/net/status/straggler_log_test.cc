#include "common/net/status/straggler_log.h"

#include <vector>

#include "absl/time/time.h"
#include "common/net/status/status_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr absl::Time kStart = absl::UnixEpoch();

TaskStatus Worker(const char* name, absl::Duration closure_time) {
  TaskStatus task;
  task.task = name;
  task.address = "host:1";
  task.state = TaskStatus::State::kConnected;
  task.closure_time = closure_time;
  return task;
}

std::vector<TaskStatus> Tasks(absl::Duration time_of_worker_1) {
  std::vector<TaskStatus> tasks = {Worker("worker 0", absl::Milliseconds(20)),
                                   Worker("worker 1", time_of_worker_1)};
  MarkStragglers(&tasks);
  return tasks;
}

const std::vector<TaskStatus> kSlow = Tasks(absl::Milliseconds(660));
const std::vector<TaskStatus> kEven = Tasks(absl::Milliseconds(21));

class StragglerLogTest : public testing::Test {
 protected:
  // Adds a reading `seconds` after the start, and returns the lines to log.
  std::vector<std::string> Read(const std::vector<TaskStatus>& tasks,
                                int seconds) {
    return memory_.Update(tasks, kStart + absl::Seconds(seconds));
  }

  internal::StragglerMemory memory_;
};

TEST_F(StragglerLogTest, NamesASlowWorkerWithItsRatio) {
  EXPECT_THAT(Read(kSlow, 0), IsEmpty());
  EXPECT_THAT(Read(kSlow, 5), IsEmpty());
  EXPECT_THAT(
      Read(kSlow, 10),
      ElementsAre(AllOf(HasSubstr("worker 1 (host:1) is slow"),
                        HasSubstr("its closures take 660ms, 33.0 times"))));
}

TEST_F(StragglerLogTest, AShortDelayIsNotLogged) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(Read(kSlow, 3 * i), IsEmpty());
    EXPECT_THAT(Read(kSlow, 3 * i + 1), IsEmpty());
    EXPECT_THAT(Read(kEven, 3 * i + 2), IsEmpty());
  }
}

TEST_F(StragglerLogTest, RepeatsTheLineEveryMinuteAndLogsTheEnd) {
  int line_count = 0;
  for (int second = 0; second < 180; second += 5) {
    line_count += static_cast<int>(Read(kSlow, second).size());
  }
  EXPECT_EQ(line_count, 3);
  EXPECT_THAT(Read(kEven, 180),
              ElementsAre("worker 1 (host:1) is no longer slow"));
  EXPECT_THAT(Read(kEven, 185), IsEmpty());
}

TEST_F(StragglerLogTest, ATaskThatOthersWaitForIsNamedWithTheShare) {
  std::vector<TaskStatus> tasks(1);
  tasks[0].task = "worker 1";
  tasks[0].state = TaskStatus::State::kConnected;
  tasks[0].waited_share = 0.75;
  MarkStragglers(&tasks);
  Read(tasks, 0);
  Read(tasks, 5);
  EXPECT_THAT(
      Read(tasks, 10),
      ElementsAre(HasSubstr("worker 1 is slow: this task waits for it 75%")));
}

}  // namespace
}  // namespace muster
