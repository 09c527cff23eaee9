#include "common/net/status/metrics_text.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/core/system/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

std::vector<MetricFamily> Families() {
  DurationMetric durations;
  durations.Observe(absl::Microseconds(2));
  durations.Observe(absl::Milliseconds(3));
  durations.Observe(absl::Hours(1));
  return {{.name = "muster_steps_total",
           .help = "Steps.",
           .kind = CellKind::kCounter,
           .samples = {{.labels = {}, .value = 12345678}}},
          {.name = "muster_loss",
           .help = "The loss.",
           .kind = CellKind::kGauge,
           .samples = {{.labels = {{"name", "a\"b\\c\nd"}}, .value = 0.25}}},
          {.name = "muster_step_seconds",
           .help = "Time of a step.",
           .kind = CellKind::kDuration,
           .samples = {{.labels = {},
                        .counts = durations.counts(),
                        .sum = durations.sum()}}}};
}

TEST(MetricsTextTest, WritesEachKind) {
  const std::string text =
      MetricsText(Families(), {{"muster_job", "digits"}, {"role", "worker"}});
  EXPECT_THAT(text, HasSubstr("# HELP muster_steps_total Steps.\n"
                              "# TYPE muster_steps_total counter\n"
                              "muster_steps_total{muster_job=\"digits\","
                              "role=\"worker\"} 12345678\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE muster_loss gauge\n"));
  EXPECT_THAT(text, HasSubstr("name=\"a\\\"b\\\\c\\nd\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE muster_step_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("le=\"1e-06\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("le=\"0.002\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("le=\"0.005\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("le=\"+Inf\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("muster_step_seconds_count{muster_job=\"digits\""
                              ",role=\"worker\"} 3\n"));
}

TEST(MetricsTextTest, PassesTheLinterOfPrometheus) {
  if (std::system("promtool --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "promtool is not installed (package prometheus)";
  }
  FILE* const linter = popen("promtool check metrics", "w");
  ASSERT_NE(linter, nullptr);
  const std::string text = MetricsText(Families(), {{"muster_job", "digits"}});
  std::fwrite(text.data(), 1, text.size(), linter);
  EXPECT_EQ(pclose(linter), 0) << text;
}

}  // namespace
}  // namespace muster
