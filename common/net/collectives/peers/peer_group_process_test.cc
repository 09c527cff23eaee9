// Kills and stops tasks that are real processes. The test process is not a task
// of their cluster. It only reads the survivors' output.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/peers/group_error.h"
#include "common/net/process/child_process.h"
#include "common/net/process/port_reservation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kProgram[] = "common/net/collectives/peers/peer_program";
constexpr absl::Duration kPatience = absl::Seconds(60);
// Slack for a loaded machine. A task that detects the loss by another timeout
// than the heartbeat's (collectives wait for minutes) exceeds it.
constexpr absl::Duration kDetectionMax = absl::Seconds(3);
constexpr absl::Duration kSlack = absl::Seconds(7);

// A task and its output so far.
class Task {
 public:
  explicit Task(const std::vector<std::string>& arguments)
      : process_(ChildProcess::Start({.arguments = arguments}).value()) {}

  void SendSignal(int signal) { kill(process_->pid(), signal); }

  // Returns the next line that contains `text`. If there is none before the
  // process ends or the deadline, returns a message with all lines that were
  // read.
  std::string AwaitLine(const std::string& text) {
    const absl::Time deadline = Clock::Real()->Now() + kPatience;
    while (true) {
      for (size_t end = unread_.find('\n'); end != std::string::npos;
           end = unread_.find('\n')) {
        const std::string line = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        if (absl::StrContains(line, text)) return line;
        read_ += line + "\n";
      }
      pollfd waited = {process_->stdout_fd(), POLLIN, 0};
      const absl::Duration left = deadline - Clock::Real()->Now();
      if (left <= absl::ZeroDuration() ||
          poll(&waited, 1, static_cast<int>(absl::ToInt64Milliseconds(left))) <=
              0) {
        return absl::StrCat("no such line in time: ", read_);
      }
      char bytes[4096];
      const ssize_t count = read(process_->stdout_fd(), bytes, sizeof(bytes));
      if (count <= 0) {
        const auto end = process_->Wait(kPatience);
        return absl::StrCat("no such line: ", read_, "; it ",
                            end.has_value() ? end->ToString() : "runs on");
      }
      unread_.append(bytes, count);
    }
  }

 private:
  const std::unique_ptr<ChildProcess> process_;
  std::string unread_;
  std::string read_;
};

class PeerGroupProcessTest : public testing::TestWithParam<std::string> {
 protected:
  // Starts three tasks and waits until they run collectives.
  void SetUp() override {
    constexpr int kTaskCount = 3;
    for (int i = 0; i < kTaskCount; ++i) {
      ports_.push_back(PortReservation::Create().value());
      addresses_.push_back(absl::StrCat("localhost:", ports_.back()->port()));
    }
    for (int i = 0; i < kTaskCount; ++i) {
      std::vector<std::string> arguments = {kProgram, absl::StrCat(i),
                                            GetParam()};
      arguments.insert(arguments.end(), addresses_.begin(), addresses_.end());
      tasks_.push_back(std::make_unique<Task>(arguments));
    }
    for (const auto& task : tasks_) {
      ASSERT_EQ(task->AwaitLine("reduced"), "reduced");
    }
  }

  void ExpectNamedBySurvivors(int victim, absl::Time since) {
    for (int i = 0; i < static_cast<int>(tasks_.size()); ++i) {
      if (i == victim) continue;
      EXPECT_THAT(
          tasks_[i]->AwaitLine("ended with kind"),
          AllOf(HasSubstr(absl::StrCat(
                    "kind ", static_cast<int>(GroupErrorKind::kPeerLost))),
                HasSubstr("UNAVAILABLE"),
                HasSubstr("all-reduce of dense/kernel was ended"),
                HasSubstr(absl::StrCat("worker ", victim, " (",
                                       addresses_[victim], ", incarnation ")),
                HasSubstr("is lost"), HasSubstr("last heard of")))
          << "worker " << i;
    }
    const absl::Duration took = Clock::Real()->Now() - since;
    EXPECT_LT(took, kDetectionMax + kSlack);
    RecordProperty("detected_ms",
                   static_cast<int>(absl::ToInt64Milliseconds(took)));
  }

  std::vector<std::unique_ptr<PortReservation>> ports_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Task>> tasks_;
};

TEST_P(PeerGroupProcessTest, AKilledMemberIsNamedByTheOthers) {
  const absl::Time since = Clock::Real()->Now();
  tasks_[1]->SendSignal(SIGKILL);
  ExpectNamedBySurvivors(1, since);
}

TEST_P(PeerGroupProcessTest, AKilledLeaderIsNamedByTheOthers) {
  const absl::Time since = Clock::Real()->Now();
  tasks_[0]->SendSignal(SIGKILL);
  ExpectNamedBySurvivors(0, since);
}

TEST_P(PeerGroupProcessTest, AStoppedMemberIsNamedAndGetsTheError) {
  const absl::Time since = Clock::Real()->Now();
  tasks_[2]->SendSignal(SIGSTOP);
  ExpectNamedBySurvivors(2, since);
  tasks_[2]->SendSignal(SIGCONT);
  EXPECT_THAT(tasks_[2]->AwaitLine("ended with kind"),
              HasSubstr("UNAVAILABLE"));
}

INSTANTIATE_TEST_SUITE_P(Transports, PeerGroupProcessTest,
                         testing::Values("shm", "raw", "grpc"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace muster
