#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/tensor.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/conformance/backend.h"
#include "common/net/collectives/conformance/serial_reference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// Tests how groups report failures.
namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Matcher;

constexpr absl::Duration kShort = absl::Milliseconds(300);
// Far less than kCollectiveTimeout: a rank that receives an error does not
// wait.
constexpr absl::Duration kAtOnce = absl::Seconds(20);

class FailureSuite : public testing::TestWithParam<CommunicatorBackend> {
 protected:
  static constexpr int kSize = 4;

  void SetUp() override {
    const int size = std::min(kSize, GetParam().size_max);
    absl::StatusOr<RankGroup> group = GetParam().make(size);
    if (absl::IsUnavailable(group.status())) GTEST_SKIP() << group.status();
    ASSERT_OK(group);
    group_ = *std::move(group);
  }

  int size() const { return static_cast<int>(group_.size()); }

  static absl::Status AllReduce(Communicator& communicator, DType dtype,
                                int64_t count, ReduceOp op,
                                absl::Duration timeout) {
    Tensor buffer = RankValues(op, dtype, count, communicator.rank());
    return communicator.AllReduce(op, SpanOf(buffer),
                                  {"dense/kernel and 3 more", timeout});
  }
  static absl::Status AllReduce(Communicator& communicator,
                                absl::Duration timeout = kCollectiveTimeout) {
    return AllReduce(communicator, DType::kFloat32, 3000, ReduceOp::kSum,
                     timeout);
  }

  // Matches an error that names rank 2: "rank 2 is gone". See
  // CommunicatorBackend::numbers_ranks_of_group.
  static Matcher<const std::string&> SaysOfRank2(const std::string& what) {
    const Matcher<const std::string&> named = HasSubstr("rank 2" + what);
    if (GetParam().numbers_ranks_of_group) return named;
    return AnyOf(named, AllOf(HasSubstr("rank 0" + what),
                              HasSubstr("counted from 0, are ranks 2")));
  }

  // Expects that each failed rank fails again with the same code: errors are
  // final.
  void ExpectEnded(const std::vector<absl::Status>& statuses) {
    const auto again = RunRanks(group_, [](Communicator& communicator) {
      return communicator.Barrier({"afterwards", kCollectiveTimeout});
    });
    for (int rank = 0; rank < size(); ++rank) {
      if (group_[rank] == nullptr || statuses[rank].ok()) continue;
      EXPECT_EQ(again[rank].code(), statuses[rank].code()) << "rank " << rank;
    }
  }

  RankGroup group_;
};

TEST_P(FailureSuite, ErrorsOfDifferingCallsNameEachRanksCall) {
  struct Disagreement {
    DType dtype = DType::kFloat32;
    int64_t count = 3000;
    ReduceOp op = ReduceOp::kSum;
    const char* said;
  };
  for (const Disagreement& odd :
       {Disagreement{.dtype = DType::kInt32, .said = "int32"},
        Disagreement{.count = 2999, .said = "2999"},
        Disagreement{.op = ReduceOp::kMax, .said = "max"}}) {
    ASSERT_OK_AND_ASSIGN(group_, GetParam().make(size()));
    const auto statuses = RunRanks(group_, [&](Communicator& communicator) {
      return communicator.rank() == 1
                 ? AllReduce(communicator, odd.dtype, odd.count, odd.op,
                             kCollectiveTimeout)
                 : AllReduce(communicator);
    });
    EXPECT_THAT(statuses,
                Each(StatusIs(absl::StatusCode::kInvalidArgument,
                              AllOf(HasSubstr("rank 1"), HasSubstr(odd.said),
                                    HasSubstr("all-reduce")))));
    ExpectEnded(statuses);
  }
}

TEST_P(FailureSuite, DifferentCollectivesAreAnErrorOnEachRank) {
  const auto statuses = RunRanks(group_, [&](Communicator& communicator) {
    return communicator.rank() == 1
               ? communicator.Barrier({"lost", kCollectiveTimeout})
               : AllReduce(communicator);
  });
  EXPECT_THAT(statuses,
              Each(StatusIs(absl::StatusCode::kInvalidArgument,
                            AllOf(HasSubstr("rank 1"), HasSubstr("barrier"),
                                  AnyOf(HasSubstr("all-reduce"),
                                        HasSubstr("reduce-scatter"))))));
  ExpectEnded(statuses);
}

TEST_P(FailureSuite, RaggedCountsThatDifferAreRefused) {
  const auto statuses = RunRanks(group_, [&](Communicator& communicator) {
    // The same total, distributed differently.
    std::vector<int64_t> counts(size(), 100);
    if (communicator.rank() == 1) {
      counts[0] = 101;
      counts[1] = 99;
    }
    Tensor input = RankPattern(DType::kInt32, counts[communicator.rank()], 0);
    Tensor output = RankPattern(DType::kInt32, 100 * size(), 0);
    return communicator.AllGather(SpanOf(input), counts, SpanOf(output),
                                  {"whole", kCollectiveTimeout});
  });
  EXPECT_THAT(statuses, Each(StatusIs(absl::StatusCode::kInvalidArgument)));
}

