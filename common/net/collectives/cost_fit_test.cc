#include "common/net/collectives/cost_fit.h"

#include <cstdint>
#include <vector>

#include "common/net/collectives/cost_model.h"
#include "common/net/collectives/schedule.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Costs of a host with two processors.
CostModel Truth() {
  CostModel costs;
  costs.link = {4e-6, 2e-6, 0.1e-9};
  costs.reduce_seconds_per_byte = 0.15e-9;
  costs.wake_seconds = 20e-6;
  costs.processor_count = 2;
  costs.crossing_seconds_per_byte = 0.05e-9;
  costs.cached_bytes = 4 << 20;
  costs.far_seconds_per_byte = 0.08e-9;
  return costs;
}

std::vector<AllReduceSample> SamplesOf(const CostModel& costs) {
  std::vector<AllReduceSample> samples;
  for (const int size : {2, 4}) {
    for (const Algorithm algorithm :
         {Algorithm::kOneShot, Algorithm::kDirect, Algorithm::kRing,
          Algorithm::kHalvingDoubling}) {
      for (int64_t bytes = 1 << 10; bytes <= 64 << 20; bytes *= 4) {
        AllReduceSample sample = {algorithm, size, bytes, 0};
        sample.seconds = PredictSeconds(sample, costs);
        samples.push_back(sample);
      }
    }
  }
  return samples;
}

TEST(CostFitTest, FindsTheConstantsThatMadeTheSamples) {
  const CostModel truth = Truth();
  const CostModel fit = FitCosts(SamplesOf(truth), 2);
  const auto expect_near = [](double found, double expected) {
    EXPECT_NEAR(found, expected, 0.02 * expected);
  };
  expect_near(fit.link.latency_seconds, truth.link.latency_seconds);
  expect_near(fit.link.overhead_seconds, truth.link.overhead_seconds);
  expect_near(fit.link.seconds_per_byte, truth.link.seconds_per_byte);
  expect_near(fit.reduce_seconds_per_byte, truth.reduce_seconds_per_byte);
  expect_near(fit.wake_seconds, truth.wake_seconds);
  expect_near(fit.crossing_seconds_per_byte, truth.crossing_seconds_per_byte);
  expect_near(fit.far_seconds_per_byte, truth.far_seconds_per_byte);
  EXPECT_EQ(fit.cached_bytes, truth.cached_bytes);
}

TEST(CostFitTest, PredictsTimesOfOtherSizes) {
  const CostModel fit = FitCosts(SamplesOf(Truth()), 2);
  for (int64_t bytes = 3000; bytes < 50 << 20; bytes *= 3) {
    AllReduceSample unseen = {Algorithm::kRing, 3, bytes, 0};
    const double expected = PredictSeconds(unseen, Truth());
    EXPECT_NEAR(PredictSeconds(unseen, fit), expected, 0.02 * expected);
  }
}

TEST(CostFitTest, OutliersDoNotChangeTheFit) {
  std::vector<AllReduceSample> samples = SamplesOf(Truth());
  const std::vector<AllReduceSample> undisturbed = samples;
  for (size_t i = 0; i < samples.size(); i += 10) samples[i].seconds *= 20;
  const CostModel fit = FitCosts(samples, 2);
  for (const AllReduceSample& sample : undisturbed) {
    EXPECT_NEAR(PredictSeconds(sample, fit), sample.seconds,
                0.15 * sample.seconds);
  }
}

TEST(CostFitTest, NoConstantIsNegative) {
  // The larger tensor takes less time.
  const CostModel fit = FitCosts({{Algorithm::kDirect, 2, 1000, 5e-6},
                                  {Algorithm::kDirect, 2, 9000, 4e-6}},
                                 2);
  EXPECT_GE(fit.link.latency_seconds, 0);
  EXPECT_GE(fit.link.overhead_seconds, 0);
  EXPECT_EQ(fit.link.seconds_per_byte, 0);
  EXPECT_EQ(fit.reduce_seconds_per_byte, 0);
  EXPECT_EQ(fit.wake_seconds, 0);
}

}  // namespace
}  // namespace muster
