#include "common/net/collectives/on_device/local_device_group.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/base/clock.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/message/frame.h"
#include "common/net/collectives/nccl/agreement.h"
#include "common/net/collectives/on_device/device_reduce.h"
#include "common/net/collectives/reduce_kernels.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

static_assert(kLocalDeviceRanksMax <= kReducedOutputsMax);

constexpr int kHierarchyRanksMin = 4;
// Of an all-reduce of kHierarchical.
constexpr int kRoundsMax = 3;

using Range = Communicator::Range;

// A rank's part in a round: the range of its buffer becomes the reduction of
// the same range of the sources. One source is copied.
struct Task {
  Range range;
  std::vector<int> sources;
  bool is_half = false;  // A part of a mean, which is divided later.
  // The range of the buffers of all ranks, which have one GPU.
  bool is_for_all = false;
};
// What a rank does between two waits for the others. No rank reads or writes in
// a round what another rank writes in it.
using Round = std::vector<Task>;

std::vector<int> Ranks(int begin, int end) {
  std::vector<int> ranks;
  for (int rank = begin; rank < end; ++rank) ranks.push_back(rank);
  return ranks;
}

Round CopyFrom(int source, int rank, Range range) {
  if (source == rank) return {};
  return {{range, {source}}};
}

std::vector<Round> AllReduceRounds(DeviceReduction reduction, bool has_one_gpu,
                                   int rank, int size, int64_t element_count) {
  const Range all{0, element_count};
  if (reduction == DeviceReduction::kByParts) {
    const auto part = [&](int r) {
      return Communicator::PartOf(element_count, r, size);
    };
    if (has_one_gpu) {
      return {{{part(rank), Ranks(0, size), false, /*is_for_all=*/true}}};
    }
    Round copies;
    for (int r = 0; r < size; ++r) {
      if (r != rank) copies.push_back({part(r), {r}});
    }
    return {{{part(rank), Ranks(0, size)}}, std::move(copies)};
  }
  const bool has_halves =
      reduction == DeviceReduction::kHierarchical && size >= kHierarchyRanksMin;
  if (!has_halves) {
    return {rank == 0 ? Round{{all, Ranks(0, size)}} : Round(),
            CopyFrom(0, rank, all)};
  }
  const int half = (size + 1) / 2;
  Round halves;
  if (rank == 0) halves.push_back({all, Ranks(0, half), true});
  if (rank == half) halves.push_back({all, Ranks(half, size), true});
  return {std::move(halves), rank == 0 ? Round{{all, {0, half}}} : Round(),
          CopyFrom(0, rank, all)};
}

// What the ranks of one group know of each other. Barriers separate writes
// from reads.
struct Exchange {
  struct Entry {
    Device* device = nullptr;
    uint8_t* data = nullptr;
    // What the rank's stream has reached: events[k] is before round k.
    std::vector<std::unique_ptr<Event>> events;
  };
  std::vector<Entry> entries;  // By rank.
};

