#include "common/learn/train/run_summary.h"

#include <google/protobuf/stubs/common.h>

#include <cstddef>
#include <optional>
#include <string>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/learn/train/base/history.h"
#include "common/learn/train/base/log_lists.h"
#include "common/learn/train/base/non_finite.h"
#include "common/net/status/status_report.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

Json StepTimes(const History& history) {
  const auto milliseconds = [&](double percent) {
    return absl::ToDoubleMilliseconds(
        history.step_durations.Percentile(percent));
  };
  return {{"p50", milliseconds(50)},
          {"p90", milliseconds(90)},
          {"p99", milliseconds(99)},
          {"max", milliseconds(100)}};
}

// The value is a string, because JSON has no NaN and no infinities.
Json FirstNonFinite(const History& history) {
  if (!history.first_non_finite.has_value()) return nullptr;
  const NonFiniteValue& found = *history.first_non_finite;
  return {{"name", found.name},
          {"value", absl::StrCat(found.value)},
          {"epoch", found.epoch},
          {"step", found.step}};
}

double PerSecond(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// The values of each epoch. Metrics that are lists have a list for each.
Json Epochs(const History& history) {
  Json epochs = Json::object();
  epochs["epoch"] = history.epoch;
  for (const auto& [name, values] : history.history) {
    const std::optional<LogEntry> entry = ParseLogEntryName(name);
    if (!entry.has_value()) {
      epochs[name] = values;
      continue;
    }
    Json& lists = epochs[entry->metric];
    for (size_t i = 0; i < values.size(); ++i) {
      lists[i][entry->index] = values[i];
    }
  }
  return epochs;
}

Json Values(const Logs& logs) {
  Json values = Json::object();
  for (const LoggedMetric& metric : MetricsOf(logs)) {
    values[metric.name] =
        metric.is_list ? Json(metric.values) : Json(metric.values.front());
  }
  return values;
}

Json Versions(const RunSummary& summary) {
  return {{"muster", summary.muster_version},
          {"compiler", __VERSION__},
          {"abseil", absl::StrCat(ABSL_LTS_RELEASE_VERSION, ".",
                                  ABSL_LTS_RELEASE_PATCH_LEVEL)},
          {"protobuf",
           google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)}};
}

Json Events(const std::optional<TimelineStatus>& timeline) {
  Json events = Json::array();
  if (!timeline.has_value()) return events;
  for (const RunEvent& event : timeline->events) {
    events.push_back(
        {{"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", event.time,
                                   absl::UTCTimeZone())},
         {"text", event.text},
         {"cost_seconds", absl::ToDoubleSeconds(event.cost)}});
  }
  return events;
}

}  // namespace

std::string ToJson(const RunSummary& summary) {
  const History& history = summary.history;
  const std::optional<TimelineStatus>& timeline = summary.report.timeline;
  Json json = {
      {"job", summary.job_file},
      {"strategy", summary.strategy},
      {"cluster", summary.report.tasks},
      {"seed", summary.seed},
      {"history", Epochs(history)},
      {"final", Values(summary.final)},
      {"first_non_finite", FirstNonFinite(history)},
      {"is_stopped", history.is_stopped},
      {"steps", history.step_count},
      {"examples", history.example_count},
      {"train_seconds", history.train_seconds},
      // For earlier runs, only the time spent training is known.
      {"total_seconds", history.earlier_train_seconds + summary.run_seconds},
      {"examples_per_second",
       PerSecond(history.example_count, history.train_seconds)},
      {"worker_step_milliseconds", StepTimes(history)},
      {"device_idle_share", history.device_idle_share.has_value()
                                ? Json(*history.device_idle_share)
                                : Json(nullptr)},
      {"replica_state_bytes", summary.report.replica_state_bytes.has_value()
                                  ? Json(*summary.report.replica_state_bytes)
                                  : Json(nullptr)},
      {"retries", summary.report.retry_count},
      {"recoveries", summary.report.recovery_count},
      {"goodput",
       timeline.has_value() ? Json(timeline->goodput) : Json(nullptr)},
      {"lost_seconds", timeline.has_value()
                           ? Json(absl::ToDoubleSeconds(timeline->lost))
                           : Json(nullptr)},
      {"events", Events(timeline)},
      {"weights_sha256", summary.weights_sha256},
      {"final_weights", summary.final_weights.empty()
                            ? Json(nullptr)
                            : Json(summary.final_weights)},
      {"versions", Versions(summary)},
  };
  // Names come from files and peers, so bytes that are not UTF-8 are replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster
