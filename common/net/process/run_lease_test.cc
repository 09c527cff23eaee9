#include "common/net/process/run_lease.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/testing/s3_server.h"
#include "common/net/process/exit_code.h"
#include "common/net/process/host_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Kind = RunLease::Vacancy::Kind;
using Lease = absl::StatusOr<std::unique_ptr<RunLease>>;

HostProcess Elsewhere() {
  return {.host = "h7",
          .pid = 4711,
          .start_ticks = 1,
          .boot_id = "another",
          .pid_namespace = "pid:[1]"};
}

class RunLeaseTest : public testing::Test {
 protected:
  RunLeaseTest() : run_dir_(absl::StrCat(testing::TempDir(), "/run")) {
    std::filesystem::remove_all(run_dir_);
  }

  RunLease::Options Options(uint64_t incarnation) {
    return {.run_dir = run_dir_,
            .task = "chief 0",
            .incarnation = incarnation,
            .clock = &clock_};
  }

  // Takes a lease while simulated time advances in steps. `meanwhile` runs once
  // per step.
  template <typename Meanwhile>
  Lease TakeAsTimePasses(RunLease::Options options, Meanwhile meanwhile) {
    absl::Notification is_done;
    Lease lease = absl::UnknownError("not taken");
    std::thread taker([&] {
      lease = RunLease::Take(std::move(options));
      is_done.Notify();
    });
    EXPECT_TRUE(AwaitTrue([&] {
      meanwhile();
      clock_.Advance(absl::Milliseconds(500));
      return is_done.HasBeenNotified();
    }));
    taker.join();
    return lease;
  }
  Lease TakeAsTimePasses(RunLease::Options options) {
    return TakeAsTimePasses(std::move(options), [] {});
  }

  // Waits for an owner as TakeAsTimePasses() does.
  template <typename Meanwhile>
  RunLease::Vacancy AwaitVacancyAsTimePasses(const RunLease::Options& options,
                                             Meanwhile meanwhile) {
    absl::Notification is_done;
    RunLease::Vacancy vacancy;
    std::thread waiter([&] {
      vacancy = *RunLease::AwaitVacancy(options, [] { return false; });
      is_done.Notify();
    });
    EXPECT_TRUE(AwaitTrue([&] {
      meanwhile();
      clock_.Advance(absl::Milliseconds(500));
      return is_done.HasBeenNotified();
    }));
    waiter.join();
    return vacancy;
  }

  std::string Path() const { return RunLeasePath(run_dir_); }
  std::string Content() const {
    std::stringstream text;
    text << std::ifstream(Path()).rdbuf();
    return text.str();
  }
  void Write(const std::string& text) const {
    std::filesystem::create_directories(run_dir_);
    ASSERT_OK(ReplaceFile(Disk::Real(), Path(), text));
  }
  // Writes the lease of `process`, which does not renew it.
  void LeaveLeaseOf(const HostProcess& process) {
    RunLease::Options options = Options(99);
    options.process = process;
    const Lease lease = RunLease::Take(std::move(options));
    ASSERT_OK(lease);
    left_ = Content();
  }

  // Writes what LeaveLeaseOf() has left, renewed once more.
  void WriteRenewal() {
    Write(absl::StrReplaceAll(
        left_,
        {{"incarnation", absl::StrCat("renewal_count: ", ++renewal_count_,
                                      "\nincarnation")}}));
  }

  const std::string run_dir_;
  SimulatedClock clock_;
  int renewal_count_ = 0;
  std::string left_;
};