class LocalDeviceCommunicator final : public DeviceCommunicator {
 public:
  LocalDeviceCommunicator(std::shared_ptr<Exchange> exchange,
                          std::unique_ptr<Communicator> host,
                          std::unique_ptr<DeviceStream> stream,
                          DeviceReduction reduction)
      : exchange_(std::move(exchange)),
        host_(std::move(host)),
        stream_(std::move(stream)),
        reduction_(reduction) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  uint64_t generation() const override { return host_->generation(); }
  std::string transport() const override { return "memory of the GPUs"; }
  Device& device() const override { return *own().device; }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) override {
    return host_->Allocate(size_bytes, call);
  }
  absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                         const CollectiveCall& call) override {
    return host_->AllReduce(op, buffer, call);
  }
  absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                             const CollectiveCall& call) override {
    return host_->ReduceScatter(op, buffer, call);
  }
  absl::Status AllGather(TensorSpan input,
                         absl::Span<const int64_t> element_counts,
                         TensorSpan output,
                         const CollectiveCall& call) override {
    return host_->AllGather(input, element_counts, output, call);
  }
  absl::Status Broadcast(TensorSpan buffer, int root,
                         const CollectiveCall& call) override {
    return host_->Broadcast(buffer, root, call);
  }
  absl::Status Barrier(const CollectiveCall& call) override;
  void Abort(absl::Status status) override { host_->Abort(std::move(status)); }
  CollectiveProgress Progress() const override;

  absl::Status StartAllReduce(ReduceOp op, TensorSpan buffer,
                              const Event& ready, Event* done,
                              const CollectiveCall& call) override;
  absl::Status StartReduceScatter(ReduceOp op, TensorSpan buffer,
                                  const Event& ready, Event* done,
                                  const CollectiveCall& call) override;
  absl::Status StartAllGather(absl::Span<const int64_t> element_counts,
                              TensorSpan buffer, const Event& ready,
                              Event* done, const CollectiveCall& call) override;
  absl::Status StartBroadcast(TensorSpan buffer, int root, const Event& ready,
                              Event* done, const CollectiveCall& call) override;
  // A collective is started when all ranks have come.
  void UseEndWord(std::shared_ptr<Buffer>) override {}
  absl::Status Await() override;

 private:
  Exchange::Entry& own() const { return exchange_->entries[rank()]; }
  // True if the memory of `entry` is that of this rank's GPU.
  bool IsHere(const Exchange::Entry& entry) const {
    return entry.device->context().ordinal() == device().context().ordinal();
  }
  bool HasOneGpu() const {
    return std::all_of(
        exchange_->entries.begin(), exchange_->entries.end(),
        [this](const Exchange::Entry& entry) { return IsHere(entry); });
  }

  // Tells Progress() of a call, and gives its error its form.
  absl::Status Run(CollectiveOperation operation, const CollectiveCall& call,
                   absl::FunctionRef<absl::Status()> run);
  // Begins a collective when all ranks have come with the same signature.
  absl::Status Start(const CallSignature& signature, ReduceOp op,
                     TensorSpan buffer, absl::Span<const Round> rounds,
                     const Event& ready, Event* done,
                     const CollectiveCall& call);
  absl::Status RunRounds(const CallSignature& signature, ReduceOp op,
                         TensorSpan buffer, absl::Span<const Round> rounds,
                         const Event& ready, Event* done,
                         const CollectiveCall& call);
  // The stream continues when all ranks have come before round `round`.
  absl::Status AwaitRound(size_t round);
  absl::Status RunTask(const Task& task, ReduceOp op, TensorSpan buffer);
  // Memory for what is copied from other GPUs.
  absl::StatusOr<uint8_t*> Scratch(size_t size_bytes);

  const std::shared_ptr<Exchange> exchange_;
  const std::unique_ptr<Communicator> host_;
  const std::unique_ptr<DeviceStream> stream_;
  std::shared_ptr<Buffer> scratch_;  // Of the stream, and ends before it.
  const DeviceReduction reduction_;
  absl::Time deadline_ = absl::InfinitePast();  // Of what has been started.

  mutable absl::Mutex mutex_;
  // What Progress() says while Run() runs, but for the ranks.
  CollectiveProgress current_ ABSL_GUARDED_BY(mutex_);
  absl::Time start_time_ ABSL_GUARDED_BY(mutex_);
};

absl::Status LocalDeviceCommunicator::StartAllReduce(
    ReduceOp op, TensorSpan buffer, const Event& ready, Event* done,
    const CollectiveCall& call) {
  RETURN_IF_ERROR(CheckReducible(buffer.dtype));
  return Start({.operation = CollectiveOperation::kAllReduce,
                .reduce_op = op,
                .dtype = buffer.dtype,
                .element_count = buffer.element_count},
               op, buffer,
               AllReduceRounds(reduction_, HasOneGpu(), rank(), size(),
                               buffer.element_count),
               ready, done, call);
}

absl::Status LocalDeviceCommunicator::StartReduceScatter(
    ReduceOp op, TensorSpan buffer, const Event& ready, Event* done,
    const CollectiveCall& call) {
  RETURN_IF_ERROR(CheckReducible(buffer.dtype));
  const Task own_part{PartOf(buffer.element_count, rank(), size()),
                      Ranks(0, size())};
  return Start({.operation = CollectiveOperation::kReduceScatter,
                .reduce_op = op,
                .dtype = buffer.dtype,
                .element_count = buffer.element_count},
               op, buffer, {{own_part}}, ready, done, call);
}

