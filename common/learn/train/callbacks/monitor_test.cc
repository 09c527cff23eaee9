#include "common/learn/train/callbacks/monitor.h"

#include <cmath>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_matchers.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

MonitorMode DirectionOf(absl::string_view name) {
  return Monitor::Create("Test", name, MonitorMode::kAuto)->direction();
}

TEST(MonitorTest, NamesImplyTheDirection) {
  for (const char* const name :
       {"loss", "val_loss", "out_loss", "mean_squared_error", "mae",
        "val_mean_absolute_error", "false_positives"}) {
    EXPECT_EQ(DirectionOf(name), MonitorMode::kMin) << name;
  }
  for (const char* const name :
       {"accuracy", "val_acc", "sparse_categorical_accuracy", "auc", "val_auc",
        "top_k_categorical_accuracy", "precision", "fmeasure"}) {
    EXPECT_EQ(DirectionOf(name), MonitorMode::kMax) << name;
  }
}

TEST(MonitorTest, RejectsNamesThatImplyNoDirection) {
  const absl::Status status =
      Monitor::Create("EarlyStopping", "val_mean", MonitorMode::kAuto).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "EarlyStopping")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "val_mean")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "mode")) << status;
  EXPECT_OK(Monitor::Create("EarlyStopping", "val_mean", MonitorMode::kMin));
}

TEST(MonitorTest, SmallChangesAreNoImprovement) {
  ASSERT_OK_AND_ASSIGN(
      const Monitor loss,
      Monitor::Create("Test", "loss", MonitorMode::kAuto, -0.5));
  EXPECT_FALSE(loss.IsImprovement(9.5, 10));
  EXPECT_TRUE(loss.IsImprovement(9.25, 10));
  ASSERT_OK_AND_ASSIGN(
      const Monitor accuracy,
      Monitor::Create("Test", "accuracy", MonitorMode::kAuto, 0.5));
  EXPECT_FALSE(accuracy.IsImprovement(10.5, 10));
  EXPECT_TRUE(accuracy.IsImprovement(10.75, 10));
}

TEST(MonitorTest, AnyNumberIsBetterThanNaN) {
  ASSERT_OK_AND_ASSIGN(const Monitor loss,
                       Monitor::Create("Test", "loss", MonitorMode::kAuto));
  EXPECT_TRUE(loss.IsImprovement(NAN, std::nullopt));
  EXPECT_FALSE(loss.IsImprovement(NAN, NAN));
  EXPECT_TRUE(loss.IsImprovement(1e30, NAN));
  EXPECT_FALSE(loss.IsImprovement(NAN, 1e30));
}

TEST(SaveCountsTest, RoundTripsCounts) {
  int wait = 0;
  int epoch = 0;
  std::optional<double> best = 5;
  EXPECT_OK(
      RestoreCounts("Test", SaveCounts({3, 7}, 0.1), {&wait, &epoch}, &best));
  EXPECT_EQ(wait, 3);
  EXPECT_EQ(epoch, 7);
  EXPECT_EQ(best, 0.1);
  EXPECT_OK(RestoreCounts("Test", SaveCounts({4, 8}, std::nullopt),
                          {&wait, &epoch}, &best));
  EXPECT_EQ(wait, 4);
  EXPECT_EQ(best, std::nullopt);
}

TEST(SaveCountsTest, InvalidTextIsRejected) {
  int wait = 1;
  std::optional<double> best;
  for (const char* const text : {"", "1", "x;none", "1;2;none", "1;y"}) {
    EXPECT_THAT(RestoreCounts("Test", text, {&wait}, &best),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
  EXPECT_EQ(wait, 1);
}

}  // namespace
}  // namespace muster
