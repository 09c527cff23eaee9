#include "common/learn/train/run_summary.h"

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

TEST(RunSummaryTest, SaysThatAnOperatorHasStoppedTheRun) {
  RunSummary summary;
  EXPECT_EQ(nlohmann::json::parse(ToJson(summary)).at("is_stopped"), false);
  summary.history.is_stopped = true;
  EXPECT_EQ(nlohmann::json::parse(ToJson(summary)).at("is_stopped"), true);
}

}  // namespace
}  // namespace muster
