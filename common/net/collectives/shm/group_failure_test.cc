// Tests what happens in a group if a rank is killed, is stopped, leaves, fails,
// is late, or makes a different call.

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/shm/group_options.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/collectives/shm/testing/ranks.h"
#include "common/net/collectives/tensor_span.h"
#include "common/net/rpc/fault_point.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr CollectiveCall kPatient = {.name = "dense/kernel",
                                     .timeout = absl::Seconds(120)};
constexpr CollectiveCall kHasty = {.name = "dense/kernel",
                                   .timeout = absl::Milliseconds(50)};

std::vector<std::unique_ptr<Communicator>> LocalGroup(int size) {
  auto group = CreateLocalGroup(size);
  EXPECT_OK(group.status());
  return *std::move(group);
}

absl::Status SumOf(Communicator& communicator, int64_t count,
                   const CollectiveCall& call) {
  std::vector<float> values(count, 1.0f);
  return communicator.AllReduce(ReduceOp::kSum,
                                {DType::kFloat32, count, values.data()}, call);
}

// Makes each call of `calls` on a separate rank and thread. Returns the
// results.
using RankCall = std::function<absl::Status(Communicator&)>;
std::vector<absl::Status> Make(const std::vector<RankCall>& calls) {
  auto group = LocalGroup(static_cast<int>(calls.size()));
  std::vector<absl::Status> results(calls.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    threads.emplace_back(
        [&, rank] { results[rank] = calls[rank](*group[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(DisagreementTest, EveryRankLearnsWhoCalledWhat) {
  const auto reduce = [&](ReduceOp op, DType dtype, int64_t count) {
    return [=](Communicator& communicator) {
      alignas(8) uint8_t own[64] = {};
      return communicator.AllReduce(op, {dtype, count, own}, kPatient);
    };
  };
  const RankCall usual = reduce(ReduceOp::kSum, DType::kFloat32, 3);
  const std::pair<RankCall, std::string> others[] = {
      {reduce(ReduceOp::kMax, DType::kFloat32, 3),
       "rank 2 calls all-reduce (max) of 3 float32"},
      {reduce(ReduceOp::kSum, DType::kInt32, 3),
       "rank 2 calls all-reduce (sum) of 3 int32"},
      {reduce(ReduceOp::kSum, DType::kFloat32, 4),
       "rank 2 calls all-reduce (sum) of 4 float32"},
      {[](Communicator& c) { return c.Barrier(kPatient); },
       "rank 2 calls barrier"},
      {[](Communicator& c) {
         float own[3] = {};
         return c.Broadcast({DType::kFloat32, 3, own}, 1, kPatient);
       },
       "rank 2 calls broadcast from rank 1 of 3 float32"},
      {[](Communicator& c) { return c.Allocate(12, kPatient).status(); },
       "rank 2 calls allocate of 12 bytes"},
  };
  for (const auto& [other, text] : others) {
    for (const absl::Status& status : Make({usual, usual, other})) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
      EXPECT_THAT(
          std::string(status.message()),
          AllOf(HasSubstr("dense/kernel"), HasSubstr(text),
                HasSubstr("rank 0 calls all-reduce (sum) of 3 float32")));
    }
  }
}

TEST(DisagreementTest, GatheredCountsAreCompared) {
  const auto gather = [](std::vector<int64_t> counts) {
    return [counts](Communicator& communicator) {
      float own[4] = {};
      float all[8] = {};
      return communicator.AllGather(
          {DType::kFloat32, counts[communicator.rank()], own}, counts,
          {DType::kFloat32, 4, all}, kPatient);
    };
  };
  for (const absl::Status& status : Make({gather({1, 3}), gather({2, 2})})) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
}

TEST(ArgumentTest, AnInvalidCallFailsTheGroupOnAllRanks) {
  const auto results =
      Make({[](Communicator& c) {
              bool value = true;
              return c.AllReduce(ReduceOp::kSum, {DType::kBool, 1, &value},
                                 kPatient);
            },
            [](Communicator& c) { return c.Barrier(kPatient); }});
  EXPECT_EQ(results[0].code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(results[1].code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(results[1].message()),
              AllOf(HasSubstr("rank 0 gave up"), HasSubstr("bool")));
}

TEST(TimeoutTest, NamesTheMissingAndIsFinal) {
  auto group = LocalGroup(4);
  std::thread other([&] {
    EXPECT_EQ(SumOf(*group[1], 10, kHasty).code(),
              absl::StatusCode::kDeadlineExceeded);
  });
  const absl::Status status = SumOf(*group[0], 10, kHasty);
  other.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("all-reduce"), HasSubstr("'dense/kernel'"),
            HasSubstr("waited "), HasSubstr("ranks 2, 3 have not arrived")));
  EXPECT_EQ(group[0]->Barrier(kPatient), status);
  // A late rank fails without waiting.
  const absl::Status late = SumOf(*group[2], 10, kPatient);
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.message()), HasSubstr("gave up"));
}

TEST(AbortTest, WakesRanksOfThisAndOtherProcesses) {
  auto group = LocalGroup(3);
  absl::Status results[2];
  std::thread waiters[2];
  for (int rank = 0; rank < 2; ++rank) {
    waiters[rank] = std::thread(
        [&, rank] { results[rank] = SumOf(*group[rank], 100000, kPatient); });
  }
  EXPECT_TRUE(AwaitTrue([&] {
    return group[0]->Progress().is_running && group[1]->Progress().is_running;
  })) << "ranks 0 and 1 have not called";
  const CollectiveProgress progress = group[1]->Progress();
  EXPECT_EQ(progress.operation, "all-reduce");
  EXPECT_EQ(progress.name, "dense/kernel");
  EXPECT_EQ(progress.sequence, 1u);
  EXPECT_THAT(progress.missing_ranks, testing::Contains(2));

  const absl::Time begin = Clock::Real()->Now();
  group[0]->Abort(absl::CancelledError("the job ends"));
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_LT(Clock::Real()->Now() - begin, kPatient.timeout / 2);
  EXPECT_EQ(results[0], absl::CancelledError("the job ends"));
  EXPECT_EQ(results[1].code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(results[1].message()),
              HasSubstr("rank 0 gave up: the job ends"));
  EXPECT_FALSE(group[0]->Progress().is_running);
  group[0]->Abort(absl::InternalError("too late to count"));
  EXPECT_EQ(group[0]->Barrier(kPatient), absl::CancelledError("the job ends"));
}

TEST(LeavingTest, RanksDoNotWaitForOneThatHasLeft) {
  auto group = LocalGroup(2);
  group[1].reset();
  const absl::Status status = SumOf(*group[0], 1, kPatient);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank 1 is gone: it has left the group"));
}

TEST(LeavingTest, LeavingAfterTheLastCallIsNoError) {
  for (int round = 0; round < 200; ++round) {
    RunThreadRanks(3, {}, [](Communicator& communicator) {
      EXPECT_OK(communicator.Barrier(kPatient));
    });
  }
}

// A rank that fails may return while others are in the middle of a reduction.
// They must not access memory that it then frees.
TEST(TimeoutTest, MemoryOfAFailedCallMayBeFreedAtOnce) {
  int failures = 0;
  for (int round = 0; round < 60; ++round) {
    auto group = LocalGroup(3);
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        // Rank 2 arrives at about the time at which the others time out.
        const auto come = Clock::Real()->Now() + absl::Microseconds(40 * round);
        while (rank == 2 && Clock::Real()->Now() < come) {
        }
        for (int call = 0; call < 3; ++call) {
          auto values = std::make_unique<std::vector<double>>(50000, 1.0);
          const absl::Status status = group[rank]->AllReduce(
              ReduceOp::kSum, {DType::kFloat64, 50000, values->data()},
              {.name = "freed", .timeout = absl::Milliseconds(1)});
          values.reset();
          // A write to the freed memory would change these values.
          const std::vector<double> reused(50000, 7.0);
          sched_yield();
          for (const double value : reused) ASSERT_EQ(value, 7.0);
          if (!status.ok()) ++failed;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    failures += failed > 0;
  }
  EXPECT_GT(failures, 0);
}

// From here on, ranks are processes.

void ExpectNames(const absl::Status& status, absl::StatusCode code,
                 const std::string& text) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(text), HasSubstr("all-reduce"),
                    HasSubstr("dense/kernel")));
}

