#include "common/learn/train/report_page.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/non_finite.h"
#include "common/net/status/status_report.h"

namespace muster {
namespace {

constexpr absl::string_view kValidationPrefix = "val_";

constexpr absl::string_view kStyle = R"css(
:root { color-scheme: light dark; --text: #1c2024; --dim: #60646c;
  --line: #d9d9e0; --page: #ffffff; --train: #0b68cb; --validation: #c2410c; }
@media (prefers-color-scheme: dark) { :root { --text: #edeef0; --dim: #b0b4ba;
  --line: #43484e; --page: #111113; --train: #70b8ff; --validation: #ff9d6e; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text);
  background: var(--page); max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; }
td, th { text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 500; color: var(--dim); }
.charts { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); }
figure { margin: 0; } figcaption { font-weight: 500; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: var(--dim); }
.axis { stroke: var(--line); } .series { fill: none; stroke-width: 2; }
.train { stroke: var(--train); } .validation { stroke: var(--validation); }
circle.train { fill: var(--train); } circle.validation { fill: var(--validation); }
.run { fill: var(--train); opacity: .25; } .lost { fill: var(--validation); }
.key { font-size: .85rem; color: var(--dim); }
.alarm { color: var(--validation); font-weight: 600; }
)css";

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Duration(absl::Duration duration) {
  return absl::FormatDuration(absl::Trunc(duration, absl::Milliseconds(1)));
}

std::string Number(double value) { return absl::StrFormat("%.5g", value); }

// The values of one metric: one curve, or two if the run has validated.
struct Chart {
  std::string name;
  const std::vector<double>* train = nullptr;
  const std::vector<double>* validation = nullptr;
};

std::vector<Chart> ChartsOf(const History& history) {
  std::map<std::string, Chart> charts;
  for (const auto& [name, values] : history.history) {
    const bool is_validation = absl::StartsWith(name, kValidationPrefix);
    const std::string metric =
        is_validation ? name.substr(kValidationPrefix.size()) : name;
    Chart& chart = charts[metric];
    chart.name = metric;
    (is_validation ? chart.validation : chart.train) = &values;
  }
  std::vector<Chart> sorted;
  for (auto& [name, chart] : charts) sorted.push_back(std::move(chart));
  // The loss comes first, because readers look for it first.
  std::stable_partition(sorted.begin(), sorted.end(), [](const Chart& chart) {
    return chart.name == "loss";
  });
  return sorted;
}

// Maps epochs and values to points of a drawing.
class Axes {
 public:
  static constexpr int kWidth = 360;
  static constexpr int kHeight = 200;
  static constexpr int kLeft = 56;
  static constexpr int kRight = 352;
  static constexpr int kTop = 10;
  static constexpr int kBottom = 178;

  explicit Axes(const Chart& chart) {
    bool is_empty = true;
    for (const std::vector<double>* values : {chart.train, chart.validation}) {
      if (values == nullptr) continue;
      epoch_count_ = std::max(epoch_count_, values->size());
      for (const double value : *values) {
        if (!std::isfinite(value)) continue;
        low_ = is_empty ? value : std::min(low_, value);
        high_ = is_empty ? value : std::max(high_, value);
        is_empty = false;
      }
    }
  }

  double X(size_t epoch) const {
    return epoch_count_ < 2
               ? (kLeft + kRight) / 2.0
               : kLeft +
                     (kRight - kLeft) * (static_cast<double>(epoch) /
                                         static_cast<double>(epoch_count_ - 1));
  }
  double Y(double value) const {
    // Halves the values, because their difference may overflow.
    const double extent = high_ / 2 - low_ / 2;
    return extent > 0
               ? kBottom - (kBottom - kTop) * ((value / 2 - low_ / 2) / extent)
               : (kTop + kBottom) / 2.0;
  }

  double low() const { return low_; }
  double high() const { return high_; }
  size_t epoch_count() const { return epoch_count_; }

 private:
  size_t epoch_count_ = 0;
  double low_ = 0;
  double high_ = 0;
};

// Draws a line through the finite values, which is interrupted at other values.
std::string Curve(const Axes& axes, const std::vector<double>& values,
                  absl::string_view css_class) {
  std::string path;
  bool is_drawing = false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) {
      absl::StrAppendFormat(&path, "%c%.1f,%.1f", is_drawing ? 'L' : 'M',
                            axes.X(i), axes.Y(values[i]));
    }
    is_drawing = std::isfinite(values[i]);
  }
  std::string svg =
      absl::StrCat("<path class=\"series ", css_class, "\" d=\"", path, "\"/>");
  // A single point has no line, so mark the last value.
  if (!values.empty() && std::isfinite(values.back())) {
    absl::StrAppendFormat(
        &svg, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>",
        css_class, axes.X(values.size() - 1), axes.Y(values.back()));
  }
  return svg;
}

