#include "common/net/collectives/peers/group_communicator.h"

#include <numeric>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"
#include "common/core/system/metrics.h"
#include "common/core/system/trace.h"

namespace muster {
namespace {

constexpr MetricInfo kSeconds = {
    "muster_collective_seconds",
    "Time of a collective, waiting for other ranks included."};
constexpr MetricInfo kBytes = {"muster_collective_bytes_total",
                               "Bytes of the tensors in collectives."};

DurationMetric* SecondsOf(const char* operation) {
  return GetDurationMetric(kSeconds, {{"operation", operation}});
}

int64_t SizeBytes(const TensorSpan& span) {
  return static_cast<int64_t>(span.size_bytes());
}

}  // namespace

GroupCommunicator::GroupCommunicator(std::unique_ptr<Communicator> communicator,
                                     Explain explain)
    : explain_(std::move(explain)),
      communicator_(std::move(communicator)),
      on_device_(communicator_->on_device()),
      bytes_(GetCounter(kBytes)),
      all_reduce_seconds_(SecondsOf("all_reduce")),
      reduce_scatter_seconds_(SecondsOf("reduce_scatter")),
      all_gather_seconds_(SecondsOf("all_gather")),
      broadcast_seconds_(SecondsOf("broadcast")),
      barrier_seconds_(SecondsOf("barrier")),
      source_([this](StatusReport* report) { AddStatus(report); }) {}

absl::StatusOr<std::shared_ptr<Buffer>> GroupCommunicator::Allocate(
    size_t size_bytes, const CollectiveCall& call) {
  auto buffer = communicator_->Allocate(size_bytes, call);
  if (!buffer.ok()) return Explained("allocation", call, buffer.status());
  return buffer;
}

absl::Status GroupCommunicator::AllReduce(ReduceOp op, TensorSpan buffer,
                                          const CollectiveCall& call) {
  return Measured("all-reduce", all_reduce_seconds_, call, SizeBytes(buffer),
                  [&] { return communicator_->AllReduce(op, buffer, call); });
}

absl::Status GroupCommunicator::ReduceScatter(ReduceOp op, TensorSpan buffer,
                                              const CollectiveCall& call) {
  return Measured(
      "reduce-scatter", reduce_scatter_seconds_, call, SizeBytes(buffer),
      [&] { return communicator_->ReduceScatter(op, buffer, call); });
}

absl::Status GroupCommunicator::AllGather(
    TensorSpan input, absl::Span<const int64_t> element_counts,
    TensorSpan output, const CollectiveCall& call) {
  return Measured(
      "all-gather", all_gather_seconds_, call, SizeBytes(output), [&] {
        return communicator_->AllGather(input, element_counts, output, call);
      });
}

absl::Status GroupCommunicator::Broadcast(TensorSpan buffer, int root,
                                          const CollectiveCall& call) {
  return Measured("broadcast", broadcast_seconds_, call, SizeBytes(buffer),
                  [&] { return communicator_->Broadcast(buffer, root, call); });
}

absl::Status GroupCommunicator::Barrier(const CollectiveCall& call) {
  return Measured("barrier", barrier_seconds_, call, 0,
                  [&] { return communicator_->Barrier(call); });
}

absl::StatusOr<std::shared_ptr<Buffer>> GroupCommunicator::AllocateOnDevice(
    size_t size_bytes, const CollectiveCall& call) {
  auto buffer = on_device_->AllocateOnDevice(size_bytes, call);
  if (!buffer.ok()) return Explained("allocation", call, buffer.status());
  return buffer;
}

absl::Status GroupCommunicator::StartAllReduce(ReduceOp op, TensorSpan buffer,
                                               const Event& ready, Event* done,
                                               const CollectiveCall& call) {
  return Measured(
      "all-reduce", all_reduce_seconds_, call, SizeBytes(buffer), [&] {
        return on_device_->StartAllReduce(op, buffer, ready, done, call);
      });
}

absl::Status GroupCommunicator::StartReduceScatter(ReduceOp op,
                                                   TensorSpan buffer,
                                                   const Event& ready,
                                                   Event* done,
                                                   const CollectiveCall& call) {
  return Measured(
      "reduce-scatter", reduce_scatter_seconds_, call, SizeBytes(buffer), [&] {
        return on_device_->StartReduceScatter(op, buffer, ready, done, call);
      });
}

absl::Status GroupCommunicator::StartAllGather(
    absl::Span<const int64_t> element_counts, TensorSpan buffer,
    const Event& ready, Event* done, const CollectiveCall& call) {
  return Measured("all-gather", all_gather_seconds_, call, SizeBytes(buffer),
                  [&] {
                    return on_device_->StartAllGather(element_counts, buffer,
                                                      ready, done, call);
                  });
}

absl::Status GroupCommunicator::StartBroadcast(TensorSpan buffer, int root,
                                               const Event& ready, Event* done,
                                               const CollectiveCall& call) {
  return Measured(
      "broadcast", broadcast_seconds_, call, SizeBytes(buffer), [&] {
        return on_device_->StartBroadcast(buffer, root, ready, done, call);
      });
}

absl::Status GroupCommunicator::Await() {
  return Explained("collectives of the device", {}, on_device_->Await());
}

void GroupCommunicator::Abort(absl::Status status) {
  communicator_->Abort(std::move(status));
}

CollectiveProgress GroupCommunicator::Progress() const {
  return communicator_->Progress();
}

absl::Status GroupCommunicator::Measured(
    const char* operation, DurationMetric* seconds, const CollectiveCall& call,
    int64_t size_bytes, absl::FunctionRef<absl::Status()> run) const {
  const TraceSpan span("collective", operation);
  const absl::Time start = Clock::Real()->Now();
  const absl::Status status = run();
  seconds->Observe(Clock::Real()->Now() - start);
  bytes_->Add(size_bytes);
  return Explained(operation, call, status);
}

void GroupCommunicator::AddStatus(StatusReport* report) const {
  if (!report->collectives.empty()) return;  // Another group's report has them.
  const std::pair<const char*, const DurationMetric*> operations[] = {
      {"all_reduce", all_reduce_seconds_},
      {"reduce_scatter", reduce_scatter_seconds_},
      {"all_gather", all_gather_seconds_},
      {"broadcast", broadcast_seconds_},
      {"barrier", barrier_seconds_}};
  for (const auto& [operation, seconds] : operations) {
    const auto counts = seconds->counts();
    const int64_t count =
        std::accumulate(counts.begin(), counts.end(), int64_t{0});
    if (count == 0) continue;
    report->collectives.push_back({.operation = operation,
                                   .count = count,
                                   .median = seconds->Percentile(50),
                                   .percentile_99 = seconds->Percentile(99)});
  }
}

absl::Status GroupCommunicator::Explained(absl::string_view operation,
                                          const CollectiveCall& call,
                                          const absl::Status& status) const {
  if (ABSL_PREDICT_TRUE(status.ok())) return status;
  return explain_(call.name.empty()
                      ? std::string(operation)
                      : absl::StrCat(operation, " of ", call.name),
                  communicator_->Progress(), status);
}

}  // namespace muster