// All-reduces repeatedly until a call fails. Returns the error.
absl::Status ReduceUntilFailure(Communicator& communicator,
                                bool is_registered) {
  constexpr int64_t kCount = 20000;
  std::vector<float> plain(kCount);
  void* data = plain.data();
  std::shared_ptr<Buffer> buffer;
  if (is_registered) {
    buffer = *communicator.Allocate(kCount * 4, kPatient);
    data = buffer->data();
  }
  absl::Status status;
  while (status.ok()) {
    status = communicator.AllReduce(ReduceOp::kMean,
                                    {DType::kFloat32, kCount, data}, kPatient);
  }
  return status;
}

class KilledRankTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Memory, KilledRankTest, testing::Bool());

TEST_P(KilledRankTest, KilledInACallIsNamedByAll) {
  constexpr int kSize = 3;
  SharedAmongForks<std::atomic<int64_t>> killed_at;
  const auto now = [] { return absl::ToUnixMicros(Clock::Real()->Now()); };
  ForkedRanks ranks(kSize, {}, [&](Communicator& communicator) {
    if (communicator.rank() == 1) {
      SetFaults({{.point = "collectives.shared_memory.reduce",
                  .occurrence = 40,
                  .action = FaultAction::kKill}});
    }
    ExpectNames(ReduceUntilFailure(communicator, GetParam()),
                absl::StatusCode::kUnavailable, "rank 1 is gone");
    killed_at->store(now());
  });
  const std::optional<int> killed = ranks.Wait(1);
  ASSERT_TRUE(killed.has_value());
  EXPECT_TRUE(WIFSIGNALED(*killed) && WTERMSIG(*killed) == SIGKILL);
  EXPECT_EQ(ranks.Wait(0), 0);
  EXPECT_EQ(ranks.Wait(2), 0);
}

