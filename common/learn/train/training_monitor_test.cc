#include "common/learn/train/training_monitor.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "common/core/system/metrics.h"
#include "common/learn/train/base/step_results.h"
#include "common/learn/train/metric_sums.h"
#include "common/net/status/status_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Returns the sums of an epoch in which `example_count` examples have a loss of
// 0.5.
MetricSums Sums(double example_count) {
  MetricSums sums({.losses = {"loss"}, .metrics = {}});
  EXPECT_OK(sums.Restore({{0.5 * example_count, example_count}}));
  return sums;
}

class TrainingMonitorTest : public testing::Test {
 protected:
  // Ends one step of 32 examples after `duration`.
  void Step(TrainingMonitor* monitor, absl::Duration duration) {
    clock_.Advance(duration);
    ++step_;
    monitor->OnSteps({.count = 1,
                      .duration = duration,
                      .end = clock_.Now(),
                      .step_in_epoch = step_},
                     Sums(32.0 * static_cast<double>(step_)));
  }

  SimulatedClock clock_;
  int64_t step_ = 0;
};

TEST_F(TrainingMonitorTest, CountsStepsAndExamples) {
  Counter* const steps = GetCounter({"muster_steps_total", ""});
  Counter* const examples = GetCounter({"muster_examples_total", ""});
  const int64_t steps_before = steps->value();
  const int64_t examples_before = examples->value();
  TrainingMonitor monitor(5, &clock_);
  monitor.BeginEpoch(0, 3);
  for (int i = 0; i < 3; ++i) Step(&monitor, absl::Milliseconds(10));
  // The sums start from zero in each epoch.
  step_ = 0;
  monitor.BeginEpoch(1, 3);
  Step(&monitor, absl::Milliseconds(10));
  EXPECT_EQ(steps->value() - steps_before, 4);
  EXPECT_EQ(examples->value() - examples_before, 4 * 32);
}

TEST_F(TrainingMonitorTest, ReportsProgress) {
  EXPECT_FALSE(ReadStatus().training.has_value());
  auto monitor = std::make_unique<TrainingMonitor>(5, &clock_);
  monitor->BeginEpoch(1, std::nullopt);
  for (int i = 0; i < 40; ++i) Step(monitor.get(), absl::Milliseconds(100));
  const StatusReport report = ReadStatus();
  EXPECT_OK(Readiness(report));
  ASSERT_TRUE(report.training.has_value());
  const TrainingStatus& training = *report.training;
  EXPECT_EQ(training.epoch, 2);
  EXPECT_EQ(training.epoch_count, 5);
  EXPECT_EQ(training.step_in_epoch, 40);
  EXPECT_EQ(training.steps_per_epoch, std::nullopt);
  EXPECT_EQ(training.example_count, 40 * 32);
  EXPECT_NEAR(training.steps_per_second, 10, 0.01);
  EXPECT_NEAR(training.examples_per_second, 320, 0.5);
  EXPECT_THAT(training.values, ElementsAre(Pair("loss", 0.5)));
  // The rate falls if training stalls.
  clock_.Advance(absl::Seconds(60));
  EXPECT_LT(ReadStatus().training->steps_per_second, 1);

  monitor->EndEpoch({{"loss", 0.4}, {"val_loss", 0.6}});
  EXPECT_THAT(ReadStatus().training->values,
              ElementsAre(Pair("loss", 0.4), Pair("val_loss", 0.6)));
  EXPECT_EQ(
      GetGauge({"muster_training_value", ""}, {{"name", "val_loss"}})->value(),
      0.6);
  monitor = nullptr;
  EXPECT_FALSE(ReadStatus().training.has_value());
}

// Returns the number of points that have a value of this name.
int64_t PointsWith(absl::string_view name) {
  int64_t count = 0;
  const StatusReport report = ReadStatus();
  for (const TrainingStatus::Point& point : report.training->series) {
    count += static_cast<int64_t>(point.values.count(std::string(name)));
  }
  return count;
}