absl::Status LocalDeviceCommunicator::StartAllGather(
    absl::Span<const int64_t> element_counts, TensorSpan buffer,
    const Event& ready, Event* done, const CollectiveCall& call) {
  MUSTER_CHECK(static_cast<int>(element_counts.size()) == size());
  Round copies;
  int64_t begin = 0;
  for (int r = 0; r < size(); ++r) {
    const Range part{begin, begin + element_counts[r]};
    if (r != rank()) copies.push_back({part, {r}});
    begin = part.end;
  }
  return Start({.operation = CollectiveOperation::kAllGather,
                .dtype = buffer.dtype,
                .element_count = buffer.element_count,
                .layout = LayoutOf(element_counts)},
               ReduceOp::kSum, buffer, {std::move(copies)}, ready, done, call);
}

absl::Status LocalDeviceCommunicator::StartBroadcast(
    TensorSpan buffer, int root, const Event& ready, Event* done,
    const CollectiveCall& call) {
  return Start({.operation = CollectiveOperation::kBroadcast,
                .dtype = buffer.dtype,
                .root = root,
                .element_count = buffer.element_count},
               ReduceOp::kSum, buffer,
               {CopyFrom(root, rank(), {0, buffer.element_count})}, ready, done,
               call);
}

absl::Status LocalDeviceCommunicator::Barrier(const CollectiveCall& call) {
  const CallSignature signature = {.operation = CollectiveOperation::kBarrier};
  return Run(signature.operation, call,
             [&] { return AgreeAboutCall(*host_, signature, call); });
}

absl::Status LocalDeviceCommunicator::Start(const CallSignature& signature,
                                            ReduceOp op, TensorSpan buffer,
                                            absl::Span<const Round> rounds,
                                            const Event& ready, Event* done,
                                            const CollectiveCall& call) {
  return Run(signature.operation, call, [&] {
    return RunRounds(signature, op, buffer, rounds, ready, done, call);
  });
}

absl::Status LocalDeviceCommunicator::Run(
    CollectiveOperation operation, const CollectiveCall& call,
    absl::FunctionRef<absl::Status()> run) {
  {
    const absl::MutexLock lock(&mutex_);
    current_.is_running = true;
    current_.operation = std::string(CollectiveOperationName(operation));
    current_.name = std::string(call.name);
    ++current_.sequence;
    start_time_ = Clock::Real()->Now();
  }
  const absl::Status status = run();
  std::string attempted;
  {
    const absl::MutexLock lock(&mutex_);
    current_.is_running = false;
    if (status.ok()) return status;
    attempted =
        absl::StrCat(current_.operation, " of ", current_.name, " (collective ",
                     current_.sequence, " of generation ", generation(),
                     ") on ", device().name());
  }
  const absl::Status named =
      WithMessage(status, absl::StrCat(attempted, ": ", status.message()));
  host_->Abort(named);
  return named;
}

absl::Status LocalDeviceCommunicator::RunRounds(const CallSignature& signature,
                                                ReduceOp op, TensorSpan buffer,
                                                absl::Span<const Round> rounds,
                                                const Event& ready, Event* done,
                                                const CollectiveCall& call) {
  MUSTER_CHECK(rounds.size() <= kRoundsMax);
  const absl::Time deadline = Clock::Real()->Now() + call.timeout;
  const auto rest_of_call = [&] {
    return CollectiveCall{call.name, deadline - Clock::Real()->Now()};
  };
  deadline_ = std::max(deadline_, deadline);
  RETURN_IF_ERROR(stream_->Wait(ready));
  RETURN_IF_ERROR(stream_->Record(own().events[0].get()));
  own().data = buffer.bytes();
  RETURN_IF_ERROR(AgreeAboutCall(*host_, signature, call));
  for (size_t k = 0; k < rounds.size(); ++k) {
    RETURN_IF_ERROR(AwaitRound(k));
    for (const Task& task : rounds[k]) {
      RETURN_IF_ERROR(RunTask(task, op, buffer));
    }
    RETURN_IF_ERROR(stream_->Record(own().events[k + 1].get()));
    RETURN_IF_ERROR(host_->Barrier(rest_of_call()));
  }
  // Others read this rank's memory until then.
  RETURN_IF_ERROR(AwaitRound(rounds.size()));
  return stream_->Record(done);
}

