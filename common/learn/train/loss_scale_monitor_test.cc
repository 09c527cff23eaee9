#include "common/learn/train/loss_scale_monitor.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns the warnings in an epoch whose steps have these scales.
std::vector<std::string> WarningsOf(const std::vector<double>& scales) {
  LossScaleMonitor monitor;
  std::vector<std::string> warnings;
  int64_t step = 0;
  for (const double scale : scales) {
    const std::optional<std::string> warning =
        monitor.OnStep(scale, /*epoch=*/2, ++step);
    if (warning.has_value()) warnings.push_back(*warning);
  }
  return warnings;
}

std::vector<double> Halved(double first, int count) {
  std::vector<double> scales;
  for (int i = 0; i <= count; ++i) scales.push_back(std::ldexp(first, -i));
  return scales;
}

TEST(LossScaleMonitorTest, SaysNothingWhileTheScaleFindsItsValue) {
  std::vector<double> scales = Halved(32768, 9);
  EXPECT_THAT(WarningsOf(scales), IsEmpty());
  // A step with finite gradients resets the count.
  scales.push_back(scales.back());
  for (const double scale : Halved(64, 5)) scales.push_back(scale);
  EXPECT_THAT(WarningsOf(scales), IsEmpty());
}

TEST(LossScaleMonitorTest, WarnsOfSkippedStepsInARowAndNamesTheLast) {
  EXPECT_THAT(WarningsOf(Halved(std::ldexp(1, 60), 25)),
              ElementsAre(AllOf(HasSubstr("step 10 of epoch 3 was skipped"),
                                HasSubstr("the last of 10 in a row")),
                          AllOf(HasSubstr("step 20 of epoch 3 was skipped"),
                                HasSubstr("the last of 20 in a row"))));
}

TEST(LossScaleMonitorTest, WarnsOnceOfAScaleThatMakesGradientsSmaller) {
  EXPECT_THAT(WarningsOf(Halved(4, 6)),
              ElementsAre(AllOf(HasSubstr("step 3 of epoch 3 was skipped"),
                                HasSubstr("fell to 0.5"))));
}

}  // namespace
}  // namespace muster
