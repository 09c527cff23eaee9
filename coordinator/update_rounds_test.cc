#include "coordinator/update_rounds.h"

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "coordinator/closure_queue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(UpdateRoundsTest, ChoosesTheFirstGradientsOfARound) {
  UpdateRounds rounds({.gradient_count = 2, .backup_count = 1});
  const uint64_t first = rounds.Start();
  rounds.Start();
  rounds.Start();
  EXPECT_FALSE(rounds.MayStart());
  EXPECT_TRUE(rounds.Choose(first));
  EXPECT_TRUE(rounds.Choose(first));
  EXPECT_FALSE(rounds.Choose(first));
  EXPECT_FALSE(rounds.FinishChosen());
  EXPECT_FALSE(rounds.MayStart());  // The variables are about to change.
  EXPECT_TRUE(rounds.FinishChosen());
  EXPECT_TRUE(rounds.MayStart());
  EXPECT_FALSE(rounds.Choose(first));
}

TEST(UpdateRoundsTest, ContinuesARoundOfWhichTheServersHaveGradients) {
  UpdateRounds rounds({.gradient_count = 3});
  rounds.Begin(2);
  const uint64_t round = rounds.Start();
  EXPECT_FALSE(rounds.MayStart());
  EXPECT_TRUE(rounds.Choose(round));
  EXPECT_TRUE(rounds.FinishChosen());
}

TEST(UpdateRoundsTest, AClosureThatLeavesMakesRoomForAnother) {
  UpdateRounds rounds({.gradient_count = 1});
  const uint64_t round = rounds.Start();
  EXPECT_FALSE(rounds.MayStart());
  rounds.Leave(round);
  EXPECT_TRUE(rounds.MayStart());
}

// A queue of three workers, of which an update needs two.
class SynchronousQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int worker = 0; worker < 3; ++worker) queue_.WorkerReady(worker);
    for (int i = 0; i < 10; ++i) {
      values_.push_back(queue_.Add({.is_synchronous = true}));
    }
  }

  std::vector<uint64_t> Take(int worker) {
    std::vector<ClosureQueue::Taken> taken;
    queue_.Take(worker, 100, &taken);
    std::vector<uint64_t> ids;
    for (const auto& closure : taken) ids.push_back(closure.id);
    return ids;
  }
  // Asks for the closure, and returns true if it is permitted.
  bool Asks(int worker, uint64_t id) {
    EXPECT_OK(queue_.AskPermission(worker, id));
    const ClosureQueue::Answers answers = queue_.TakeAnswers(worker);
    EXPECT_EQ(answers.permitted.size() + answers.denied.size(), 1u);
    return !answers.permitted.empty();
  }

  ClosureQueue queue_{
      {.worker_count = 3, .rounds = {.gradient_count = 2, .backup_count = 1}}};
  std::vector<std::shared_ptr<RemoteValueState>> values_;
};

TEST_F(SynchronousQueueTest, AWorkerGetsOneClosureInEachRound) {
  EXPECT_THAT(Take(0), ElementsAre(1));
  EXPECT_THAT(Take(0), IsEmpty());
  EXPECT_THAT(Take(1), ElementsAre(2));
  EXPECT_TRUE(Asks(0, 1));
  EXPECT_TRUE(Asks(1, 2));
  EXPECT_OK(queue_.Finish(0, 1, {}));
  EXPECT_THAT(Take(0), IsEmpty());
  EXPECT_OK(queue_.Finish(1, 2, {}));
  EXPECT_THAT(Take(0), ElementsAre(3));
}

TEST_F(SynchronousQueueTest, ASlowWorkerIsOvertaken) {
  for (int worker = 0; worker < 3; ++worker) Take(worker);
  EXPECT_TRUE(Asks(0, 1));
  EXPECT_TRUE(Asks(1, 2));
  EXPECT_OK(queue_.Finish(0, 1, {}));
  EXPECT_OK(queue_.Finish(1, 2, {}));
  // Another worker runs its closure, although it still computes.
  EXPECT_THAT(Take(0), ElementsAre(3));
  EXPECT_THAT(Take(2), IsEmpty());
  EXPECT_FALSE(Asks(2, 3));
  EXPECT_OK(queue_.Return(2, 3));
  EXPECT_THAT(Take(2), ElementsAre(4));
  EXPECT_TRUE(Asks(0, 3));
}

TEST_F(SynchronousQueueTest, AnOvertakenWorkerGetsNoClosureOfAnyKind) {
  for (int worker = 0; worker < 3; ++worker) Take(worker);
  EXPECT_TRUE(Asks(0, 1));
  EXPECT_TRUE(Asks(1, 2));
  EXPECT_OK(queue_.Finish(0, 1, {}));
  EXPECT_OK(queue_.Finish(1, 2, {}));
  for (uint64_t id = 3; id <= 10; ++id) queue_.Cancel(id);
  values_.push_back(queue_.Add({.has_effects = false}));
  EXPECT_THAT(Take(2), IsEmpty());
  EXPECT_THAT(Take(0), ElementsAre(11));
}

TEST_F(SynchronousQueueTest, AClosureWhoseGradientsComeTooLateIsRunAgain) {
  for (int worker = 0; worker < 3; ++worker) Take(worker);
  EXPECT_TRUE(Asks(0, 1));
  EXPECT_TRUE(Asks(2, 3));
  EXPECT_FALSE(Asks(1, 2));
  EXPECT_OK(queue_.Return(1, 2));
  EXPECT_THAT(Take(1), IsEmpty());  // Until the variables have changed.
  EXPECT_OK(queue_.Finish(0, 1, {}));
  EXPECT_OK(queue_.Finish(2, 3, {}));
  EXPECT_THAT(Take(1), ElementsAre(2));
}

TEST_F(SynchronousQueueTest, ARoundWaitsForTheChosenClosureOfALostWorker) {
  for (int worker = 0; worker < 3; ++worker) Take(worker);
  EXPECT_TRUE(Asks(0, 1));
  EXPECT_TRUE(Asks(1, 2));
  EXPECT_OK(queue_.Finish(1, 2, {}));
  // A server may have applied its gradients already.
  queue_.WorkerLost(0, absl::UnavailableError("killed"));
  EXPECT_FALSE(Asks(2, 3));
  EXPECT_OK(queue_.Return(2, 3));
  EXPECT_THAT(Take(2), ElementsAre(1));
  EXPECT_TRUE(Asks(2, 1));
  EXPECT_OK(queue_.Finish(2, 1, {}));
  EXPECT_THAT(Take(1), ElementsAre(3));
}

TEST_F(SynchronousQueueTest, ACancelledClosureIsDenied) {
  Take(0);
  queue_.CancelAll();
  EXPECT_FALSE(Asks(0, 1));
  EXPECT_OK(queue_.Return(0, 1));
  EXPECT_TRUE(queue_.idle());
}

TEST_F(SynchronousQueueTest, OtherClosuresTakeNoPartInRounds) {
  ClosureQueue queue({.worker_count = 1, .rounds = {.gradient_count = 2}});
  queue.WorkerReady(0);
  const auto value = queue.Add({});
  std::vector<ClosureQueue::Taken> taken;
  queue.Take(0, 10, &taken);
  EXPECT_OK(queue.AskPermission(0, 1));
  EXPECT_THAT(queue.TakeAnswers(0).permitted, ElementsAre(1));
  EXPECT_OK(queue.Finish(0, 1, {}));
  EXPECT_TRUE(value->done());
}

}  // namespace
}  // namespace muster
