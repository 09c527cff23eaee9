#include "common/net/status/status_json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using Json = nlohmann::json;

const absl::Time kNow = absl::FromUnixSeconds(1000);

Json Write(const StatusReport& report, const RecentProblems& problems = {}) {
  const ProcessStatus process = {.version = "1.2",
                                 .job = "digits",
                                 .task = "worker 1",
                                 .role = "worker",
                                 .index = 1,
                                 .incarnation = 0xFFFFFFFFFFFFFFFF,
                                 .address = "h1:2222",
                                 .start = kNow - absl::Seconds(30)};
  return Json::parse(StatusJson(process, report, problems, {}, kNow));
}

TEST(StatusJsonTest, DescribesTheProcess) {
  const Json json = Write({});
  EXPECT_EQ(json["time"], 1000);
  EXPECT_EQ(json["process"]["task"], "worker 1");
  EXPECT_EQ(json["process"]["job"], "digits");
  // A string, because a browser would lose bits of a number.
  EXPECT_EQ(json["process"]["incarnation"], "ffffffffffffffff");
  EXPECT_EQ(json["process"]["uptime_seconds"], 30);
  EXPECT_EQ(json["ready"], false);
  EXPECT_EQ(json["not_ready_because"], "the process is starting");
  EXPECT_FALSE(json.contains("training"));
}

TEST(StatusJsonTest, DescribesTheCluster) {
  StatusReport report;
  report.readiness.push_back(absl::OkStatus());
  report.queue = QueueStatus{.queued_count = 3, .retried_count = 2};
  report.tasks.push_back({.task = "ps 0",
                          .state = TaskStatus::State::kLost,
                          .in_state = absl::Seconds(12),
                          .problem = "connection refused",
                          .update_count = 7});
  report.waits.push_back({.waiter = "worker 0",
                          .awaited = "worker 1",
                          .what = "all-reduce of a",
                          .elapsed = absl::Seconds(4)});
  report.checkpoint = {.name = "checkpoint c/ckpt-1",
                       .time = kNow - absl::Seconds(60),
                       .duration = absl::Seconds(2),
                       .count = 4};
  const Json json = Write(report);
  EXPECT_EQ(json["ready"], true);
  EXPECT_FALSE(json.contains("not_ready_because"));
  EXPECT_EQ(json["queue"]["queued"], 3);
  EXPECT_EQ(json["queue"]["retried"], 2);
  const Json& task = json["tasks"][0];
  EXPECT_EQ(task["state"], "lost");
  EXPECT_EQ(task["in_state_seconds"], 12);
  EXPECT_EQ(task["problem"], "connection refused");
  EXPECT_EQ(task["updates"], 7);
  EXPECT_FALSE(task.contains("closures_done"));
  EXPECT_EQ(json["waits"][0]["awaited"], "worker 1");
  EXPECT_EQ(json["waits"][0]["seconds"], 4);
  EXPECT_EQ(json["checkpoints"]["newest"]["age_seconds"], 60);
}

TEST(StatusJsonTest, DescribesTraining) {
  StatusReport report;
  report.training = TrainingStatus{
      .epoch = 2,
      .epoch_count = 5,
      .step_count = 70,
      .time_left = absl::Minutes(2),
      .values = {{"loss", std::numeric_limits<double>::quiet_NaN()}},
      .series = {{.time = kNow, .step = 70, .values = {{"loss", 0.5}}}}};
  const Json json = Write(report);
  EXPECT_EQ(json["training"]["epoch"], 2);
  EXPECT_FALSE(json["training"].contains("steps_per_epoch"));
  EXPECT_EQ(json["training"]["seconds_left"], 120);
  EXPECT_TRUE(json["training"]["values"]["loss"].is_null());
  EXPECT_EQ(json["training"]["series"][0]["step"], 70);
  EXPECT_EQ(json["training"]["series"][0]["values"]["loss"], 0.5);
}

TEST(StatusJsonTest, DescribesCollectives) {
  EXPECT_FALSE(Write({}).contains("collectives"));
  StatusReport report;
  report.collectives.push_back({.operation = "all_reduce",
                                .count = 5,
                                .median = absl::Milliseconds(2),
                                .percentile_99 = absl::Milliseconds(50)});
  EXPECT_EQ(Write(report)["collectives"][0],
            Json({{"operation", "all_reduce"},
                  {"count", 5},
                  {"median_seconds", 0.002},
                  {"percentile_99_seconds", 0.05}}));
}

TEST(StatusJsonTest, SurvivesBytesThatAreNotText) {
  RecentProblems problems;
  problems.error_count = 1;
  problems.records.push_back({.time = kNow,
                              .severity = LogSeverity::kError,
                              .message = "</script>\xFF\"\n"});
  const Json json = Write({}, problems);
  EXPECT_EQ(json["problems"]["errors"], 1);
  EXPECT_EQ(json["problems"]["latest"][0]["severity"], "error");
  EXPECT_EQ(json["problems"]["latest"][0]["message"],
            "</script>\xEF\xBF\xBD\"\n");
}

}  // namespace
}  // namespace muster