TEST_P(FailureSuite, AnExpiredWaitNamesTheMissingRanks) {
  const auto statuses = RunRanks(group_, [&](Communicator& communicator) {
    if (communicator.rank() == 2) return absl::OkStatus();
    return AllReduce(communicator, kShort);
  });
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == 2) continue;
    EXPECT_THAT(
        statuses[rank],
        StatusIs(
            absl::StatusCode::kDeadlineExceeded,
            AllOf(SaysOfRank2(" has not arrived"), HasSubstr("all-reduce"),
                  HasSubstr("dense/kernel and 3 more"), HasSubstr("waited "))));
  }
  // The late rank may already have received all data of its first call, but the
  // other ranks do not take part in its second call.
  AllReduce(*group_[2], kShort).IgnoreError();
  EXPECT_FALSE(AllReduce(*group_[2], kShort).ok());
  ExpectEnded(statuses);
}

TEST_P(FailureSuite, ProgressNamesTheMissingRanks) {
  absl::Notification is_seen;
  std::thread observer([&] {
    CollectiveProgress progress;
    EXPECT_TRUE(AwaitTrue([&] {
      progress = group_[0]->Progress();
      return !progress.missing_ranks.empty();
    }));
    EXPECT_TRUE(progress.is_running);
    EXPECT_EQ(progress.operation, "all-reduce");
    EXPECT_EQ(progress.name, "dense/kernel and 3 more");
    EXPECT_EQ(progress.sequence, 1u);
    EXPECT_GT(progress.elapsed, absl::ZeroDuration());
    // Other ranks that start late are also missing for a while. If each host
    // reduces first, only ranks of the same host can be missing.
    EXPECT_TRUE(AwaitTrue([&] {
      progress = group_[0]->Progress();
      return progress.missing_ranks == std::vector<int>{2};
    }));
    EXPECT_THAT(progress.missing_ranks, ElementsAre(2));
    is_seen.Notify();
  });
  const auto statuses = RunRanks(group_, [&](Communicator& communicator) {
    if (communicator.rank() == 2) {
      EXPECT_TRUE(is_seen.WaitForNotificationWithTimeout(kCollectiveTimeout));
    }
    return AllReduce(communicator);
  });
  observer.join();
  EXPECT_THAT(statuses, Each(IsOk()));
  EXPECT_FALSE(group_[0]->Progress().is_running);
}

TEST_P(FailureSuite, ARankThatIsGoneIsNamed) {
  group_[2] = nullptr;
  const absl::Time start_time = Clock::Real()->Now();
  const auto statuses = RunRanks(group_, [&](Communicator& communicator) {
    return AllReduce(communicator);
  });
  EXPECT_LT(Clock::Real()->Now() - start_time, kAtOnce);
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == 2) continue;
    EXPECT_THAT(statuses[rank],
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(SaysOfRank2(""), HasSubstr("all-reduce"),
                               HasSubstr("dense/kernel and 3 more"))));
  }
  ExpectEnded(statuses);
}

// Rank 1 has not made its own call yet when it aborts.
TEST_P(FailureSuite, AnAbortOfOneRankEndsTheCallOfEveryOther) {
  const absl::Time start_time = Clock::Real()->Now();
  std::thread other([&] {
    group_[1]->Abort(absl::CancelledError("the job is over"));
    group_[1]->Abort(absl::InternalError("too late to count"));
  });
  const auto statuses = RunRanks(group_, [&](Communicator& communicator) {
    // Rank 3 never calls, so that no rank can finish.
    if (communicator.rank() == 3 && GetParam().learns_of_all_failures) {
      return absl::OkStatus();
    }
    if (communicator.rank() == 1) other.join();
    return AllReduce(communicator);
  });
  EXPECT_LT(Clock::Real()->Now() - start_time, kAtOnce);
  EXPECT_THAT(statuses[1], StatusIs(absl::StatusCode::kCancelled,
                                    HasSubstr("the job is over")));
  for (const int rank : {0, 2}) {
    EXPECT_THAT(
        statuses[rank],
        AnyOf(
            StatusIs(absl::StatusCode::kCancelled,
                     AllOf(HasSubstr("the job is over"), HasSubstr("rank 1"))),
            StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 1"))));
  }
  EXPECT_THAT(group_[1]->Barrier({"afterwards", kCollectiveTimeout}),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_P(FailureSuite, AnAbortWakesARankThatWaits) {
  std::thread caller([&] {
    EXPECT_THAT(AllReduce(*group_[0]),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("stop")));
  });
  EXPECT_TRUE(AwaitTrue([&] { return group_[0]->Progress().is_running; }));
  group_[0]->Abort(absl::CancelledError("stop"));
  caller.join();
}

INSTANTIATE_TEST_SUITE_P(Backends, FailureSuite,
                         testing::ValuesIn(RegisteredBackends()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace muster
