#include "common/net/status/trace_collector.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "common/net/status/chrome_trace.h"
#include "common/net/status/trace_service.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/trace.pb.h"

namespace muster {
namespace {

using Json = nlohmann::json;

TEST(ClockEstimatorTest, TheShortestRoundTripCounts) {
  ClockEstimator estimator;
  // The other clock is 1,000 ahead. The answers were read early and late.
  estimator.Add(/*sent_ns=*/0, /*read_ns=*/1010, /*received_ns=*/100);
  EXPECT_EQ(estimator.estimate().error_ns, 50);
  estimator.Add(/*sent_ns=*/200, /*read_ns=*/1207, /*received_ns=*/210);
  EXPECT_EQ(estimator.estimate().offset_ns, 1002);
  EXPECT_EQ(estimator.estimate().error_ns, 5);
  estimator.Add(/*sent_ns=*/300, /*read_ns=*/1390, /*received_ns=*/400);
  EXPECT_EQ(estimator.estimate().error_ns, 5);
}

TEST(ClockEstimatorTest, TheErrorHoldsWheneverTheClockWasRead) {
  constexpr int64_t kOffset = -12345;
  for (int64_t read = 0; read <= 40; ++read) {
    ClockEstimator estimator;
    estimator.Add(1000, 1000 + read + kOffset, 1040);
    EXPECT_LE(std::abs(estimator.estimate().offset_ns - kOffset),
              estimator.estimate().error_ns)
        << read;
  }
}

proto::TraceResponse TwoSpans(int64_t start_ns) {
  proto::TraceResponse spans;
  spans.add_names("kernel");
  spans.add_names("MatMul \"x\"");
  for (const int64_t difference_ns : {start_ns, int64_t{2000}}) {
    spans.add_category(0);
    spans.add_name(1);
    spans.add_start_ns(difference_ns);
    spans.add_duration_ns(500);
    spans.add_thread(3);
    spans.add_overlaps(difference_ns == 2000);
  }
  spans.set_dropped_count(7);
  return spans;
}

TEST(ChromeTraceTest, PutsTasksOnOneClock) {
  const std::string text = ChromeTraceJson(
      {{.task = "chief",
        .spans = std::make_shared<const proto::TraceResponse>(TwoSpans(10'000)),
        .clock_offset_ns = 0},
       {.task = "worker 0",
        .spans =
            std::make_shared<const proto::TraceResponse>(TwoSpans(1'011'000)),
        .clock_offset_ns = 1'000'000,
        .clock_error_ns = 2500}});
  const Json trace = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(trace.is_object()) << text;
  EXPECT_EQ(trace["otherData"]["clock_error_us"]["worker 0"], 2.5);
  EXPECT_EQ(trace["otherData"]["dropped_spans"]["chief"], 7);
  // Each task has four events: its name, a span, and the begin and the end of
  // an overlapping span.
  ASSERT_EQ(trace["traceEvents"].size(), 8);
  const Json& name = trace["traceEvents"][4];
  EXPECT_EQ(name["ph"], "M");
  EXPECT_EQ(name["args"]["name"], "worker 0");
  const Json& span = trace["traceEvents"][5];
  EXPECT_EQ(span["ph"], "X");
  EXPECT_EQ(span["name"], "MatMul \"x\"");
  EXPECT_EQ(span["cat"], "kernel");
  EXPECT_EQ(span["pid"], 1);
  EXPECT_EQ(span["tid"], 3);
  // The chief's first span is the origin.
  EXPECT_EQ(trace["traceEvents"][1]["ts"], 0);
  EXPECT_EQ(span["ts"], 1);
  EXPECT_EQ(span["dur"], 0.5);
  const Json& begin = trace["traceEvents"][6];
  const Json& end = trace["traceEvents"][7];
  EXPECT_EQ(begin["ph"], "b");
  EXPECT_EQ(begin["ts"], 3);
  EXPECT_EQ(end["ph"], "e");
  EXPECT_EQ(end["ts"], 3.5);
  EXPECT_EQ(begin["id"], end["id"]);
}

TEST(ChromeTraceTest, RefusesListsThatDoNotFit) {
  EXPECT_OK(CheckSpans(TwoSpans(1)));
  proto::TraceResponse short_list = TwoSpans(1);
  short_list.mutable_thread()->RemoveLast();
  EXPECT_THAT(CheckSpans(short_list), StatusIs(absl::StatusCode::kDataLoss));
  proto::TraceResponse no_name = TwoSpans(1);
  no_name.set_name(1, 2);
  EXPECT_THAT(CheckSpans(no_name), StatusIs(absl::StatusCode::kDataLoss));
}

// A lost or drained worker must not delay the end of the job.
TEST(TraceCollectorTest, ATaskThatIsGoneIsLeftOutWithoutAWait) {
  AdmissionCheck admission_check({"worker", 0, 5});
  Service service;
  AddTraceMethod(&service);
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Server> server,
                       Network::Grpc()->Listen({.address = "127.0.0.1:0"},
                                               &service, &admission_check));
  TraceCollector collector("chief");
  collector.Add("worker 0",
                Network::Grpc()->Connect({.address = server->address(),
                                          .peer_task_type = "worker",
                                          .peer_task_index = 0,
                                          .caller = {"chief", 0, 4},
                                          .job_id = "job"}));
  server = nullptr;
  Clock* const clock = Clock::Real();
  const absl::Time begin = clock->Now();
  const Json trace =
      Json::parse(collector.Json(), nullptr, /*allow_exceptions=*/false);
  EXPECT_LT(clock->Now() - begin, absl::Seconds(5));
  EXPECT_EQ(trace["otherData"]["clock_error_us"].size(), 1) << trace;
}

}  // namespace
}  // namespace muster