TEST_F(RunLeaseTest, NamesItsOwnerAndIsRemovedAtTheEnd) {
  {
    const Lease lease = RunLease::Take(Options(0x1234));
    ASSERT_OK(lease);
    EXPECT_OK((*lease)->status());
    EXPECT_THAT(Content(), AllOf(HasSubstr(absl::StrCat("pid: ", getpid())),
                                 HasSubstr("task: \"chief 0\""),
                                 HasSubstr("0000000000001234")));
  }
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST_F(RunLeaseTest, ARunningOwnerIsNamed) {
  const Lease first = RunLease::Take(Options(1));
  ASSERT_OK(first);
  const Lease second = TakeAsTimePasses(Options(2));
  EXPECT_THAT(second.status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(ThisProcess().ToString()),
                             HasSubstr("chief 0, incarnation 0000000000000001"),
                             HasSubstr(run_dir_))));
  EXPECT_EQ(ExitCodeOf(second.status()), ExitCode::kUsage);
  EXPECT_OK((*first)->status());
  EXPECT_THAT(CheckRunDirIsFree(run_dir_),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(RunLeaseTest, NoOwnerIsNotWaitedFor) {
  const auto vacancy = RunLease::AwaitVacancy(Options(1), [] { return false; });
  ASSERT_TRUE(vacancy.has_value());
  EXPECT_EQ(vacancy->kind, Kind::kNoOwner);
}

TEST_F(RunLeaseTest, AWaitForTheOwnerCanBeStopped) {
  const Lease first = RunLease::Take(Options(1));
  ASSERT_OK(first);
  EXPECT_FALSE(
      RunLease::AwaitVacancy(Options(2), [] { return true; }).has_value());
}

TEST_F(RunLeaseTest, WaitsUntilAnOwnerElsewhereDoesNotRenewItsLease) {
  LeaveLeaseOf(Elsewhere());
  Write(left_);
  const absl::Time start = clock_.Now();
  RunLease::Options options = Options(2);
  const RunLease::Vacancy vacancy = AwaitVacancyAsTimePasses(options, [&] {
    // The lease time alone passes three times.
    if (clock_.Now() - start < absl::Seconds(100)) WriteRenewal();
  });
  const absl::Time end = clock_.Now();
  EXPECT_EQ(vacancy.kind, Kind::kLost);
  EXPECT_GE(end - start, absl::Seconds(125));
  // The lease is not waited for once more.
  options.stale_lease = vacancy.lease;
  options.lease_time = absl::Hours(10);
  EXPECT_EQ(AwaitVacancyAsTimePasses(options, [] {}).kind, Kind::kNoOwner);
  EXPECT_OK(TakeAsTimePasses(options));
  EXPECT_LT(clock_.Now() - end, absl::Hours(10));
}

TEST_F(RunLeaseTest, AnOwnerElsewhereThatRemovesItsLeaseHasEnded) {
  LeaveLeaseOf(Elsewhere());
  Write(left_);
  const absl::Time start = clock_.Now();
  RunLease::Options options = Options(2);
  options.lease_time = absl::Hours(10);
  AwaitVacancyAsTimePasses(options, [&] {
    if (clock_.Now() - start < absl::Seconds(5)) return;
    std::filesystem::remove(Path());
  });
  EXPECT_LT(clock_.Now() - start, absl::Hours(10));
}

TEST_F(RunLeaseTest, AKilledOwnerOfThisMachineIsNotWaitedFor) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  LeaveLeaseOf(ProcessOfPid(child));
  Write(left_);
  EXPECT_THAT(TakeAsTimePasses(Options(2)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_OK(CheckRunDirIsFree(run_dir_));
  // The simulated clock does not advance, so Take() does not wait.
  EXPECT_OK(RunLease::Take(Options(2)));
}

TEST_F(RunLeaseTest, AnOwnerElsewhereHasTheLeaseTime) {
  LeaveLeaseOf(Elsewhere());
  Write(left_);
  EXPECT_OK(CheckRunDirIsFree(run_dir_));
  const absl::Time start = clock_.Now();
  EXPECT_OK(TakeAsTimePasses(Options(2)));
  EXPECT_GE(clock_.Now() - start, absl::Seconds(30));
}

TEST_F(RunLeaseTest, AnOwnerElsewhereThatRenewsIsNamed) {
  LeaveLeaseOf(Elsewhere());
  Write(left_);
  const absl::Time start = clock_.Now();
  RunLease::Options options = Options(2);
  options.lease_time = absl::Hours(10);
  const Lease lease = TakeAsTimePasses(std::move(options), [&] {
    if (clock_.Now() - start > absl::Seconds(10)) WriteRenewal();
  });
  EXPECT_THAT(lease.status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("pid 4711 on host h7")));
  EXPECT_LT(clock_.Now() - start, absl::Hours(10));
}

TEST_F(RunLeaseTest, AnOwnerElsewhereThatEndsIsNotWaitedFor) {
  LeaveLeaseOf(Elsewhere());
  Write(left_);
  const absl::Time start = clock_.Now();
  RunLease::Options options = Options(2);
  options.lease_time = absl::Hours(10);
  EXPECT_OK(TakeAsTimePasses(std::move(options), [&] {
    if (clock_.Now() - start > absl::Seconds(5)) {
      std::filesystem::remove(Path());
    }
  }));
  EXPECT_LT(clock_.Now() - start, absl::Hours(10));
}

TEST_F(RunLeaseTest, ADamagedLeaseHasTheLeaseTime) {
  Write("not a lease {");
  const absl::Time start = clock_.Now();
  EXPECT_OK(TakeAsTimePasses(Options(2)));
  EXPECT_GE(clock_.Now() - start, absl::Seconds(30));
}

TEST_F(RunLeaseTest, IsRenewed) {
  const Lease lease = RunLease::Take(Options(1));
  ASSERT_OK(lease);
  const std::string first = Content();
  ASSERT_TRUE(AwaitTrue([&] {
    clock_.Advance(absl::Seconds(1));
    return Content() != first;
  }));
  EXPECT_THAT(Content(), HasSubstr(absl::StrCat("pid: ", getpid())));
}

TEST_F(RunLeaseTest, AnOwnerNoticesThatItHasLostTheLease) {
  absl::Notification is_lost;
  absl::Status why;
  RunLease::Options options = Options(1);
  options.on_lost = [&](const absl::Status& status) {
    why = status;
    is_lost.Notify();
  };
  LeaveLeaseOf(Elsewhere());
  Lease lease = RunLease::Take(std::move(options));
  ASSERT_OK(lease);
  Write(left_);
  ASSERT_TRUE(AwaitTrue([&] {
    clock_.Advance(absl::Seconds(1));
    return is_lost.HasBeenNotified();
  }));
  EXPECT_THAT(why, StatusIs(absl::StatusCode::kAborted,
                            HasSubstr("pid 4711 on host h7")));
  EXPECT_EQ(ExitCodeOf(why), ExitCode::kFailure);
  EXPECT_EQ(StatusOfRun(lease->get(), absl::OkStatus()), why);
  lease->reset();
  EXPECT_EQ(Content(), left_) << "the lease of the other is removed";
}

TEST_F(RunLeaseTest, OneOfManyThatStartTogetherGetsIt) {
  constexpr int kCount = 8;
  Lease leases[kCount];
  std::atomic<int> waiting = kCount;
  std::thread takers[kCount];
  for (int i = 0; i < kCount; ++i) {
    takers[i] = std::thread([&, i] {
      --waiting;
      EXPECT_TRUE(AwaitTrue([&] { return waiting == 0; }));
      RunLease::Options options = Options(i + 1);
      options.clock = Clock::Real();
      leases[i] = RunLease::Take(std::move(options));
    });
  }
  int taken_count = 0;
  for (int i = 0; i < kCount; ++i) {
    takers[i].join();
    if (leases[i].ok()) ++taken_count;
  }
  EXPECT_EQ(taken_count, 1);
}

TEST_F(RunLeaseTest, ObjectStoresHaveLeases) {
  const absl::StatusOr<std::unique_ptr<S3Server>> server = S3Server::Start();
  ASSERT_OK(server);
  for (const auto& [name, value] : (*server)->Environment()) {
    ASSERT_EQ(setenv(name.c_str(), value.c_str(), /*overwrite=*/1), 0);
  }
  const auto options = [&](uint64_t incarnation) {
    RunLease::Options made = Options(incarnation);
    made.run_dir = "s3://bucket/run";
    return made;
  };
  {
    const Lease first = TakeAsTimePasses(options(1));
    ASSERT_OK(first);
    EXPECT_EQ((*server)->Objects().count("run/run.lease"), 1);
    EXPECT_THAT(TakeAsTimePasses(options(2)).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr(ThisProcess().ToString())));
  }
  EXPECT_EQ((*server)->Objects().count("run/run.lease"), 0);
  // If two processes write their leases, the last writer gets the lease.
  bool has_written = false;
  const Lease lease = TakeAsTimePasses(options(3), [&] {
    if (has_written || (*server)->Objects().count("run/run.lease") == 0) return;
    has_written = true;
    (*server)->Set("run/run.lease", "pid: 4711 host: \"h7\"");
  });
  EXPECT_THAT(lease.status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       HasSubstr("pid 4711 on host h7")));
}

}  // namespace
}  // namespace muster
