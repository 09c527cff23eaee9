#include "deploy/musterctl/status_view.h"

#include <string>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

// The status of a coordinator.
constexpr char kStatus[] = R"({
  "process": {"task": "chief", "role": "chief", "index": 0, "host": "h0",
              "process_id": 17, "uptime_seconds": 192.25, "job": "digits"},
  "ready": true,
  "training": {"epoch": 3, "epochs": 30, "step_in_epoch": 17,
               "steps_per_epoch": 43, "steps_per_second": 1204.25,
               "examples_per_second": 38400, "seconds_left": 3723.5,
               "values": {"loss": 0.3125}},
  "queue": {"queued": 12, "in_flight": 4, "done": 12345, "retried": 1},
  "tasks": [
    {"task": "worker 0", "state": "connected", "in_state_seconds": 180,
     "closures_in_flight": 2, "closures_done": 6012, "closure_seconds": 0.001},
    {"task": "worker 1", "state": "connected", "in_state_seconds": 180,
     "closures_in_flight": 2, "closures_done": 600, "closure_seconds": 0.01,
     "is_straggler": true},
    {"task": "ps 0", "state": "lost", "in_state_seconds": 5,
     "problem": "silent\u001b[2J for 5s"}],
  "waits": [{"waiter": "worker 0", "awaited": "worker 1",
             "what": "all-reduce of dense/kernel", "seconds": 31}],
  "checkpoints": {"failures": 0,
                  "newest": {"name": "run/ckpt-3", "age_seconds": 12}},
  "time": 1000,
  "timeline": {"goodput": 0.975, "elapsed_seconds": 80, "lost_seconds": 2,
               "event_count": 7,
               "events": [{"time": 940, "text": "worker 1 is lost",
                           "cost_seconds": 0}]},
  "problems": {"warnings": 2, "errors": 0,
               "latest": [{"message": "old"}, {"message": "ps 0 is lost"}]}
})";

TEST(StatusViewTest, PrintsWhatAPersonLooksFor) {
  ASSERT_OK_AND_ASSIGN(const std::string text, StatusText(kStatus));
  for (const char* const part :
       {"digits: chief on h0, process 17, up 3m12s, ready\n",
        "epoch 3/30, step 17/43, 1204.2 steps/s, 38400 examples/s, "
        "1h2m3s left, loss 0.3125\n",
        "closures: 12 queued, 4 in flight, 12345 done, 1 retried\n",
        "newest checkpoint: run/ckpt-3, 12s ago\n",
        "2 in flight, 6012 done, 1ms each\n", "10ms each, SLOW\n",
        "worker 0 has waited 31s for worker 1: all-reduce of dense/kernel\n",
        "goodput 97.5%: of 1m20s of training, losses have cost 2s; 7 events\n",
        "  1m ago: worker 1 is lost\n",
        "2 warnings, 0 errors; the last: ps 0 is lost\n"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(StatusViewTest, PrintsNoControlCharactersOfTasks) {
  ASSERT_OK_AND_ASSIGN(const std::string text, StatusText(kStatus));
  EXPECT_THAT(text, HasSubstr("silent [2J for 5s"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(StatusViewTest, RanksTheSlowestFirst) {
  ASSERT_OK_AND_ASSIGN(const std::string text, SlowTasksText(kStatus));
  const size_t slow = text.find("worker 1 ");
  const size_t fast = text.find("worker 0 ");
  ASSERT_NE(slow, text.npos);
  ASSERT_NE(fast, text.npos);
  EXPECT_LT(slow, fast) << text;
  EXPECT_THAT(text, HasSubstr("SLOW"));
}

TEST(StatusViewTest, RanksSynchronousTasksByTheShareOfWaiting) {
  ASSERT_OK_AND_ASSIGN(const std::string text, SlowTasksText(R"({"process": {},
      "tasks": [{"task": "worker 1", "waited_share": 0.05},
                {"task": "worker 2", "waited_share": 0.6}]})"));
  EXPECT_THAT(text, HasSubstr("waited for 60% of the time"));
  EXPECT_LT(text.find("worker 2"), text.find("worker 1")) << text;
}

TEST(StatusViewTest, LeavesOutWhatIsUnknown) {
  ASSERT_OK_AND_ASSIGN(const std::string text,
                       StatusText(R"({"process": {"task": "chief"}})"));
  EXPECT_THAT(text, HasSubstr("chief"));
  EXPECT_THAT(text, Not(HasSubstr("epoch")));
  ASSERT_OK_AND_ASSIGN(const std::string slow,
                       SlowTasksText(R"({"process": {}})"));
  EXPECT_THAT(slow, HasSubstr("no task's speed is known"));
}

TEST(StatusViewTest, RefusesWhatIsNoStatus) {
  for (const char* const text : {"", "[]", "{}", "<html>", "{\"process\":1}"}) {
    EXPECT_THAT(StatusText(text).status(),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("not the status of a task")));
  }
}

// Values of other types than expected must not end the program.
TEST(StatusViewTest, ReadsDamagedFields) {
  ASSERT_OK_AND_ASSIGN(const std::string text, StatusText(R"({
      "process": {"task": 5, "uptime_seconds": "x"}, "training": [1],
      "tasks": [3, {"task": null, "closure_seconds": {}}], "waits": "no",
      "problems": {"warnings": 1, "latest": [7]}})"));
  EXPECT_THAT(text, HasSubstr("1 warnings"));
}

}  // namespace
}  // namespace muster
