#include "common/net/status/job_trace.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/trace.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "common/net/status/trace_service.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using Json = nlohmann::json;
const auto kNotNow = absl::StatusCode::kFailedPrecondition;

class JobTraceTest : public testing::Test {
 protected:
  JobTraceTest() {
    AddTraceMethod(&service_);
    server_ = *Network::Grpc()->Listen({.address = "127.0.0.1:0"}, &service_,
                                       &admission_check_);
    trace_.SetTask("chief 0");
  }

  JobTrace::AddOthers AddWorker() {
    return [address = server_->address()](TraceCollector* collector) {
      collector->Add("worker 0",
                     Network::Grpc()->Connect({.address = address,
                                               .peer_task_type = "worker",
                                               .peer_task_index = 0,
                                               .caller = {"chief", 0, 4},
                                               .job_id = "job"}));
    };
  }

  // Returns the names of the tasks in a trace.
  static std::vector<std::string> TasksOf(const std::string& text) {
    const Json trace = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    std::vector<std::string> tasks;
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] == "M") tasks.push_back(event["args"]["name"]);
    }
    return tasks;
  }

  AdmissionCheck admission_check_{{"worker", 0, 5}};
  Service service_;
  std::unique_ptr<Server> server_;
  JobTrace trace_;
};

TEST_F(JobTraceTest, TasksAreAddedWhicheverComesFirst) {
  ASSERT_OK(trace_.Begin());
  EXPECT_TRUE(IsTracing());
  trace_.SetOthers(AddWorker());
  ASSERT_OK_AND_ASSIGN(const std::string before, trace_.End());
  EXPECT_THAT(TasksOf(before), ElementsAre("chief 0", "worker 0"));
  EXPECT_FALSE(IsTracing());

  ASSERT_OK(trace_.Begin());
  ASSERT_OK_AND_ASSIGN(const std::string after, trace_.End());
  EXPECT_THAT(TasksOf(after), ElementsAre("chief 0", "worker 0"));
}

TEST_F(JobTraceTest, TasksThatEndAreCollectedBefore) {
  trace_.SetOthers(AddWorker());
  ASSERT_OK(trace_.Begin());
  trace_.SetOthers(nullptr);
  server_ = nullptr;
  ASSERT_OK_AND_ASSIGN(const std::string trace, trace_.End());
  EXPECT_THAT(TasksOf(trace), ElementsAre("chief 0", "worker 0"));

  ASSERT_OK(trace_.Begin());
  ASSERT_OK_AND_ASSIGN(const std::string alone, trace_.End());
  EXPECT_THAT(TasksOf(alone), ElementsAre("chief 0"));
}

TEST_F(JobTraceTest, ALostTaskIsLeftOutWithoutAWait) {
  trace_.SetOthers(AddWorker());
  server_ = nullptr;
  Clock* const clock = Clock::Real();
  const absl::Time begin = clock->Now();
  ASSERT_OK(trace_.Begin());
  EXPECT_LT(clock->Now() - begin, absl::Seconds(5));
  ASSERT_OK_AND_ASSIGN(const std::string trace, trace_.End());
  EXPECT_THAT(TasksOf(trace), ElementsAre("chief 0"));
}

TEST_F(JobTraceTest, ThereIsOneAtATime) {
  EXPECT_THAT(trace_.End(), StatusIs(kNotNow));
  ASSERT_OK(trace_.Begin());
  EXPECT_THAT(trace_.Begin(),
              StatusIs(kNotNow, testing::HasSubstr("is being recorded")));
  EXPECT_OK(trace_.End());
  EXPECT_THAT(trace_.End(), StatusIs(kNotNow));
}

}  // namespace
}  // namespace muster