// Returns the losses of the series, in order.
std::vector<double> Losses() {
  std::vector<double> losses;
  const StatusReport report = ReadStatus();
  for (const TrainingStatus::Point& point : report.training->series) {
    const auto loss = point.values.find("loss");
    if (loss != point.values.end()) losses.push_back(loss->second);
  }
  return losses;
}

TEST_F(TrainingMonitorTest, AnEpochHasItsEndInTheSeries) {
  TrainingMonitor monitor(10, &clock_);
  for (int i = 0; i < 10; ++i) {
    step_ = 0;
    monitor.BeginEpoch(i, 2);
    Step(&monitor, absl::Milliseconds(340));
    Step(&monitor, absl::Milliseconds(340));
    monitor.EndEpoch({{"loss", i + 1.0}});
  }
  EXPECT_THAT(Losses(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
}

// When points are thinned out, those within epochs are removed first.
TEST_F(TrainingMonitorTest, EndsOfEpochsAreKeptLongest) {
  TrainingMonitor monitor(100, &clock_);
  std::vector<double> ends;
  for (int i = 0; i < 100; ++i) {
    step_ = 0;
    monitor.BeginEpoch(i, 3);
    for (int j = 0; j < 3; ++j) Step(&monitor, absl::Milliseconds(700));
    monitor.EndEpoch({{"loss", i + 1.0}});
    ends.push_back(i + 1.0);
  }
  std::vector<double> losses = Losses();
  std::erase(losses, 0.5);
  EXPECT_EQ(losses, ends);
}

TEST_F(TrainingMonitorTest, EstimatesTheTimeLeft) {
  TrainingMonitor monitor(6, &clock_);
  EXPECT_EQ(ReadStatus().training->time_left, std::nullopt);
  monitor.BeginEpoch(2, 10);
  EXPECT_EQ(ReadStatus().training->time_left, std::nullopt);
  Step(&monitor, absl::Seconds(2));
  EXPECT_EQ(ReadStatus().training->time_left, absl::Seconds(78));
  for (int i = 0; i < 9; ++i) Step(&monitor, absl::Seconds(2));
  clock_.Advance(absl::Seconds(10));  // Validation.
  monitor.EndEpoch({{"loss", 0.5}});
  EXPECT_EQ(ReadStatus().training->time_left, absl::Seconds(90));
  step_ = 0;
  monitor.BeginEpoch(3, 10);
  Step(&monitor, absl::Seconds(5));
  EXPECT_EQ(ReadStatus().training->time_left, absl::Seconds(85));
  // An epoch that takes longer than those before.
  clock_.Advance(absl::Seconds(100));
  EXPECT_EQ(ReadStatus().training->time_left, absl::Seconds(60));
}

TEST_F(TrainingMonitorTest, KeepsThePointsOfValidation) {
  TrainingMonitor monitor(1000, &clock_);
  // An epoch ends just after a sample of its steps.
  const auto train = [&](int epoch_count) {
    for (int i = 0; i < epoch_count; ++i) {
      step_ = 0;
      monitor.BeginEpoch(i, 2);
      Step(&monitor, absl::Milliseconds(600));
      Step(&monitor, absl::Milliseconds(100));
      monitor.EndEpoch({{"loss", 0.5}, {"val_loss", 0.25}});
    }
  };
  train(20);
  EXPECT_EQ(PointsWith("loss"), 20);
  EXPECT_EQ(PointsWith("val_loss"), 20);

  train(980);
  const int64_t loss_count = PointsWith("loss");
  EXPECT_GE(loss_count, TrainingMonitor::kPointsMax / 8);
  EXPECT_NEAR(PointsWith("val_loss"), loss_count, 2);
  EXPECT_LT(ReadStatus().training->series.size(), TrainingMonitor::kPointsMax);
}

}  // namespace
}  // namespace muster