absl::Status LocalDeviceCommunicator::AwaitRound(size_t round) {
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    RETURN_IF_ERROR(stream_->Wait(*exchange_->entries[r].events[round]));
  }
  return absl::OkStatus();
}

absl::Status LocalDeviceCommunicator::RunTask(const Task& task, ReduceOp op,
                                              TensorSpan buffer) {
  const size_t offset = task.range.begin * SizeOf(buffer.dtype);
  const int64_t count = task.range.end - task.range.begin;
  const size_t size_bytes = count * SizeOf(buffer.dtype);
  if (size_bytes == 0) return absl::OkStatus();
  uint8_t* const output = buffer.bytes() + offset;
  // Copies `source` to `to`.
  const auto copy = [&](const Exchange::Entry& source, uint8_t* to) {
    return IsHere(source)
               ? stream_->Copy(source.data + offset, to, size_bytes)
               : stream_->CopyFromPeer(source.device->context(),
                                       source.data + offset, to, size_bytes);
  };
  if (task.sources.size() == 1) {
    const Exchange::Entry& source = exchange_->entries[task.sources[0]];
    return source.data == buffer.bytes() ? absl::OkStatus()
                                         : copy(source, output);
  }
  ASSIGN_OR_RETURN(uint8_t * next,
                   Scratch((task.sources.size() - 1) * size_bytes));
  absl::InlinedVector<const void*, kLocalDeviceRanksMax> inputs;
  for (const int r : task.sources) {
    const Exchange::Entry& source = exchange_->entries[r];
    if (IsHere(source)) {
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
    for (const Exchange::Entry& entry : exchange_->entries) {
      outputs.push_back(entry.data + offset);
    }
  }
  return ReduceOnDevice(op, buffer.dtype, count, inputs,
                        task.is_half ? 1 : size(), outputs, &device(),
                        stream_.get());
}

absl::StatusOr<uint8_t*> LocalDeviceCommunicator::Scratch(size_t size_bytes) {
  if (scratch_ == nullptr || scratch_->size_bytes() < size_bytes) {
    scratch_ = nullptr;
    ASSIGN_OR_RETURN(scratch_,
                     device().memory().Allocate(
                         size_bytes, {.what = "copies of other replicas' packs",
                                      .name = device().name()}));
    device().memory().NoteUse(*scratch_, stream_.get());
  }
  return scratch_->data();
}

absl::Status LocalDeviceCommunicator::Await() {
  const absl::Status status =
      stream_->Drain(std::max(deadline_, Clock::Real()->Now()),
                     "collectives of replicas of this process");
  if (!status.ok()) host_->Abort(status);
  return status;
}

CollectiveProgress LocalDeviceCommunicator::Progress() const {
  CollectiveProgress on_host = host_->Progress();
  const absl::MutexLock lock(&mutex_);
  if (!current_.is_running) return on_host;
  CollectiveProgress progress = current_;
  progress.elapsed = Clock::Real()->Now() - start_time_;
  progress.missing_ranks = std::move(on_host.missing_ranks);
  return progress;
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<DeviceCommunicator>>>
CreateLocalDeviceGroup(absl::Span<Device* const> devices,
                       std::vector<std::unique_ptr<Communicator>> host,
                       DeviceReduction reduction) {
  MUSTER_CHECK(devices.size() == host.size());
  if (devices.size() > kLocalDeviceRanksMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        devices.size(), " replicas on GPUs of one process; at most ",
        kLocalDeviceRanksMax, " can reduce in the memory of their GPUs"));
  }
  const auto exchange = std::make_shared<Exchange>();
  std::vector<std::unique_ptr<DeviceCommunicator>> group;
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    Exchange::Entry& entry = exchange->entries.emplace_back();
    entry.device = devices[rank];
    for (int k = 0; k <= kRoundsMax; ++k) {
      ASSIGN_OR_RETURN(entry.events.emplace_back(),
                       devices[rank]->CreateEvent());
    }
  }
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceStream> stream,
                     devices[rank]->CreateStream());
    group.push_back(std::make_unique<LocalDeviceCommunicator>(
        exchange, std::move(host[rank]), std::move(stream), reduction));
  }
  return group;
}

}  // namespace muster
