#include "coordinator/closure_queue.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Values = std::vector<std::shared_ptr<RemoteValueState>>;

Values AddMany(ClosureQueue* queue, int count) {
  Values values;
  for (int i = 0; i < count; ++i) values.push_back(queue->Add({}));
  return values;
}

std::vector<uint64_t> TakeIds(ClosureQueue* queue, int worker,
                              int count_max = 1000) {
  std::vector<ClosureQueue::Taken> taken;
  queue->Take(worker, count_max, &taken);
  std::vector<uint64_t> ids;
  for (const auto& closure : taken) ids.push_back(closure.id);
  return ids;
}

absl::Status Lost(int worker) {
  return absl::UnavailableError(absl::StrCat("worker ", worker, " is lost"));
}

TEST(ClosureQueueTest, NumbersClosuresFromOneAndHandsThemOutInOrder) {
  ClosureQueue queue({.worker_count = 1});
  const Values values = AddMany(&queue, 3);
  EXPECT_EQ(values[0]->closure_id(), 1u);
  EXPECT_FALSE(queue.HasClosuresFor(0));  // No session yet.
  queue.WorkerReady(0);
  EXPECT_THAT(TakeIds(&queue, 0), ElementsAre(1, 2, 3));
  EXPECT_EQ(queue.in_flight_count(), 3);
}

