#include "common/learn/train/run_summary.h"

#include "absl/time/time.h"
#include "common/net/status/status_report.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

TEST(RunSummaryTest, TotalTimeCountsEarlierRunsAsTrainTimeDoes) {
  RunSummary summary;
  summary.history.earlier_train_seconds = 60;
  summary.history.train_seconds = 62;
  summary.history.example_count = 620;
  summary.run_seconds = 3;
  const nlohmann::json json = nlohmann::json::parse(ToJson(summary));
  EXPECT_EQ(json.at("train_seconds"), 62);
  EXPECT_EQ(json.at("total_seconds"), 63);
  EXPECT_EQ(json.at("examples_per_second"), 10);
}

TEST(RunSummaryTest, HasTheEventsAndTheirCost) {
  RunSummary summary;
  EXPECT_TRUE(nlohmann::json::parse(ToJson(summary)).at("goodput").is_null());
  summary.report.timeline = TimelineStatus{
      .events = {{.time = absl::FromUnixMillis(1'800'000'000'250),
                  .text = "worker 1 is lost",
                  .cost = absl::Seconds(2)}},
      .lost = absl::Seconds(2),
      .goodput = 0.75};
  const nlohmann::json json = nlohmann::json::parse(ToJson(summary));
  EXPECT_EQ(json.at("goodput"), 0.75);
  EXPECT_EQ(json.at("lost_seconds"), 2);
  EXPECT_EQ(json.at("events").at(0),
            (nlohmann::json{{"time", "2027-01-15T08:00:00.250Z"},
                            {"text", "worker 1 is lost"},
                            {"cost_seconds", 2.0}}));
}

TEST(RunSummaryTest, SaysThatAnOperatorHasStoppedTheRun) {
  RunSummary summary;
  EXPECT_EQ(nlohmann::json::parse(ToJson(summary)).at("is_stopped"), false);
  summary.history.is_stopped = true;
  EXPECT_EQ(nlohmann::json::parse(ToJson(summary)).at("is_stopped"), true);
}

}  // namespace
}  // namespace muster
