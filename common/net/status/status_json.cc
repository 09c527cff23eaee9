#include "common/net/status/status_json.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/net/rpc/identity.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

absl::string_view NameOf(TaskStatus::State state) {
  switch (state) {
    case TaskStatus::State::kConnecting:
      return "connecting";
    case TaskStatus::State::kConnected:
      return "connected";
    case TaskStatus::State::kLost:
      return "lost";
    case TaskStatus::State::kEnded:
      break;
  }
  return "ended";
}

double UnixSeconds(absl::Time time) {
  return absl::ToDoubleSeconds(time - absl::UnixEpoch());
}

template <typename Value>
void SetIfKnown(const char* name, const std::optional<Value>& value,
                Json* json) {
  if (value.has_value()) (*json)[name] = *value;
}

Json ToJson(const ProcessStatus& process, absl::Time now) {
  Json json = {{"task", process.task},
               {"role", process.role},
               {"index", process.index},
               // A string, because browsers read JSON numbers with 53 bits.
               {"incarnation", IncarnationString(process.incarnation)},
               {"host", process.host},
               {"process_id", process.process_id},
               {"start_time", UnixSeconds(process.start)},
               {"uptime_seconds", absl::ToDoubleSeconds(now - process.start)},
               {"version", process.version}};
  if (!process.address.empty()) json["address"] = process.address;
  if (!process.job.empty()) json["job"] = process.job;
  return json;
}

Json ToJson(const TaskStatus& task) {
  Json json = {{"task", task.task},
               {"state", std::string(NameOf(task.state))},
               {"in_state_seconds", absl::ToDoubleSeconds(task.in_state)}};
  if (!task.address.empty()) json["address"] = task.address;
  if (task.incarnation != 0) {
    json["incarnation"] = IncarnationString(task.incarnation);
  }
  if (!task.problem.empty()) json["problem"] = task.problem;
  if (task.is_straggler) json["is_straggler"] = true;
  SetIfKnown("closures_in_flight", task.closures_in_flight, &json);
  SetIfKnown("closures_done", task.closures_done, &json);
  if (task.closure_time.has_value()) {
    json["closure_seconds"] = absl::ToDoubleSeconds(*task.closure_time);
  }
  SetIfKnown("closure_time_ratio", task.closure_time_ratio, &json);
  SetIfKnown("updates", task.update_count, &json);
  SetIfKnown("bytes_received", task.bytes_received, &json);
  SetIfKnown("bytes_sent", task.bytes_sent, &json);
  SetIfKnown("variable_bytes", task.variable_bytes, &json);
  SetIfKnown("waited_share", task.waited_share, &json);
  return json;
}

Json ToJson(const TrainingStatus& training) {
  Json json = {{"epoch", training.epoch},
               {"epochs", training.epoch_count},
               {"step_in_epoch", training.step_in_epoch},
               {"steps", training.step_count},
               {"examples", training.example_count},
               {"steps_per_second", training.steps_per_second},
               {"examples_per_second", training.examples_per_second},
               {"values", training.values}};
  SetIfKnown("steps_per_epoch", training.steps_per_epoch, &json);
  if (training.time_left.has_value()) {
    json["seconds_left"] = absl::ToDoubleSeconds(*training.time_left);
  }
  Json series = Json::array();
  for (const TrainingStatus::Point& point : training.series) {
    series.push_back({{"time", UnixSeconds(point.time)},
                      {"step", point.step},
                      {"values", point.values}});
  }
  json["series"] = std::move(series);
  return json;
}

Json ToJson(const TimelineStatus& timeline) {
  Json events = Json::array();
  for (const RunEvent& event : timeline.events) {
    events.push_back({{"time", UnixSeconds(event.time)},
                      {"text", event.text},
                      {"cost_seconds", absl::ToDoubleSeconds(event.cost)}});
  }
  Json json = {{"goodput", timeline.goodput},
               {"elapsed_seconds", absl::ToDoubleSeconds(timeline.elapsed)},
               {"lost_seconds", absl::ToDoubleSeconds(timeline.lost)},
               {"event_count", timeline.event_count},
               {"events", std::move(events)}};
  if (timeline.elapsed > absl::ZeroDuration()) {
    json["begin_time"] = UnixSeconds(timeline.begun_at);
  }
  return json;
}

Json ToJson(const RecentProblems& problems) {
  Json records = Json::array();
  for (const LogRecord& record : problems.records) {
    records.push_back(
        {{"time", UnixSeconds(record.time)},
         {"severity",
          record.severity == LogSeverity::kError ? "error" : "warning"},
         {"message", record.message}});
  }
  return {{"warnings", problems.warning_count},
          {"errors", problems.error_count},
          {"latest", std::move(records)}};
}

}  // namespace

std::string StatusJson(const ProcessStatus& process, const StatusReport& report,
                       const RecentProblems& problems,
                       const std::vector<GpuStatus>& gpus, absl::Time now) {
  Json json = {{"time", UnixSeconds(now)}, {"process", ToJson(process, now)}};
  const absl::Status readiness = Readiness(report);
  json["ready"] = readiness.ok();
  if (!readiness.ok()) {
    json["not_ready_because"] = std::string(readiness.message());
  }
  if (!report.control_address.empty()) json["control"] = report.control_address;
  if (report.training.has_value()) json["training"] = ToJson(*report.training);
  if (report.queue.has_value()) {
    json["queue"] = {{"queued", report.queue->queued_count},
                     {"in_flight", report.queue->in_flight_count},
                     {"done", report.queue->done_count},
                     {"retried", report.queue->retried_count}};
  }
  Json tasks = Json::array();
  for (const TaskStatus& task : report.tasks) tasks.push_back(ToJson(task));
  json["tasks"] = std::move(tasks);
  Json waits = Json::array();
  for (const WaitStatus& wait : report.waits) {
    waits.push_back({{"waiter", wait.waiter},
                     {"awaited", wait.awaited},
                     {"what", wait.what},
                     {"seconds", absl::ToDoubleSeconds(wait.elapsed)}});
  }
  json["waits"] = std::move(waits);
  for (const CollectiveStatus& collective : report.collectives) {
    json["collectives"].push_back(
        {{"operation", collective.operation},
         {"count", collective.count},
         {"median_seconds", absl::ToDoubleSeconds(collective.median)},
         {"percentile_99_seconds",
          absl::ToDoubleSeconds(collective.percentile_99)}});
  }
  Json checkpoints = {{"failures", report.checkpoint_failure_count}};
  if (report.checkpoint.has_value()) {
    const CheckpointStatus& newest = *report.checkpoint;
    checkpoints["count"] = newest.count;
    checkpoints["newest"] = {
        {"name", newest.name},
        {"time", UnixSeconds(newest.time)},
        {"age_seconds", absl::ToDoubleSeconds(now - newest.time)},
        {"duration_seconds", absl::ToDoubleSeconds(newest.duration)}};
  }
  json["checkpoints"] = std::move(checkpoints);
  if (report.timeline.has_value()) json["timeline"] = ToJson(*report.timeline);
  json["problems"] = ToJson(problems);
  for (const GpuStatus& gpu : gpus) {
    json["gpus"].push_back({{"device", gpu.device},
                            {"memory_bytes", gpu.memory_bytes},
                            {"memory_peak_bytes", gpu.memory_peak_bytes},
                            {"memory_limit_bytes", gpu.memory_limit_bytes}});
  }
  // Messages may quote invalid UTF-8 from other processes or files.
  return json.dump(-1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

}  // namespace muster
