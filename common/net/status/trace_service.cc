#include "common/net/status/trace_service.h"

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "common/core/system/trace.h"
#include "common/net/cluster/task_methods.h"
#include "proto/trace.pb.h"

namespace muster {
namespace {

// Numbers strings in the order in which they first occur.
class NameTable {
 public:
  explicit NameTable(proto::TraceResponse* response) : response_(response) {}

  uint32_t NumberOf(const char* name) {
    const auto [entry, is_new] = numbers_.try_emplace(
        name, static_cast<uint32_t>(response_->names_size()));
    if (is_new) response_->add_names(name);
    return entry->second;
  }

 private:
  proto::TraceResponse* const response_;
  // Keyed by address, because names are interned strings or literals.
  std::map<const char*, uint32_t> numbers_;
};

void AddSpans(proto::TraceResponse* response) {
  const TraceRecording recording = ReadTrace(kReportedSpansMax);
  NameTable names(response);
  int64_t previous_ns = 0;
  for (const TraceEvent& event : recording.events) {
    response->add_category(names.NumberOf(event.category));
    response->add_name(names.NumberOf(event.name));
    response->add_start_ns(event.start_ns - previous_ns);
    response->add_duration_ns(event.duration_ns);
    response->add_thread(static_cast<uint32_t>(event.thread));
    response->add_overlaps(event.overlaps);
    previous_ns = event.start_ns;
  }
  response->set_dropped_count(recording.dropped_count);
}

}  // namespace

proto::TraceResponse HandleTraceRequest(const proto::TraceRequest& request) {
  proto::TraceResponse response;
  if (request.action() == proto::TraceRequest::START) StartTrace();
  if (request.action() == proto::TraceRequest::STOP) {
    StopTrace();
    AddSpans(&response);
  }
  response.set_now_ns(TraceClockNanos());
  return response;
}

void AddTraceMethod(Service* service) {
  service->AddCall<proto::TraceRequest, proto::TraceResponse>(
      kTraceTaskMethod,
      [](const proto::TraceRequest& request)
          -> absl::StatusOr<proto::TraceResponse> {
        return HandleTraceRequest(request);
      });
}

}  // namespace muster
