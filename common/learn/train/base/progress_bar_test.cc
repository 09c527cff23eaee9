#include "common/learn/train/base/progress_bar.h"

#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"

namespace muster {
namespace {

TEST(ProgressBarTest, PrintsWhatKerasPrints) {
  for (const GoldenCase& golden : ReadGoldenCases("progress.json")) {
    SCOPED_TRACE(golden.name);
    SimulatedClock clock;
    std::ostringstream output;
    ProgressBar::Options options{
        .verbosity = golden.config.at("verbose") == 1 ? Verbosity::kBar
                                                      : Verbosity::kLines,
        .unit_name = golden.config.at("unit_name").get<std::string>(),
        .color = true,
        .clock = &clock,
        .output = &output};
    if (!golden.config.at("target").is_null()) {
      options.target = golden.config.at("target").get<int64_t>();
    }
    ProgressBar bar(options);

    const nlohmann::json& updates = golden.json.at("inputs").at("updates");
    const nlohmann::json& texts = golden.json.at("outputs").at("text");
    double seconds = 0;
    for (size_t i = 0; i < updates.size(); ++i) {
      const nlohmann::json& update = updates[i];
      const double at_seconds = update.at("seconds").get<double>();
      clock.Advance(absl::Seconds(at_seconds - seconds));
      seconds = at_seconds;
      const auto current = update.at("current").get<int64_t>();
      const auto values = update.at("values").get<ProgressValues>();
      output.str("");
      if (update.at("finalize").get<bool>()) {
        bar.Finish(current, values);
      } else {
        bar.Update(current, values);
      }
      EXPECT_EQ(output.str(), texts[i].get<std::string>()) << "update " << i;
    }
  }
}

TEST(ProgressBarTest, HasNoEscapesUnderNoColor) {
  ASSERT_EQ(setenv("NO_COLOR", "1", /*overwrite=*/1), 0);
  SimulatedClock clock;
  std::ostringstream output;
  ProgressBar bar({.target = 4, .clock = &clock, .output = &output});
  unsetenv("NO_COLOR");
  bar.Update(1, {{"loss", 0.5}});
  bar.Finish(4, {{"loss", 0.25}});
  EXPECT_EQ(output.str().find('\x1b'), std::string::npos) << output.str();
  EXPECT_THAT(output.str(), ::testing::HasSubstr("1/4 ━━━━━ "));
}

TEST(ProgressBarTest, TakesWhatWasReachedAsTheTargetWhenThereWasNone) {
  SimulatedClock clock;
  std::ostringstream output;
  ProgressBar bar(
      {.verbosity = Verbosity::kLines, .clock = &clock, .output = &output});
  clock.Advance(absl::Seconds(6));
  bar.Finish(12, {{"loss", 0.5}});
  EXPECT_EQ(output.str(), "12/12 - 6s - 500ms/step - loss: 0.5000\n");
}

TEST(ProgressBarTest, OnlyTheChiefPrintsUnlessTheProgramSaysOtherwise) {
  EXPECT_EQ(ResolveVerbosity(Verbosity::kAuto, /*is_chief=*/false),
            Verbosity::kSilent);
  EXPECT_NE(ResolveVerbosity(Verbosity::kAuto, /*is_chief=*/true),
            Verbosity::kSilent);
  EXPECT_EQ(ResolveVerbosity(Verbosity::kLines, /*is_chief=*/false),
            Verbosity::kLines);
}

TEST(ProgressBarTest, StepsReportedTogetherShareTheWholeTime) {
  SimulatedClock clock;
  std::ostringstream output;
  ProgressBar bar({.target = 4,
                   .verbosity = Verbosity::kLines,
                   .first_step_is_apart = false,
                   .clock = &clock,
                   .output = &output});
  clock.Advance(absl::Seconds(2));
  for (int step = 1; step <= 4; ++step) bar.Update(step, {});
  bar.Finish(4, {{"loss", 0.5}});
  EXPECT_EQ(output.str(), "4/4 - 2s - 500ms/step - loss: 0.5000\n");
}

TEST(ProgressBarTest, SilentPrintsNothing) {
  std::ostringstream output;
  ProgressBar bar({.verbosity = Verbosity::kSilent, .output = &output});
  EXPECT_FALSE(bar.IsDue());
  bar.Update(1, {});
  bar.Finish(2, {});
  EXPECT_EQ(output.str(), "");
}

}  // namespace
}  // namespace muster
