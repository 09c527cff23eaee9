#include "common/net/status/chrome_trace.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/trace.pb.h"

namespace muster {
namespace {

constexpr double kNanosPerMicro = 1000;

// Returns `text` as a JSON string.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false,
                                   nlohmann::json::error_handler_t::replace);
}

int64_t EarliestStart(const std::vector<TaskTrace>& tasks) {
  int64_t earliest = std::numeric_limits<int64_t>::max();
  for (const TaskTrace& task : tasks) {
    if (task.spans->start_ns_size() == 0) continue;
    earliest =
        std::min(earliest, task.spans->start_ns(0) - task.clock_offset_ns);
  }
  return earliest == std::numeric_limits<int64_t>::max() ? 0 : earliest;
}

// Collects JSON events, one per line.
class EventList {
 public:
  void Add(const std::string& event) {
    absl::StrAppend(&text_, text_.empty() ? "" : ",\n", event);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void AddSpans(const TaskTrace& task, int process, int64_t origin_ns,
              EventList* events) {
  const proto::TraceResponse& spans = *task.spans;
  std::vector<std::string> names;
  for (const std::string& name : spans.names()) names.push_back(Quoted(name));
  int64_t start_ns = -task.clock_offset_ns - origin_ns;
  for (int i = 0; i < spans.start_ns_size(); ++i) {
    start_ns += spans.start_ns(i);
    const double start_us = static_cast<double>(start_ns) / kNanosPerMicro;
    const double duration_us =
        static_cast<double>(spans.duration_ns(i)) / kNanosPerMicro;
    const std::string what = absl::StrFormat(
        R"("cat":%s,"name":%s,"pid":%d,"tid":%d)", names[spans.category(i)],
        names[spans.name(i)], process, spans.thread(i));
    if (!spans.overlaps(i)) {
      events->Add(absl::StrFormat(R"({"ph":"X",%s,"ts":%.3f,"dur":%.3f})", what,
                                  start_us, duration_us));
      continue;
    }
    const std::string id = absl::StrCat("\"", process, ".", i, "\"");
    events->Add(absl::StrFormat(R"({"ph":"b",%s,"id":%s,"ts":%.3f})", what, id,
                                start_us));
    events->Add(absl::StrFormat(R"({"ph":"e",%s,"id":%s,"ts":%.3f})", what, id,
                                start_us + duration_us));
  }
}

}  // namespace

absl::Status CheckSpans(const proto::TraceResponse& spans) {
  const int count = spans.start_ns_size();
  const auto is_name = [&](uint32_t name) {
    return name < static_cast<uint32_t>(spans.names_size());
  };
  if (spans.category_size() == count && spans.name_size() == count &&
      spans.duration_ns_size() == count && spans.thread_size() == count &&
      spans.overlaps_size() == count &&
      std::all_of(spans.category().begin(), spans.category().end(), is_name) &&
      std::all_of(spans.name().begin(), spans.name().end(), is_name)) {
    return absl::OkStatus();
  }
  return absl::DataLossError("the lists of spans do not fit each other");
}

std::string ChromeTraceJson(const std::vector<TaskTrace>& tasks) {
  const int64_t origin_ns = EarliestStart(tasks);
  EventList events;
  EventList offsets;
  EventList errors;
  EventList drops;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const TaskTrace& task = tasks[i];
    const int process = static_cast<int>(i);
    const std::string name = Quoted(task.task);
    events.Add(absl::StrFormat(
        R"({"ph":"M","name":"process_name","pid":%d,"args":{"name":%s}})",
        process, name));
    AddSpans(task, process, origin_ns, &events);
    offsets.Add(absl::StrFormat(
        "%s:%.3f", name,
        static_cast<double>(task.clock_offset_ns) / kNanosPerMicro));
    errors.Add(absl::StrFormat(
        "%s:%.3f", name,
        static_cast<double>(task.clock_error_ns) / kNanosPerMicro));
    drops.Add(absl::StrCat(name, ":", task.spans->dropped_count()));
  }
  return absl::StrCat("{\"displayTimeUnit\":\"ms\",\"otherData\":{",
                      "\"clock_offset_us\":{", offsets.text(),
                      "},\"clock_error_us\":{", errors.text(),
                      "},\"dropped_spans\":{", drops.text(),
                      "}},\"traceEvents\":[\n", events.text(), "\n]}\n");
}

}  // namespace muster