TEST_P(KilledRankTest, KilledWhileOthersWait) {
  SharedAmongForks<std::atomic<int>> sleepers;
  ForkedRanks ranks(4, {}, [&](Communicator& communicator) {
    if (communicator.rank() == 2) {
      pause();
      return;
    }
    std::atomic<bool> is_over{false};
    std::thread watcher([&] {
      EXPECT_TRUE(AwaitTrue(
          [&] { return is_over || communicator.Progress().is_running; }));
      ++*sleepers;
    });
    const absl::Status status = ReduceUntilFailure(communicator, false);
    is_over = true;
    watcher.join();
    // The first rank that detects the end of rank 2 reports it to the others.
    ExpectNames(status, absl::StatusCode::kUnavailable, "rank 2 is gone");
  });
  EXPECT_TRUE(AwaitTrue([&] { return sleepers->load() == 3; }))
      << "ranks 0, 1 and 3 have not all called";
  const absl::Time begin = Clock::Real()->Now();
  ranks.SendSignal(2, SIGKILL);
  for (const int rank : {0, 1, 3}) EXPECT_EQ(ranks.Wait(rank), 0);
  EXPECT_LT(Clock::Real()->Now() - begin, kPatient.timeout / 2);
}

TEST_P(KilledRankTest, StoppedRankIsNamedAtTheDeadline) {
  SharedAmongForks<std::atomic<int>> arrived;
  ForkedRanks ranks(3, {}, [&](Communicator& communicator) {
    EXPECT_OK(communicator.Barrier(kPatient));
    ++*arrived;
    if (communicator.rank() == 0) raise(SIGSTOP);
    const absl::Status status =
        SumOf(communicator, 5000,
              {.name = "dense/kernel", .timeout = absl::Milliseconds(200)});
    ExpectNames(status, absl::StatusCode::kDeadlineExceeded,
                "rank 0 has not arrived");
  });
  EXPECT_EQ(ranks.Wait(1), 0);
  EXPECT_EQ(ranks.Wait(2), 0);
  EXPECT_EQ(*arrived, 3);
  // Rank 0 gets the error when it continues.
  ranks.SendSignal(0, SIGCONT);
  EXPECT_EQ(ranks.Wait(0), 0);
}

TEST(FaultTest, AnErrorOfOneRankEndsTheCallForAll) {
  ForkedRanks ranks(2, {}, [](Communicator& communicator) {
    if (communicator.rank() == 1) {
      SetFaults({{.point = "collectives.shared_memory.reduce",
                  .occurrence = 5,
                  .action = FaultAction::kFail}});
    }
    EXPECT_EQ(ReduceUntilFailure(communicator, true).code(),
              absl::StatusCode::kUnavailable);
    EXPECT_EQ(communicator.Barrier(kPatient).code(),
              absl::StatusCode::kUnavailable);
  });
  EXPECT_EQ(ranks.Wait(0), 0);
  EXPECT_EQ(ranks.Wait(1), 0);
}

}  // namespace
}  // namespace muster