std::string Key(absl::string_view name, const std::vector<double>& values) {
  return absl::StrCat(name, " ", Number(values.back()));
}

std::string Figure(const Chart& chart, int first_epoch) {
  const Axes axes(chart);
  std::string svg = absl::StrFormat(
      "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s by epoch\">"
      "<path class=\"axis\" fill=\"none\" d=\"M%d,%dV%dH%d\"/>",
      Axes::kWidth, Axes::kHeight, Escaped(chart.name), Axes::kLeft, Axes::kTop,
      Axes::kBottom, Axes::kRight);
  const auto add_label = [&svg](double x, double y, absl::string_view anchor,
                                absl::string_view label) {
    absl::StrAppendFormat(
        &svg, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>", x, y,
        anchor, label);
  };
  add_label(Axes::kLeft - 6, axes.Y(axes.high()) + 4, "end",
            Number(axes.high()));
  if (axes.low() < axes.high()) {
    add_label(Axes::kLeft - 6, axes.Y(axes.low()) + 4, "end",
              Number(axes.low()));
  }
  add_label(axes.X(0), Axes::kBottom + 16, "middle",
            absl::StrCat(first_epoch + 1));
  if (axes.epoch_count() > 1) {
    add_label(Axes::kRight, Axes::kBottom + 16, "end",
              absl::StrCat("epoch ", first_epoch + axes.epoch_count()));
  }
  std::vector<std::string> keys;
  if (chart.train != nullptr && !chart.train->empty()) {
    svg += Curve(axes, *chart.train, "train");
    keys.push_back(
        absl::StrCat("<span style=\"color:var(--train)\">&#9679;"
                     "</span> ",
                     Key("training", *chart.train)));
  }
  if (chart.validation != nullptr && !chart.validation->empty()) {
    svg += Curve(axes, *chart.validation, "validation");
    keys.push_back(
        absl::StrCat("<span style=\"color:var(--validation)\">"
                     "&#9679;</span> ",
                     Key("validation", *chart.validation)));
  }
  std::string html = absl::StrCat("<figure><figcaption>", Escaped(chart.name),
                                  "</figcaption>", svg, "</svg>");
  absl::StrAppend(&html, "<div class=\"key\">");
  for (const std::string& key : keys) absl::StrAppend(&html, key, " &nbsp; ");
  return absl::StrCat(html, "</div></figure>\n");
}

using TableRows = std::vector<std::pair<std::string, std::string>>;

std::string Table(const TableRows& rows) {
  std::string html = "<table>\n";
  for (const auto& [name, value] : rows) {
    absl::StrAppend(&html, "<tr><th>", Escaped(name), "</th><td>",
                    Escaped(value), "</td></tr>\n");
  }
  return absl::StrCat(html, "</table>\n");
}

std::string Seconds(double seconds) {
  return absl::StrFormat("%.1f s", seconds);
}

TableRows SpeedRows(const RunSummary& summary) {
  const History& history = summary.history;
  TableRows rows = {{"steps", absl::StrCat(history.step_count)},
                    {"examples", absl::StrCat(history.example_count)},
                    {"training", Seconds(history.train_seconds)},
                    {"in total", Seconds(history.earlier_train_seconds +
                                         summary.run_seconds)}};
  if (history.train_seconds > 0) {
    rows.push_back({"examples per second",
                    absl::StrFormat("%.0f", history.example_count /
                                                history.train_seconds)});
  }
  if (history.step_durations.count() > 0) {
    const auto percentile = [&history](double percent) {
      return absl::FormatDuration(absl::Trunc(
          history.step_durations.Percentile(percent), absl::Microseconds(1)));
    };
    rows.push_back(
        {"a step on a worker",
         absl::StrCat("median ", percentile(50), ", 90% within ",
                      percentile(90), ", 99% within ", percentile(99))});
  }
  if (history.device_idle_share.has_value()) {
    rows.push_back({"GPU without work",
                    absl::StrFormat("%.1f%% of the time",
                                    100 * *history.device_idle_share)});
  }
  return rows;
}

