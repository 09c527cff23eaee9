#include "common/net/collectives/on_device/local_device_group.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/device/stream.h"
#include "common/core/system/clock.h"
#include "common/net/collectives/message/frame.h"
#include "common/net/collectives/nccl/agreement.h"
#include "common/net/collectives/on_device/rank_exchange.h"
#include "common/net/collectives/reduce_kernels.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

using internal::Arrival;
using internal::DeviceRank;
using internal::Plan;
using internal::RankExchange;
using internal::RankList;
using internal::Round;

constexpr int kHierarchyRanksMin = 4;

using Range = Communicator::Range;

RankList Ranks(int begin, int end) {
  RankList ranks;
  for (int rank = begin; rank < end; ++rank) ranks.push_back(rank);
  return ranks;
}

// Plans that all other ranks copy the range from `source`.
Round CopyFrom(int source, int size, Range range) {
  Round copies;
  for (int rank = 0; rank < size; ++rank) {
    if (rank != source) copies.push_back({rank, range, {source}});
  }
  return copies;
}

// Plans that each rank reduces its part.
Round ReduceParts(int size, int64_t element_count) {
  Round parts;
  for (int rank = 0; rank < size; ++rank) {
    parts.push_back({rank, Communicator::PartOf(element_count, rank, size),
                     Ranks(0, size)});
  }
  return parts;
}

// Plans that each rank copies the parts of the others.
Round GatherParts(int size, absl::FunctionRef<Range(int rank)> part_of) {
  Round copies;
  for (int rank = 0; rank < size; ++rank) {
    for (int source = 0; source < size; ++source) {
      if (source != rank) copies.push_back({rank, part_of(source), {source}});
    }
  }
  return copies;
}

Plan PlanAllReduce(DeviceReduction reduction, bool has_one_gpu, int size,
                   int64_t element_count) {
  const Range all{0, element_count};
  if (reduction == DeviceReduction::kByParts) {
    if (has_one_gpu) {
      return {{{0, all, Ranks(0, size), false, /*is_for_all=*/true}}};
    }
    return {ReduceParts(size, element_count), GatherParts(size, [&](int rank) {
              return Communicator::PartOf(element_count, rank, size);
            })};
  }
  if (reduction != DeviceReduction::kHierarchical ||
      size < kHierarchyRanksMin) {
    return {{{0, all, Ranks(0, size)}}, CopyFrom(0, size, all)};
  }
  const int half = (size + 1) / 2;
  return {
      {{0, all, Ranks(0, half), true}, {half, all, Ranks(half, size), true}},
      {{0, all, {0, half}}},
      CopyFrom(0, size, all)};
}

// State shared by the communicators of a group.
struct Group {
  Group(absl::Span<Device* const> devices, DeviceReduction reduction)
      : reduction(reduction),
        has_one_gpu(std::all_of(devices.begin(), devices.end(),
                                [&](Device* device) {
                                  return device->context().ordinal() ==
                                         devices[0]->context().ordinal();
                                })),
        exchange(static_cast<int>(devices.size())) {}

  const DeviceReduction reduction;
  const bool has_one_gpu;
  RankExchange exchange;
};

class LocalDeviceCommunicator final : public DeviceCommunicator {
 public:
  LocalDeviceCommunicator(std::shared_ptr<Group> group,
                          std::unique_ptr<Communicator> host, DeviceRank own)
      : group_(std::move(group)),
        host_(std::move(host)),
        own_(std::move(own)) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  uint64_t generation() const override { return host_->generation(); }
  std::string transport() const override { return "memory of the GPUs"; }
  Device& device() const override { return *own_.device; }

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
  // A started collective cannot fail: all ranks' work is already enqueued.
  void UseEndWord(std::shared_ptr<Buffer>) override {}
  absl::Status Await() override;

 private:
  Arrival MakeArrival(const CallSignature& signature, const TensorSpan& buffer,
                      const Event& ready, Event* done) {
    return {.signature = signature,
            .rank = &own_,
            .data = buffer.bytes(),
            .ready = &ready,
            .done = done};
  }
  // Takes part in a collective. `make_plan` makes the work of all ranks.
  // Updates Progress() and adds context to an error.
  absl::Status Run(const Arrival& arrival, absl::FunctionRef<Plan()> make_plan,
                   const CollectiveCall& call);

  const std::shared_ptr<Group> group_;
  const std::unique_ptr<Communicator> host_;
  DeviceRank own_;
  absl::Time deadline_ = absl::InfinitePast();  // Latest deadline of the
                                                // started collectives.

