#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/synchronous/group_agreement.h"
#include "common/learn/strategy/synchronous/group_operation.h"
#include "common/learn/strategy/synchronous/replica_group.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/process/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);

// Forms the groups of the tests: each worker that is left asks for its place,
// and all get theirs once all have asked.
class Rendezvous {
 public:
  // `workers` are those of the next group, by their place.
  void Expect(std::vector<int> workers) {
    absl::MutexLock lock(&mutex_);
    workers_ = std::move(workers);
    communicators_ =
        CreateLocalGroup(static_cast<int>(workers_.size())).value();
    arrived_count_ = 0;
  }

  absl::StatusOr<ReplicaGroup::Membership> Form(int worker) {
    absl::MutexLock lock(&mutex_);
    ++arrived_count_;
    const auto all_are_there = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return arrived_count_ >= workers_.size();
    };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&all_are_there), kTimeout)) {
      return absl::DeadlineExceededError("a worker has not come back");
    }
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i] != worker || communicators_[i] == nullptr) continue;
      ReplicaGroup::Membership members{
          .worker_index = static_cast<int>(i),
          .worker_count = static_cast<int>(workers_.size())};
      members.communicators.push_back(std::move(communicators_[i]));
      return members;
    }
    return absl::AbortedError("it is not in the next group");
  }

 private:
  absl::Mutex mutex_;
  std::vector<int> workers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Communicator>> communicators_
      ABSL_GUARDED_BY(mutex_);
  size_t arrived_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A worker with one variable, to which steps add the sum of what workers
// contribute.
class TestWorker final : public ReplicaGroup::State {
 public:
  TestWorker(std::unique_ptr<ReplicaGroup> group) : group_(std::move(group)) {
    group_->SetState(this);
  }

  ReplicaGroup& group() { return *group_; }
  int64_t variable() const { return variable_; }
  void set_variable(int64_t value) { variable_ = value; }

  // An operation that all workers complete together.
  class Step final : public GroupOperation {
   public:
    Step(TestWorker* worker, int64_t contribution)
        : worker_(*worker), contribution_(contribution) {}

    // Fails after the exchange, before the variable is changed: as on a worker
    // that has not received the last message.
    void FailOnce(absl::Status failure) { failure_ = std::move(failure); }
    int run_count() const { return run_count_; }

    absl::Status Run() override {
      ++run_count_;
      int64_t sum = contribution_;
      const auto communicators = worker_.group_->communicators();
      RETURN_IF_ERROR(worker_.group_->Run([&](int replica) -> absl::Status {
        RETURN_IF_ERROR(communicators[replica]->AllReduce(
            ReduceOp::kSum, {DType::kInt64, 1, &sum},
            {.name = "step", .timeout = kTimeout}));
        return std::exchange(failure_, absl::OkStatus());
      }));
      worker_.variable_ += sum;
      sum_ = sum;
      return absl::OkStatus();
    }
    std::string Result() const override { return absl::StrCat(sum_); }
    absl::Status Adopt(absl::string_view result) override {
      return absl::SimpleAtoi(result, &sum_) ? absl::OkStatus()
                                             : absl::InternalError("no number");
    }
    bool changes_variables() const override { return true; }
    bool can_be_repeated() const override { return false; }
    int64_t sum() const { return sum_; }

   private:
    TestWorker& worker_;
    const int64_t contribution_;
    absl::Status failure_;
    int64_t sum_ = 0;
    int run_count_ = 0;
  };

  absl::Status CopyFrom(int rank) override {
    const auto communicators = group_->communicators();
    return group_->Run([&](int replica) {
      return communicators[replica]->Broadcast(
          {DType::kInt64, 1, &variable_}, rank,
          {.name = "variable", .timeout = kTimeout});
    });
  }
  absl::StatusOr<uint64_t> Fingerprint() override {
    return static_cast<uint64_t>(variable_) + 1;
  }

 private:
  int64_t variable_ = 0;
  const std::unique_ptr<ReplicaGroup> group_;
};

class GroupRecoveryTest : public testing::Test {
 protected:
  static absl::Status Loss() { return absl::UnavailableError("worker 2 died"); }

  // Runs `work` on a thread for each of three workers.
  void RunWorkers(
      const std::function<void(int index, TestWorker& worker)>& work) {
    auto communicators = CreateLocalGroup(3).value();
    std::vector<std::thread> threads;
    for (int index = 0; index < 3; ++index) {
      ReplicaGroup::Communicators own;
      own.push_back(std::move(communicators[index]));
      auto group = ReplicaGroup::Create(std::move(own), OptionsOf(index));
      threads.emplace_back(
          [&work, index, group = std::move(group).value()]() mutable {
            TestWorker worker(std::move(group));
            work(index, worker);
          });
    }
    for (std::thread& thread : threads) thread.join();
  }

  ReplicaGroup::Options OptionsOf(int index) {
    return {.worker_index = index,
            .worker_count = 3,
            .reform = [this, index] { return rendezvous_.Form(index); },
            .timeout = kTimeout};
  }

  Rendezvous rendezvous_;
};

TEST_F(GroupRecoveryTest, RepeatsAnOperationThatALossInterrupts) {
  rendezvous_.Expect({0, 1});
  RunWorkers([](int index, TestWorker& worker) {
    TestWorker::Step step(&worker, 10 + index);
    if (index == 2) {
      worker.group().Abort(Loss());
      return;
    }
    ASSERT_OK(worker.group().Complete(step));
    EXPECT_EQ(step.sum(), 21);
    EXPECT_EQ(worker.variable(), 21);
    EXPECT_EQ(worker.group().worker_count(), 2);
    EXPECT_EQ(worker.group().view(), 1);
  });
}

