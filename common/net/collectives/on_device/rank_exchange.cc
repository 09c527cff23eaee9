#include "common/net/collectives/on_device/rank_exchange.h"

#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/nccl/agreement.h"
#include "common/net/collectives/on_device/device_reduce.h"

namespace muster::internal {
namespace {

static_assert(kLocalDeviceRanksMax <= kReducedOutputsMax);

bool AreOnOneGpu(const DeviceRank& a, const DeviceRank& b) {
  return a.device->context().ordinal() == b.device->context().ordinal();
}

absl::StatusOr<uint8_t*> ScratchOf(DeviceRank* rank, size_t size_bytes) {
  if (size_bytes == 0) return nullptr;
  if (rank->scratch == nullptr || rank->scratch->size_bytes() < size_bytes) {
    rank->scratch = nullptr;
    DeviceMemory& memory = rank->device->memory();
    ASSIGN_OR_RETURN(
        rank->scratch,
        memory.Allocate(size_bytes, {.what = "copies of other replicas' packs",
                                     .name = rank->device->name()}));
    memory.NoteUse(*rank->scratch, rank->stream.get());
  }
  return rank->scratch->data();
}

}  // namespace

absl::StatusOr<DeviceRank> MakeDeviceRank(Device* device) {
  DeviceRank rank{.device = device};
  ASSIGN_OR_RETURN(rank.stream, device->CreateStream());
  ASSIGN_OR_RETURN(rank.reached, device->CreateEvent());
  return rank;
}

void RankExchange::Arrive(int rank, const Arrival& arrival,
                          absl::FunctionRef<Plan()> make_plan) {
  const absl::MutexLock lock(&mutex_);
  // After a failure, the memory of earlier arrivals may have been freed.
  if (has_failed_) return;
  arrivals_[rank] = arrival;
  if (++arrived_count_ < arrivals_.size()) return;
  arrived_count_ = 0;
  // All ranks have left the previous collective, so none reads its outcome any
  // more.
  outcome_ = CheckSignatures();
  if (outcome_.ok() && arrival.ready != nullptr) {
    outcome_ = Enqueue(make_plan());
  }
}

absl::Status RankExchange::Leave(const absl::Status& met) {
  const absl::MutexLock lock(&mutex_);
  const absl::Status& status = met.ok() ? outcome_ : met;
  has_failed_ = has_failed_ || !status.ok();
  return status;
}

absl::Status RankExchange::CheckSignatures() const {
  for (size_t rank = 1; rank < arrivals_.size(); ++rank) {
    RETURN_IF_ERROR(CheckSameCall(arrivals_[0].signature,
                                  arrivals_[rank].signature,
                                  static_cast<int>(rank)));
  }
  return absl::OkStatus();
}

absl::Status RankExchange::Enqueue(const Plan& plan) {
  const int size = static_cast<int>(arrivals_.size());
  // The last event of each rank. Streams wait only for events that have been
  // recorded, so an error leaves no stream waiting.
  absl::InlinedVector<const Event*, kLocalDeviceRanksMax> reached;
  for (const Arrival& arrival : arrivals_) reached.push_back(arrival.ready);
  for (const Round& round : plan) {
    RankList workers;
    for (const ReductionTask& task : round) {
      if (!workers.empty() && workers.back() == task.rank) continue;
      workers.push_back(task.rank);
    }
    // All ranks wait before any of them records its event again, because the
    // ranks of a round do not wait for each other.
    for (const int rank : workers) RETURN_IF_ERROR(AwaitOthers(rank, reached));
    for (const ReductionTask& task : round) RETURN_IF_ERROR(RunTask(task));
    for (const int rank : workers) {
      const DeviceRank& worker = *arrivals_[rank].rank;
      RETURN_IF_ERROR(worker.stream->Record(worker.reached.get()));
      reached[rank] = worker.reached.get();
    }
  }
  // A rank is done after all others, which may use its memory until then.
  for (int rank = 0; rank < size; ++rank) {
    RETURN_IF_ERROR(AwaitOthers(rank, reached));
    RETURN_IF_ERROR(arrivals_[rank].rank->stream->Record(arrivals_[rank].done));
  }
  return absl::OkStatus();
}

absl::Status RankExchange::AwaitOthers(int rank,
                                       absl::Span<const Event* const> events) {
  const DeviceRank& waiting = *arrivals_[rank].rank;
  for (const Event* const event : events) {
    if (event == waiting.reached.get()) continue;
    RETURN_IF_ERROR(waiting.stream->Wait(*event));
  }
  return absl::OkStatus();
}

absl::Status RankExchange::RunTask(const ReductionTask& task) {
  const CallSignature& call = arrivals_[task.rank].signature;
  DeviceRank& rank = *arrivals_[task.rank].rank;
  const size_t offset = task.range.begin * SizeOf(call.dtype);
  const int64_t count = task.range.end - task.range.begin;
  const size_t size_bytes = count * SizeOf(call.dtype);
  if (size_bytes == 0) return absl::OkStatus();
  uint8_t* const output = arrivals_[task.rank].data + offset;
  const auto copy = [&](const Arrival& source, uint8_t* to) {
    return AreOnOneGpu(*source.rank, rank)
               ? rank.stream->Copy(source.data + offset, to, size_bytes)
               : rank.stream->CopyFromPeer(source.rank->device->context(),
                                           source.data + offset, to,
                                           size_bytes);
  };
  if (task.sources.size() == 1) {
    const Arrival& source = arrivals_[task.sources[0]];
    return source.data + offset == output ? absl::OkStatus()
                                          : copy(source, output);
  }
  size_t copied_bytes = 0;
  for (const int r : task.sources) {
    if (!AreOnOneGpu(*arrivals_[r].rank, rank)) copied_bytes += size_bytes;
  }
  ASSIGN_OR_RETURN(uint8_t * next, ScratchOf(&rank, copied_bytes));
  absl::InlinedVector<const void*, kLocalDeviceRanksMax> inputs;
  for (const int r : task.sources) {
    const Arrival& source = arrivals_[r];
    if (AreOnOneGpu(*source.rank, rank)) {
      inputs.push_back(source.data + offset);
      continue;
    }
    RETURN_IF_ERROR(copy(source, next));
    inputs.push_back(next);
    next += size_bytes;
  }
  absl::InlinedVector<void*, kLocalDeviceRanksMax> outputs = {output};
  if (task.is_for_all) {
    outputs.clear();
    for (const Arrival& arrival : arrivals_) {
      outputs.push_back(arrival.data + offset);
    }
  }
  return ReduceOnDevice(call.reduce_op, call.dtype, count, inputs,
                        task.is_half ? 1 : static_cast<int>(arrivals_.size()),
                        outputs, rank.device, rank.stream.get());
}

}  // namespace muster::internal