TEST(ClosureQueueTest, AWorkerNeverHoldsMoreThanItsWindow) {
  ClosureQueue queue({.worker_count = 1, .window = {.closures_at_start = 4}});
  const Values values = AddMany(&queue, 10);
  queue.WorkerReady(0);
  EXPECT_THAT(TakeIds(&queue, 0), ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(queue.HasClosuresFor(0));
  EXPECT_OK(queue.Finish(0, 1, {}));
  EXPECT_THAT(TakeIds(&queue, 0), ElementsAre(5));
}

TEST(ClosureQueueTest, AWorkerLeavesWorkForTheOthers) {
  ClosureQueue queue({.worker_count = 2});
  const Values values = AddMany(&queue, 8);
  queue.WorkerReady(0);
  queue.WorkerReady(1);
  EXPECT_THAT(TakeIds(&queue, 0), ElementsAre(1, 2));
  EXPECT_THAT(TakeIds(&queue, 1), ElementsAre(3));
}

TEST(ClosureQueueTest, NoClosureIsGivenToOrReservedForAPausedWorker) {
  ClosureQueue queue({.worker_count = 2});
  queue.WorkerReady(0);
  queue.WorkerReady(1);
  Values values = AddMany(&queue, 1);
  queue.SetPaused(0, true);
  EXPECT_FALSE(queue.HasClosuresFor(0));
  EXPECT_THAT(TakeIds(&queue, 1), ElementsAre(1));
  values.push_back(queue.Add({}));
  EXPECT_THAT(TakeIds(&queue, 1), ElementsAre(2));
  values.push_back(queue.Add({}));
  queue.SetPaused(0, false);
  // The closure is reserved for the idle worker.
  EXPECT_FALSE(queue.HasClosuresFor(1));
  EXPECT_THAT(TakeIds(&queue, 0), ElementsAre(3));
}

TEST(ClosureQueueTest, FinishedClosuresCarryTheirResultsAndMoveTheMark) {
  ClosureQueue queue({.worker_count = 1});
  const Values values = AddMany(&queue, 3);
  queue.WorkerReady(0);
  TakeIds(&queue, 0);
  EXPECT_OK(queue.Finish(0, 2, {}));
  EXPECT_EQ(queue.low_water_mark(), 1u);
  EXPECT_OK(queue.Finish(0, 1, {Tensor::Scalar(4.0f)}));
  EXPECT_EQ(queue.low_water_mark(), 3u);
  EXPECT_EQ(values[0]->results()[0].scalar<float>(), 4.0f);
  EXPECT_FALSE(queue.idle());
  EXPECT_OK(queue.Finish(0, 3, {}));
  EXPECT_TRUE(queue.idle());
  EXPECT_OK(queue.TakeFailure());
}

TEST(ClosureQueueTest, ARangeOfClosuresFinishesUpToTheFirstOneNotHeld) {
  ClosureQueue queue({.worker_count = 1});
  queue.WorkerReady(0);
  const Values values = AddMany(&queue, 6);
  EXPECT_THAT(TakeIds(&queue, 0, 5), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_OK(queue.FinishRange(0, 2, 2));
  EXPECT_FALSE(values[0]->done());
  EXPECT_TRUE(values[1]->done());
  EXPECT_TRUE(values[2]->done());
  EXPECT_EQ(queue.finished_count(), 2);
  EXPECT_EQ(queue.in_flight_count(), 3);
  EXPECT_THAT(queue.FinishRange(0, 4, 3),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("closure 6, which it does not hold")));
  EXPECT_EQ(queue.finished_count(), 4);
  EXPECT_FALSE(queue.FinishRange(0, UINT64_MAX, 2).ok());
}

TEST(ClosureQueueTest, AReportAboutAClosureNotHeldIsRefused) {
  ClosureQueue queue({.worker_count = 2});
  const Values values = AddMany(&queue, 1);
  queue.WorkerReady(0);
  queue.WorkerReady(1);
  TakeIds(&queue, 0);
  const auto is_refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not hold"));
  EXPECT_THAT(queue.Finish(1, 1, {}), is_refused);
  EXPECT_THAT(queue.Finish(0, 0, {}), is_refused);
  EXPECT_THAT(queue.Finish(0, 99, {}), is_refused);
  EXPECT_THAT(queue.Return(1, 1), is_refused);
  EXPECT_THAT(queue.FinishKept(1, 1, {}), is_refused);
  EXPECT_THAT(queue.Fail(1, 1, absl::InternalError("")), is_refused);
  EXPECT_OK(queue.Finish(0, 1, {}));
  EXPECT_THAT(queue.Finish(0, 1, {}), is_refused);
}

TEST(ClosureQueueTest, ALostWorkersClosuresGoToTheHeadOfTheQueueInOrder) {
  ClosureQueue queue({.worker_count = 2,
                      .queued_closures_max = 6,
                      .window = {.closures_at_start = 3}});
  const Values values = AddMany(&queue, 6);
  queue.WorkerReady(0);
  EXPECT_THAT(TakeIds(&queue, 0), ElementsAre(1, 2, 3));
  AddMany(&queue, 3);
  EXPECT_FALSE(queue.HasRoom());
  // Requeued work needs no free slot.
  queue.WorkerLost(0, Lost(0));
  EXPECT_EQ(queue.queued_count(), 9);
  EXPECT_EQ(queue.requeued_count(), 3);
  queue.WorkerReady(1);
  EXPECT_THAT(TakeIds(&queue, 1), ElementsAre(1, 2, 3));
}

TEST(ClosureQueueTest, AReturningWorkerStartsWithNothingHeld) {
  ClosureQueue queue({.worker_count = 1});
  const Values values = AddMany(&queue, 2);
  queue.WorkerReady(0);
  TakeIds(&queue, 0);
  queue.WorkerLost(0, Lost(0));
  EXPECT_FALSE(queue.HasClosuresFor(0));
  queue.WorkerReady(0);
  EXPECT_THAT(TakeIds(&queue, 0), ElementsAre(1, 2));
}

TEST(ClosureQueueTest, OnlyTheRunningClosureCountsAnAttempt) {
  ClosureQueue queue({.worker_count = 1, .attempts_max = 3});
  const Values values = AddMany(&queue, 3);
  for (int i = 0; i < 3; ++i) {
    queue.WorkerReady(0);
    EXPECT_THAT(TakeIds(&queue, 0), ElementsAre(1, 2, 3));
    queue.WorkerLost(0, Lost(0));
  }
  EXPECT_TRUE(queue.failing());
  EXPECT_THAT(values[0]->status(),
              StatusIs(absl::StatusCode::kAborted,
                       AllOf(HasSubstr("closure 1 was running on 3 workers"),
                             HasSubstr("worker 0 is lost"))));
  EXPECT_THAT(values[1]->status(), StatusIs(absl::StatusCode::kCancelled));
  ASSERT_TRUE(queue.idle());
  EXPECT_THAT(queue.TakeFailure(), StatusIs(absl::StatusCode::kAborted));
  EXPECT_OK(queue.TakeFailure());
}

TEST(ClosureQueueTest, TheFirstFailureCancelsTheRestAndListsLaterOnes) {
  ClosureQueue queue({.worker_count = 1, .window = {.closures_at_start = 4}});
  const Values values = AddMany(&queue, 6);
  queue.WorkerReady(0);
  TakeIds(&queue, 0);
  EXPECT_OK(queue.Fail(0, 2, absl::OutOfRangeError("no data")));
  EXPECT_TRUE(queue.failing());
  EXPECT_FALSE(queue.HasClosuresFor(0));
  EXPECT_THAT(values[5]->status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(queue.TakeRecalls(0), ElementsAre(1, 3, 4));

  EXPECT_OK(queue.Finish(0, 1, {}));  // The closure was running.
  EXPECT_OK(queue.Fail(0, 3, absl::InternalError("also bad")));
  EXPECT_OK(queue.Return(0, 4));
  ASSERT_TRUE(queue.idle());
  EXPECT_OK(values[0]->status());
  EXPECT_THAT(values[3]->status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(queue.TakeFailure(),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("closure 2 on worker 0: no data"),
                             HasSubstr("also bad"))));

  // The queue is in its initial state again.
  EXPECT_FALSE(queue.failing());
  AddMany(&queue, 1);
  EXPECT_THAT(TakeIds(&queue, 0), ElementsAre(7));
}

TEST(ClosureQueueTest, AFailureKeepsItsPayload) {
  ClosureQueue queue({.worker_count = 1});
  const Values values = AddMany(&queue, 1);
  queue.WorkerReady(0);
  TakeIds(&queue, 0);
  absl::Status failure = absl::UnavailableError("gone");
  failure.SetPayload("type/x", absl::Cord("who"));
  EXPECT_OK(queue.Fail(0, 1, failure));
  const absl::Status taken = queue.TakeFailure();
  ASSERT_TRUE(taken.GetPayload("type/x").has_value());
  EXPECT_EQ(std::string(*taken.GetPayload("type/x")), "who");
}

TEST(ClosureQueueTest, ALostWorkerWhileFailingRequeuesNothing) {
  ClosureQueue queue({.worker_count = 2});
  const Values values = AddMany(&queue, 8);
  queue.WorkerReady(0);
  queue.WorkerReady(1);
  TakeIds(&queue, 0);
  const std::vector<uint64_t> held = TakeIds(&queue, 1);
  EXPECT_OK(queue.Fail(1, held[0], absl::InternalError("bad")));
  queue.WorkerLost(0, Lost(0));
  EXPECT_TRUE(queue.idle());
  EXPECT_EQ(queue.requeued_count(), 0);
  EXPECT_THAT(values[0]->status(), StatusIs(absl::StatusCode::kCancelled));
}

TEST(ClosureQueueTest, AnAbortIsPermanentAndReportedFirst) {
  ClosureQueue queue({.worker_count = 1});
  const Values values = AddMany(&queue, 3);
  queue.WorkerReady(0);
  TakeIds(&queue, 0, 2);
  EXPECT_OK(queue.Fail(0, 1, absl::UnavailableError("push failed")));
  queue.Abort(absl::DataLossError("server 1 is lost"));
  EXPECT_OK(queue.Return(0, 2));
  ASSERT_TRUE(queue.idle());
  EXPECT_THAT(queue.TakeFailure(), StatusIs(absl::StatusCode::kDataLoss,
                                            AllOf(HasSubstr("server 1 is lost"),
                                                  HasSubstr("push failed"))));
  EXPECT_TRUE(queue.failing());
  EXPECT_THAT(queue.TakeFailure(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(ClosureQueueTest, AQueuedClosureIsCancelledAtOnce) {
  ClosureQueue queue({.worker_count = 1});
  const Values values = AddMany(&queue, 3);
  queue.Cancel(2);
  EXPECT_THAT(values[1]->status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_FALSE(queue.failing());
  queue.WorkerReady(0);
  EXPECT_THAT(TakeIds(&queue, 0), ElementsAre(1, 3));
  queue.Cancel(2);  // A cancelled closure and an unknown id have no effect.
  queue.Cancel(77);
}

TEST(ClosureQueueTest, AClosureInFlightIsCancelledUnlessItHasBeenStarted) {
  ClosureQueue queue({.worker_count = 1});
  const Values values = AddMany(&queue, 2);
  queue.WorkerReady(0);
  TakeIds(&queue, 0);
  queue.CancelAll();
  EXPECT_THAT(queue.TakeRecalls(0), ElementsAre(1, 2));
  EXPECT_FALSE(queue.HasRecallsFor(0));
  EXPECT_OK(queue.Finish(0, 1, {}));
  EXPECT_OK(queue.Return(0, 2));
  EXPECT_OK(values[0]->status());
  EXPECT_THAT(values[1]->status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_TRUE(queue.idle());
  EXPECT_OK(queue.TakeFailure());  // Cancelling is not a failure.
}

TEST(ClosureQueueTest, SchedulingAndCancellingWithoutAWorkerTakesNoMemory) {
  ClosureQueue queue({.worker_count = 1, .queued_closures_max = 100});
  const auto oldest = queue.Add({});
  int scheduled_count = 0;
  while (queue.HasRoom()) {
    queue.Cancel(queue.Add({})->closure_id());
    ++scheduled_count;
  }
  // The oldest closure holds the low-water mark, so the queue becomes full.
  EXPECT_EQ(scheduled_count, 399);
  queue.Cancel(oldest->closure_id());
  EXPECT_TRUE(queue.HasRoom());
  EXPECT_EQ(queue.low_water_mark(), 401u);
}

TEST(ClosureQueueTest, AnIdleWorkerGetsUnstartedClosuresOfABusyOne) {
  ClosureQueue queue({.worker_count = 2});
  const Values values = AddMany(&queue, 7);
  queue.WorkerReady(0);
  EXPECT_THAT(TakeIds(&queue, 0), ElementsAre(1, 2, 3, 4, 5, 6, 7));
  EXPECT_FALSE(queue.HasRecallsFor(0));
  queue.WorkerReady(1);
  EXPECT_THAT(queue.TakeRecalls(0), ElementsAre(7, 6, 5));
  EXPECT_OK(queue.Return(0, 7));
  EXPECT_OK(queue.Return(0, 6));
  EXPECT_OK(queue.Return(0, 5));
  EXPECT_THAT(TakeIds(&queue, 1, 1), ElementsAre(5));
  // A closure that is recalled too late finishes on its worker.
  EXPECT_OK(queue.Finish(0, 1, {}));
  EXPECT_EQ(queue.requeued_count(), 0);  // No worker was lost.
}

TEST(ClosureQueueTest, VeryShortClosuresAreNotRecalled) {
  ClosureQueue queue(
      {.worker_count = 2, .recall_worth_min = absl::Milliseconds(2)});
  const Values values = AddMany(&queue, 7);
  queue.WorkerReady(0);
  queue.ObservePace(0, 100, absl::Milliseconds(1));
  TakeIds(&queue, 0);
  queue.WorkerReady(1);
  EXPECT_FALSE(queue.HasRecallsFor(0));
}

TEST(ClosureQueueTest, FewClosuresAreReservedForIdleWorkers) {
  ClosureQueue queue({.worker_count = 3});
  for (int worker = 0; worker < 3; ++worker) queue.WorkerReady(worker);
  const Values first = AddMany(&queue, 1);
  EXPECT_THAT(TakeIds(&queue, 0), ElementsAre(1));
  // One closure for each of the two idle workers, and none for this one.
  const Values more = AddMany(&queue, 2);
  EXPECT_FALSE(queue.HasClosuresFor(0));
  EXPECT_THAT(TakeIds(&queue, 0), ElementsAre());
  const Values one_more = AddMany(&queue, 1);
  EXPECT_TRUE(queue.HasClosuresFor(0));
  EXPECT_THAT(TakeIds(&queue, 0, 1), ElementsAre(2));
  EXPECT_THAT(TakeIds(&queue, 1, 1), ElementsAre(3));
  EXPECT_THAT(TakeIds(&queue, 2, 1), ElementsAre(4));
  // All workers are busy, so any worker may take the closure.
  const Values last = AddMany(&queue, 1);
  EXPECT_THAT(TakeIds(&queue, 1), ElementsAre(5));
}

TEST(ClosureQueueTest, AnUnreferencedResultIsNotRequested) {
  ClosureQueue queue({.worker_count = 1});
  const auto kept = queue.Add({});
  queue.Add({});
  queue.WorkerReady(0);
  std::vector<ClosureQueue::Taken> taken;
  queue.Take(0, 10, &taken);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_TRUE(taken[0].result_wanted);
  EXPECT_FALSE(taken[1].result_wanted);
}

TEST(ClosureQueueTest, DescribesTheWorkersOfAWait) {
  ClosureQueue queue({.worker_count = 2, .window = {.closures_at_start = 1}});
  const Values values = AddMany(&queue, 5);
  queue.WorkerReady(1);
  TakeIds(&queue, 1);
  EXPECT_THAT(queue.Describe(),
              AllOf(HasSubstr("3 closures are queued"),
                    HasSubstr("worker 0 is not connected"),
                    HasSubstr("worker 1 holds 2, the oldest is closure 1")));
}

}  // namespace
}  // namespace muster
