#include "deploy/musterctl/status_view.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

using Json = nlohmann::json;

absl::StatusOr<Json> ParseStatus(absl::string_view text) {
  Json json = Json::parse(text.begin(), text.end(), nullptr,
                          /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("process") &&
      json["process"].is_object()) {
    return json;
  }
  return absl::DataLossError(
      "the answer is not the status of a task: expected a JSON object with "
      "\"process\"");
}

// Returns the value at `name`, or `otherwise` if it is absent or has another
// type.
template <typename Value>
Value Get(const Json& json, const char* name, Value otherwise) {
  if (!json.is_object()) return otherwise;
  const auto found = json.find(name);
  if (found == json.end()) return otherwise;
  if constexpr (std::is_same_v<Value, std::string>) {
    return found->is_string() ? found->template get<Value>() : otherwise;
  } else if constexpr (std::is_same_v<Value, bool>) {
    return found->is_boolean() ? found->template get<Value>() : otherwise;
  } else {
    return found->is_number() ? found->template get<Value>() : otherwise;
  }
}

std::string GetText(const Json& json, const char* name) {
  std::string text = Get<std::string>(json, name, "");
  for (char& c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return text;
}

const Json& Child(const Json& json, const char* name) {
  static const Json* const none = new Json;
  const auto found = json.is_object() ? json.find(name) : json.end();
  return found == json.end() ? *none : *found;
}

std::string Seconds(double seconds) {
  const absl::Duration duration = absl::Seconds(seconds);
  const absl::Duration unit = seconds < 1    ? absl::Microseconds(10)
                              : seconds < 60 ? absl::Milliseconds(100)
                                             : absl::Seconds(1);
  return absl::FormatDuration(absl::Trunc(duration, unit));
}

std::string ProcessLine(const Json& status) {
  const Json& process = Child(status, "process");
  const std::string job = GetText(process, "job");
  const std::string why = GetText(status, "not_ready_because");
  return absl::StrCat(job.empty() ? "" : absl::StrCat(job, ": "),
                      GetText(process, "task"), " on ",
                      GetText(process, "host"), ", process ",
                      Get<int64_t>(process, "process_id", 0), ", up ",
                      Seconds(Get<double>(process, "uptime_seconds", 0)), ", ",
                      Get(status, "ready", false) ? "ready"
                      : why.empty()               ? "not ready"
                                    : absl::StrCat("not ready: ", why),
                      "\n");
}

std::string TrainingLines(const Json& status) {
  const Json& training = Child(status, "training");
  if (!training.is_object()) return "";
  const int64_t steps = Get<int64_t>(training, "steps_per_epoch", 0);
  std::string text = absl::StrFormat(
      "epoch %d/%d, step %d%s, %.1f steps/s, %.0f examples/s",
      Get<int64_t>(training, "epoch", 0), Get<int64_t>(training, "epochs", 0),
      Get<int64_t>(training, "step_in_epoch", 0),
      steps > 0 ? absl::StrCat("/", steps) : "",
      Get<double>(training, "steps_per_second", 0),
      Get<double>(training, "examples_per_second", 0));
  if (const double left = Get<double>(training, "seconds_left", 0); left > 0) {
    absl::StrAppend(&text, ", ", Seconds(left), " left");
  }
  for (const auto& [name, value] : Child(training, "values").items()) {
    if (value.is_number()) {
      absl::StrAppendFormat(&text, ", %s %.4f", name, value.get<double>());
    }
  }
  absl::StrAppend(&text, "\n");
  return text;
}

std::string QueueLine(const Json& status) {
  const Json& queue = Child(status, "queue");
  if (!queue.is_object()) return "";
  return absl::StrCat("closures: ", Get<int64_t>(queue, "queued", 0),
                      " queued, ", Get<int64_t>(queue, "in_flight", 0),
                      " in flight, ", Get<int64_t>(queue, "done", 0), " done, ",
                      Get<int64_t>(queue, "retried", 0), " retried\n");
}

std::string CheckpointLine(const Json& status) {
  const Json& newest = Child(Child(status, "checkpoints"), "newest");
  if (!newest.is_object()) return "";
  return absl::StrCat("newest checkpoint: ", GetText(newest, "name"), ", ",
                      Seconds(Get<double>(newest, "age_seconds", 0)), " ago\n");
}

std::string DetailOf(const Json& task) {
  std::vector<std::string> parts;
  const auto add_count = [&](const char* name, const char* what) {
    if (task.contains(name)) {
      parts.push_back(absl::StrCat(Get<int64_t>(task, name, 0), what));
    }
  };
  add_count("closures_in_flight", " in flight");
  add_count("closures_done", " done");
  if (const double time = Get<double>(task, "closure_seconds", 0); time > 0) {
    parts.push_back(absl::StrCat(Seconds(time), " each"));
  }
  add_count("updates", " updates");
  add_count("variable_bytes", " bytes of variables");
  if (task.contains("waited_share")) {
    parts.push_back(
        absl::StrFormat("waited for %.0f%% of the time",
                        100 * Get<double>(task, "waited_share", 0)));
  }
  if (Get(task, "is_straggler", false)) parts.push_back("SLOW");
  if (const std::string problem = GetText(task, "problem"); !problem.empty()) {
    parts.push_back(problem);
  }
  return absl::StrJoin(parts, ", ");
}

std::string TaskLines(const Json& status) {
  std::string text;
  for (const Json& task : Child(status, "tasks")) {
    absl::StrAppendFormat(&text, "  %-12s %-10s %8s  %s\n",
                          GetText(task, "task"), GetText(task, "state"),
                          Seconds(Get<double>(task, "in_state_seconds", 0)),
                          DetailOf(task));
  }
  return text;
}

std::string WaitLines(const Json& status) {
  std::string text;
  for (const Json& wait : Child(status, "waits")) {
    absl::StrAppend(&text, GetText(wait, "waiter"), " has waited ",
                    Seconds(Get<double>(wait, "seconds", 0)), " for ",
                    GetText(wait, "awaited"), ": ", GetText(wait, "what"),
                    "\n");
  }
  return text;
}

// Goodput and the newest events.
std::string TimelineLines(const Json& status) {
  constexpr size_t kEventsMax = 5;
  const Json& timeline = Child(status, "timeline");
  const Json& events = Child(timeline, "events");
  if (!events.is_array() || events.empty()) return "";
  std::string text = absl::StrFormat(
      "goodput %.1f%%: of %s of training, losses have cost %s; %d events\n",
      100 * Get<double>(timeline, "goodput", 1),
      Seconds(Get<double>(timeline, "elapsed_seconds", 0)),
      Seconds(Get<double>(timeline, "lost_seconds", 0)),
      Get<int64_t>(timeline, "event_count", 0));
  for (size_t i = events.size() - std::min(events.size(), kEventsMax);
       i < events.size(); ++i) {
    const double ago =
        Get<double>(status, "time", 0) - Get<double>(events[i], "time", 0);
    absl::StrAppend(&text, "  ", Seconds(std::max(0.0, ago)),
                    " ago: ", GetText(events[i], "text"), "\n");
  }
  return text;
}

std::string ProblemLines(const Json& status) {
  const Json& problems = Child(status, "problems");
  const int64_t warnings = Get<int64_t>(problems, "warnings", 0);
  const int64_t errors = Get<int64_t>(problems, "errors", 0);
  if (warnings + errors == 0) return "";
  std::string text = absl::StrCat(warnings, " warnings, ", errors, " errors");
  if (const Json& latest = Child(problems, "latest");
      latest.is_array() && !latest.empty()) {
    absl::StrAppend(&text, "; the last: ", GetText(latest.back(), "message"));
  }
  return absl::StrCat(text, "\n");
}

struct Slowness {
  std::string task;
  double ratio = 0;  // Relative to the median worker, or a share of time.
  std::string text;
};

double MedianClosureSeconds(const Json& status) {
  std::vector<double> times;
  for (const Json& task : Child(status, "tasks")) {
    const double time = Get<double>(task, "closure_seconds", 0);
    if (time > 0) times.push_back(time);
  }
  if (times.empty()) return 0;
  std::nth_element(times.begin(), times.begin() + times.size() / 2,
                   times.end());
  return times[times.size() / 2];
}

std::vector<Slowness> RankTasks(const Json& status) {
  const double median = MedianClosureSeconds(status);
  std::vector<Slowness> tasks;
  for (const Json& task : Child(status, "tasks")) {
    Slowness slowness = {.task = GetText(task, "task"), .text = ""};
    const double time = Get<double>(task, "closure_seconds", 0);
    if (time > 0) {
      slowness.ratio = time / median;
      slowness.text =
          absl::StrFormat("%s for a closure, %.2fx the median worker",
                          Seconds(time), slowness.ratio);
    } else if (task.contains("waited_share")) {
      slowness.ratio = Get<double>(task, "waited_share", 0);
      slowness.text = absl::StrFormat("waited for %.0f%% of the time",
                                      100 * slowness.ratio);
    } else {
      continue;
    }
    if (Get(task, "is_straggler", false)) slowness.text += "  SLOW";
    tasks.push_back(std::move(slowness));
  }
  std::stable_sort(
      tasks.begin(), tasks.end(),
      [](const Slowness& a, const Slowness& b) { return a.ratio > b.ratio; });
  return tasks;
}

}  // namespace

absl::StatusOr<std::string> StatusText(absl::string_view status_json) {
  ASSIGN_OR_RETURN(const Json status, ParseStatus(status_json));
  return absl::StrCat(ProcessLine(status), TrainingLines(status),
                      QueueLine(status), CheckpointLine(status),
                      TaskLines(status), WaitLines(status),
                      TimelineLines(status), ProblemLines(status));
}

absl::StatusOr<std::string> SlowTasksText(absl::string_view status_json) {
  ASSIGN_OR_RETURN(const Json status, ParseStatus(status_json));
  std::string text;
  for (const Slowness& task : RankTasks(status)) {
    absl::StrAppendFormat(&text, "  %-12s %s\n", task.task, task.text);
  }
  if (text.empty()) {
    text =
        absl::StrCat("no task's speed is known yet",
                     Child(status, "tasks").empty()
                         ? ": the status of this process lists no other task\n"
                         : "\n");
  }
  return absl::StrCat(text, WaitLines(status));
}

}  // namespace muster
