#include "common/learn/train/report_page.h"

#include <limits>
#include <string>

#include "absl/time/time.h"
#include "common/learn/train/run_summary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RunSummary Example() {
  RunSummary summary;
  summary.job_file = "digits.job";
  summary.strategy = "parameter_server";
  summary.report.retry_count = 3;
  summary.report.tasks = {"worker 0 localhost:1 incarnation 6f"};
  summary.history.epoch = {4, 5, 6};
  summary.history.history = {{"loss", {3, 2, 1}}, {"val_loss", {3, 2.5, 2}}};
  summary.final = {{"loss", 1}, {"test_loss", 1.25}};
  return summary;
}

TEST(ReportPageTest, ShowsResultsChartsAndTasks) {
  EXPECT_THAT(ToHtml(Example()),
              AllOf(HasSubstr("<title>digits.job</title>"),
                    HasSubstr("<th>test_loss</th><td>1.25</td>"),
                    HasSubstr("<th>steps repeated</th><td>3</td>"),
                    HasSubstr("worker 0 localhost:1"), HasSubstr("epoch 7")));
}

TEST(ReportPageTest, SaysHowLongAStepTakesOnAWorker) {
  RunSummary summary = Example();
  summary.history.step_durations.Add(absl::Milliseconds(4));
  EXPECT_THAT(ToHtml(summary),
              HasSubstr("<th>a step on a worker</th><td>median "));
}

TEST(ReportPageTest, TrainingAndValidationShareOneChart) {
  const std::string page = ToHtml(Example());
  EXPECT_EQ(page.find("<figure>"), page.rfind("<figure>"));
  // From the upper left corner of the chart to the lower right one.
  EXPECT_THAT(page, AllOf(HasSubstr("M56.0,10.0L204.0,94.0L352.0,178.0"),
                          HasSubstr("M56.0,10.0L204.0,52.0L352.0,94.0")));
}

TEST(ReportPageTest, ACurveIsInterruptedWhereAValueIsNotFinite) {
  RunSummary summary = Example();
  summary.history.history = {
      {"loss", {1, std::numeric_limits<double>::quiet_NaN(), 2}}};
  summary.history.first_non_finite = {.name = "loss", .value = 0, .epoch = 5};
  EXPECT_THAT(ToHtml(summary),
              AllOf(HasSubstr("M56.0,178.0M352.0,10.0"),
                    HasSubstr("class=\"alarm\""), Not(HasSubstr("d=\"nan"))));
}

TEST(ReportPageTest, NamesAreEscapedAndNothingIsLoaded) {
  RunSummary summary = Example();
  summary.job_file = "<script>alert(\"1\")</script>";
  const std::string page = ToHtml(summary);
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("http")),
                          Not(HasSubstr("src=")),
                          HasSubstr("&lt;script&gt;alert(&quot;1&quot;)")));
}

TEST(ReportPageTest, ShowsEventsOnABarOfTime) {
  RunSummary summary = Example();
  EXPECT_THAT(ToHtml(summary), Not(HasSubstr("<h2>Events</h2>")));
  const absl::Time begin = absl::FromUnixSeconds(1'800'000'000);
  summary.report.timeline =
      TimelineStatus{.events = {{.time = begin + absl::Seconds(50),
                                 .text = "worker 1 <is> lost",
                                 .cost = absl::Seconds(10)}},
                     .event_count = 1,
                     .begun_at = begin,
                     .elapsed = absl::Seconds(100),
                     .lost = absl::Seconds(10),
                     .goodput = 0.9};
  EXPECT_THAT(
      ToHtml(summary),
      AllOf(HasSubstr("90.0% of the time of training; losses have cost 10s"),
            HasSubstr("class=\"lost\" x=\"288.0\" width=\"72.0\""),
            HasSubstr("worker 1 &lt;is&gt; lost; cost 10s"),
            HasSubstr("2027-01-15 08:00:50 UTC")));
}

TEST(ReportPageTest, ARunWithoutEpochsHasAPage) {
  EXPECT_THAT(ToHtml(RunSummary()), HasSubstr("</html>"));
}

}  // namespace
}  // namespace muster