TEST_F(GroupRecoveryTest, GivesAWorkerTheResultOfAnOperationThatItMissed) {
  rendezvous_.Expect({0, 1});
  RunWorkers([](int index, TestWorker& worker) {
    TestWorker::Step first(&worker, 10 + index);
    // Worker 0 completes the step, and worker 1 does not.
    if (index == 1) first.FailOnce(Loss());
    if (index == 2) {
      ASSERT_OK(first.Run());
      return;
    }
    ASSERT_OK(worker.group().Complete(first));
    EXPECT_EQ(first.sum(), 33);
    EXPECT_EQ(first.run_count(), 1);
    TestWorker::Step second(&worker, index);
    ASSERT_OK(worker.group().Complete(second));
    EXPECT_EQ(second.sum(), 1);
    EXPECT_EQ(second.run_count(), index == 0 ? 2 : 1);
    EXPECT_EQ(worker.variable(), 34);
  });
}

TEST_F(GroupRecoveryTest, EndsIfWorkersHaveDifferentVariables) {
  rendezvous_.Expect({0, 1});
  RunWorkers([](int index, TestWorker& worker) {
    TestWorker::Step step(&worker, index);
    if (index == 1) worker.set_variable(5);
    if (index == 2) {
      worker.group().Abort(Loss());
      return;
    }
    EXPECT_THAT(worker.group().Complete(step),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("the variables of rank 1 differ")));
  });
}

TEST_F(GroupRecoveryTest, AnotherErrorThanALossIsFinal) {
  RunWorkers([](int, TestWorker& worker) {
    // No worker forms the group again: the rendezvous expects none.
    class Failing final : public GroupOperation {
     public:
      absl::Status Run() override {
        return absl::InvalidArgumentError("no data");
      }
      std::string Result() const override { return ""; }
      absl::Status Adopt(absl::string_view) override {
        return absl::OkStatus();
      }
    } failing;
    EXPECT_THAT(
        worker.group().Complete(failing),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no data")));
  });
}

TEST_F(GroupRecoveryTest, AValueThatOnlyTheLostWorkerHasEndsTraining) {
  rendezvous_.Expect({1, 2});
  RunWorkers([](int index, TestWorker& worker) {
    if (index == 0) {
      worker.group().Abort(Loss());
      return;
    }
    GroupAgreement agreement(&worker.group(), kTimeout, std::nullopt);
    const absl::StatusOr<std::string> told =
        agreement.FromChief("the plan", "own");
    if (index == 1) {
      EXPECT_THAT(told, StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("\"the plan\"")));
      EXPECT_EQ(ExitCodeOf(told.status()), ExitCode::kRestartMe);
      worker.group().Abort(told.status());
      return;
    }
    // The group ends a second time, and is not formed again.
    EXPECT_FALSE(told.ok());
  });
}

TEST_F(GroupRecoveryTest, AWorkerThatJoinsRepeatsAndThenGetsTheVariables) {
  const auto agree = [](TestWorker& worker, bool wants_stop) {
    return GroupAgreement(&worker.group(), kTimeout, std::nullopt)
        .AgreeToStop(wants_stop);
  };
  std::optional<std::vector<std::string>> record;
  rendezvous_.Expect({0, 1, 3});
  std::thread joiner;
  RunWorkers([&](int index, TestWorker& worker) {
    ASSERT_OK_AND_ASSIGN(const bool stops, agree(worker, index == 2));
    EXPECT_TRUE(stops);
    if (index == 0) record = worker.group().TakeRecord();
    TestWorker::Step step(&worker, 1);
    ASSERT_OK(worker.group().Complete(step));
    if (index == 2) return;
    if (index == 0) {
      auto group = ReplicaGroup::CreateJoining(1, *record, OptionsOf(3));
      joiner = std::thread([&, group = std::move(group).value()]() mutable {
        TestWorker joining(std::move(group));
        EXPECT_TRUE(joining.group().is_joining());
        EXPECT_NE(joining.group().worker_index(), 0);
        ASSERT_OK_AND_ASSIGN(const bool stops, agree(joining, false));
        EXPECT_TRUE(stops);
        EXPECT_THAT(agree(joining, false).status(),
                    StatusIs(absl::StatusCode::kFailedPrecondition));
        ASSERT_OK(joining.group().Change([&] { return rendezvous_.Form(3); }));
        EXPECT_FALSE(joining.group().is_joining());
        EXPECT_EQ(joining.variable(), 3);
        TestWorker::Step step(&joining, 100);
        ASSERT_OK(joining.group().Complete(step));
        EXPECT_EQ(joining.variable(), 105);
      });
    }
    ASSERT_OK(worker.group().Change([&] { return rendezvous_.Form(index); }));
    TestWorker::Step next(&worker, 1);
    ASSERT_OK(worker.group().Complete(next));
    EXPECT_EQ(worker.variable(), 105);
  });
  joiner.join();
}

TEST_F(GroupRecoveryTest, TheRecordIsBounded) {
  RunWorkers([](int, TestWorker& worker) {
    GroupAgreement agreement(&worker.group(), kTimeout, std::nullopt);
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(agreement.FromChief("weights", std::string(30 << 20, 'w')));
    }
    EXPECT_FALSE(worker.group().TakeRecord().has_value());
  });
}

TEST_F(GroupRecoveryTest, StepsBeforeTrainingCannotBeRepeated) {
  RunWorkers([](int, TestWorker& worker) {
    TestWorker::Step step(&worker, 1);
    ASSERT_OK(worker.group().Complete(step));
    EXPECT_FALSE(worker.group().TakeRecord().has_value());
  });
}

}  // namespace
}  // namespace muster