  mutable absl::Mutex mutex_;
  // The content of Progress() while Run() runs, except for the missing ranks.
  CollectiveProgress current_ ABSL_GUARDED_BY(mutex_);
  absl::Time start_time_ ABSL_GUARDED_BY(mutex_);
};

absl::Status LocalDeviceCommunicator::StartAllReduce(
    ReduceOp op, TensorSpan buffer, const Event& ready, Event* done,
    const CollectiveCall& call) {
  RETURN_IF_ERROR(CheckReducible(buffer.dtype));
  return Run(
      MakeArrival({.operation = CollectiveOperation::kAllReduce,
                   .reduce_op = op,
                   .dtype = buffer.dtype,
                   .element_count = buffer.element_count},
                  buffer, ready, done),
      [&] {
        return PlanAllReduce(group_->reduction, group_->has_one_gpu, size(),
                             buffer.element_count);
      },
      call);
}

absl::Status LocalDeviceCommunicator::StartReduceScatter(
    ReduceOp op, TensorSpan buffer, const Event& ready, Event* done,
    const CollectiveCall& call) {
  RETURN_IF_ERROR(CheckReducible(buffer.dtype));
  return Run(
      MakeArrival({.operation = CollectiveOperation::kReduceScatter,
                   .reduce_op = op,
                   .dtype = buffer.dtype,
                   .element_count = buffer.element_count},
                  buffer, ready, done),
      [&] { return Plan{ReduceParts(size(), buffer.element_count)}; }, call);
}

absl::Status LocalDeviceCommunicator::StartAllGather(
    absl::Span<const int64_t> element_counts, TensorSpan buffer,
    const Event& ready, Event* done, const CollectiveCall& call) {
  MUSTER_CHECK(static_cast<int>(element_counts.size()) == size());
  std::vector<Range> parts;
  int64_t begin = 0;
  for (const int64_t count : element_counts) {
    parts.push_back({begin, begin + count});
    begin += count;
  }
  return Run(
      MakeArrival({.operation = CollectiveOperation::kAllGather,
                   .dtype = buffer.dtype,
                   .element_count = buffer.element_count,
                   .layout = LayoutOf(element_counts)},
                  buffer, ready, done),
      [&] {
        return Plan{GatherParts(size(), [&](int r) { return parts[r]; })};
      },
      call);
}

absl::Status LocalDeviceCommunicator::StartBroadcast(
    TensorSpan buffer, int root, const Event& ready, Event* done,
    const CollectiveCall& call) {
  return Run(
      MakeArrival({.operation = CollectiveOperation::kBroadcast,
                   .dtype = buffer.dtype,
                   .root = root,
                   .element_count = buffer.element_count},
                  buffer, ready, done),
      [&] {
        return Plan{CopyFrom(root, size(), {0, buffer.element_count})};
      },
      call);
}

absl::Status LocalDeviceCommunicator::Barrier(const CollectiveCall& call) {
  return Run(
      {.signature = {.operation = CollectiveOperation::kBarrier},
       .rank = &own_},
      [] { return Plan(); }, call);
}

absl::Status LocalDeviceCommunicator::Run(const Arrival& arrival,
                                          absl::FunctionRef<Plan()> make_plan,
                                          const CollectiveCall& call) {
  const absl::Time start_time = Clock::Real()->Now();
  deadline_ = std::max(deadline_, start_time + call.timeout);
  {
    const absl::MutexLock lock(&mutex_);
    current_.is_running = true;
    current_.operation =
        std::string(CollectiveOperationName(arrival.signature.operation));
    current_.name = std::string(call.name);
    ++current_.sequence;
    start_time_ = start_time;
  }
  group_->exchange.Arrive(rank(), arrival, make_plan);
  const absl::Status status = group_->exchange.Leave(host_->Barrier(call));
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

absl::Status LocalDeviceCommunicator::Await() {
  const absl::Status status =
      own_.stream->Drain(std::max(deadline_, Clock::Real()->Now()),
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
  const auto shared = std::make_shared<Group>(devices, reduction);
  std::vector<std::unique_ptr<DeviceCommunicator>> group;
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    ASSIGN_OR_RETURN(DeviceRank own, internal::MakeDeviceRank(devices[rank]));
    group.push_back(std::make_unique<LocalDeviceCommunicator>(
        shared, std::move(host[rank]), std::move(own)));
  }
  return group;
}

}  // namespace muster
