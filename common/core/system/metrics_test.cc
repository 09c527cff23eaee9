#include "common/core/system/metrics.h"

#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::Pair;

// The family `name`; without samples if there is none.
MetricFamily Read(absl::string_view name) {
  for (MetricFamily& family : ReadMetrics()) {
    if (family.name == name) return std::move(family);
  }
  return {};
}

TEST(MetricsTest, CountsFromManyThreads) {
  constexpr MetricInfo kInfo = {"muster_threads_test_total", "A test."};
  Counter* const counter = GetCounter(kInfo);
  EXPECT_EQ(GetCounter(kInfo), counter);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([counter] {
      for (int j = 0; j < 1000; ++j) counter->Add();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MetricFamily family = Read(kInfo.name);
  EXPECT_EQ(family.kind, CellKind::kCounter);
  EXPECT_EQ(family.help, "A test.");
  ASSERT_EQ(family.samples.size(), 1);
  EXPECT_EQ(family.samples[0].value, 4000);
}

TEST(MetricsTest, LabelsSeparateSeries) {
  constexpr MetricInfo kInfo = {"muster_labels_test", "A test."};
  GetGauge(kInfo, {{"server", "0"}})->Set(1.5);
  GetGauge(kInfo, {{"server", "1"}})->Set(2.5);
  const MetricFamily family = Read(kInfo.name);
  ASSERT_EQ(family.samples.size(), 2);
  EXPECT_EQ(family.samples[0].value, 1.5);
  EXPECT_THAT(family.samples[1].labels, ElementsAre(Pair("server", "1")));
  EXPECT_EQ(family.samples[1].value, 2.5);
}

TEST(MetricsTest, DurationsFallIntoBuckets) {
  const auto& bounds = DurationMetric::BoundsNanoseconds();
  EXPECT_EQ(bounds.front(), 1'000);
  EXPECT_EQ(bounds[1], 2'000);
  EXPECT_EQ(bounds[2], 5'000);
  EXPECT_EQ(bounds[3], 10'000);
  EXPECT_EQ(bounds.back(), 100'000'000'000);

  DurationMetric* const metric =
      GetDurationMetric({"muster_buckets_test_seconds", "A test."});
  metric->Observe(-absl::Seconds(1));  // As if the clock was set back.
  metric->Observe(absl::Microseconds(1));
  metric->Observe(absl::Microseconds(1) + absl::Nanoseconds(1));
  metric->Observe(absl::Hours(1));
  const auto counts = metric->counts();
  EXPECT_EQ(counts[0], 2);  // A bound belongs to the bucket below it.
  EXPECT_EQ(counts[1], 1);
  EXPECT_EQ(counts.back(), 1);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 4);
  EXPECT_EQ(metric->sum(),
            absl::Hours(1) + absl::Microseconds(2) + absl::Nanoseconds(1));
}

TEST(MetricsTest, EstimatesPercentiles) {
  DurationMetric* const metric =
      GetDurationMetric({"muster_percentiles_test_seconds", "A test."});
  EXPECT_EQ(metric->Percentile(50), absl::ZeroDuration());
  // Four between 1 and 2 ms, four between 20 and 50 ms.
  for (int i = 0; i < 4; ++i) {
    metric->Observe(absl::Milliseconds(1.5));
    metric->Observe(absl::Milliseconds(30));
  }
  EXPECT_EQ(metric->Percentile(25), absl::Milliseconds(1.5));
  EXPECT_EQ(metric->Percentile(50), absl::Milliseconds(2));
  EXPECT_EQ(metric->Percentile(75), absl::Milliseconds(35));
  EXPECT_EQ(metric->Percentile(100), absl::Milliseconds(50));
  metric->Observe(absl::Hours(1));
  EXPECT_EQ(metric->Percentile(100), absl::Seconds(100));
}

TEST(MetricsTest, SourcesAreReadWhileTheyLive) {
  constexpr MetricInfo kInfo = {"muster_sources_test", "A test."};
  const auto make = [&](double value) {
    return std::make_unique<MetricSource>([&kInfo, value](MetricSink* sink) {
      sink->AddGauge(kInfo, value, {{"of", "both"}});
    });
  };
  auto first = make(1);
  auto second = make(2);
  ASSERT_EQ(Read(kInfo.name).samples.size(), 1);
  EXPECT_EQ(Read(kInfo.name).samples[0].value, 3);
  first = nullptr;
  EXPECT_EQ(Read(kInfo.name).samples[0].value, 2);
  second = nullptr;
  EXPECT_TRUE(Read(kInfo.name).samples.empty());
}

}  // namespace
}  // namespace muster