TableRows LossRows(const RunSummary& summary) {
  TableRows rows = {
      {"steps repeated", absl::StrCat(summary.report.retry_count)},
      {"tasks that returned", absl::StrCat(summary.report.recovery_count)}};
  if (summary.report.timeline.has_value()) {
    const TimelineStatus& timeline = *summary.report.timeline;
    rows.push_back(
        {"goodput",
         absl::StrFormat("%.1f%% of the time of training; losses have cost %s",
                         100 * timeline.goodput, Duration(timeline.lost))});
  }
  return rows;
}

// A bar of the time of training with a mark for each event, as wide as its
// cost.
std::string TimelineBar(const TimelineStatus& timeline) {
  constexpr double kWidth = 720;
  constexpr double kNarrowestMark = 1.5;
  const auto x = [&](absl::Time time) {
    const double share =
        absl::FDivDuration(time - timeline.begun_at, timeline.elapsed);
    return kWidth * std::clamp(share, 0.0, 1.0);
  };
  std::string svg = absl::StrFormat(
      "<svg viewBox=\"0 0 %.0f 16\" role=\"img\" aria-label=\"events by "
      "time\"><rect class=\"run\" width=\"%.0f\" height=\"16\"/>",
      kWidth, kWidth);
  for (const RunEvent& event : timeline.events) {
    const double left = x(event.time - event.cost);
    absl::StrAppendFormat(&svg,
                          "<rect class=\"lost\" x=\"%.1f\" width=\"%.1f\" "
                          "height=\"16\"><title>%s</title></rect>",
                          left, std::max(kNarrowestMark, x(event.time) - left),
                          Escaped(event.text));
  }
  return absl::StrCat(svg, "</svg>\n");
}

std::string Events(const RunSummary& summary) {
  const auto& timeline = summary.report.timeline;
  if (!timeline.has_value() || timeline->events.empty()) return "";
  TableRows rows;
  for (const RunEvent& event : timeline->events) {
    rows.push_back(
        {absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", event.time,
                          absl::UTCTimeZone()),
         event.cost < absl::Milliseconds(1)
             ? event.text
             : absl::StrCat(event.text, "; cost ", Duration(event.cost))});
  }
  std::string bar;
  if (timeline->elapsed > absl::ZeroDuration()) bar = TimelineBar(*timeline);
  return absl::StrCat("<h2>Events</h2>\n", bar, Table(rows));
}

TableRows RunRows(const RunSummary& summary) {
  TableRows rows = {
      {"strategy", summary.strategy},
      {"seed", absl::StrCat(summary.seed)},
      {"weights",
       summary.final_weights.empty() ? "not saved" : summary.final_weights},
      {"SHA-256 of the weights", summary.weights_sha256},
      {"Muster", summary.muster_version}};
  for (const std::string& task : summary.report.tasks) {
    rows.push_back({"task", task});
  }
  return rows;
}

}  // namespace

std::string ToHtml(const RunSummary& summary) {
  const History& history = summary.history;
  const std::string title =
      summary.job_file.empty() ? "Training run" : summary.job_file;
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
      Escaped(title), "</title>\n<style>", kStyle,
      "</style></head><body>\n<h1>", Escaped(title), "</h1>\n");
  if (history.first_non_finite.has_value()) {
    absl::StrAppend(&html, "<p class=\"alarm\">",
                    Escaped(ToString(*history.first_non_finite)), "</p>\n");
  }
  TableRows final;
  for (const auto& [name, value] : summary.final) {
    final.push_back({name, Number(value)});
  }
  absl::StrAppend(&html, "<h2>Result</h2>\n", Table(final));
  const int first_epoch = history.epoch.empty() ? 0 : history.epoch.front();
  absl::StrAppend(&html, "<h2>Loss and metrics</h2>\n<div class=\"charts\">\n");
  for (const Chart& chart : ChartsOf(history)) {
    absl::StrAppend(&html, Figure(chart, first_epoch));
  }
  absl::StrAppend(&html, "</div>\n<h2>Speed</h2>\n", Table(SpeedRows(summary)),
                  "<h2>Lost tasks</h2>\n", Table(LossRows(summary)),
                  Events(summary), "<h2>Run</h2>\n", Table(RunRows(summary)),
                  "</body></html>\n");
  return html;
}

}  // namespace muster
