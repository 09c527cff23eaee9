#include "common/net/collectives/message/message_communicator.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/page_memory.h"
#include "common/net/collectives/cost_model.h"
#include "common/net/collectives/message/lane_group.h"
#include "common/net/collectives/message/transfer_plan.h"
#include "common/net/collectives/reduce_kernels.h"
#include "common/net/collectives/schedule.h"

namespace muster {
namespace {

// Plans are cached because a training step repeats the same calls.
constexpr size_t kCachedPlanCountMax = 64;

// Segments are small enough to stay in a cache while they are reduced and
// forwarded, and large enough to make the cost of their headers negligible.
constexpr size_t kSegmentBytesMax = size_t{1} << 20;

int64_t SegmentElements(DType dtype) {
  const size_t element_bytes = std::max<size_t>(SizeOf(dtype), 1);
  return static_cast<int64_t>(kSegmentBytesMax / element_bytes);
}

uint64_t HashOf(absl::Span<const int64_t> counts) {
  uint64_t hash = counts.size();
  for (const int64_t count : counts) {
    hash = FoldIn(hash, static_cast<uint64_t>(count));
  }
  return hash;
}

class MessageCommunicator final : public Communicator {
 public:
  MessageCommunicator(MessageGroup group, AlgorithmChoice choose)
      : choose_(std::move(choose)),
        lanes_(group.rank, group.generation, std::move(group.lanes),
               std::move(group.rank_names)) {}

  int rank() const override { return lanes_.rank(); }
  int size() const override { return lanes_.size(); }
  uint64_t generation() const override { return lanes_.generation(); }
  std::string transport() const override { return lanes_.transport(); }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) override;
  absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                         const CollectiveCall& call) override {
    return Combine(CollectiveOperation::kAllReduce, op, buffer, call);
  }
  absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                             const CollectiveCall& call) override {
    return Combine(CollectiveOperation::kReduceScatter, op, buffer, call);
  }
  absl::Status AllGather(TensorSpan input,
                         absl::Span<const int64_t> element_counts,
                         TensorSpan output,
                         const CollectiveCall& call) override;
  absl::Status Broadcast(TensorSpan buffer, int root,
                         const CollectiveCall& call) override;
  absl::Status Barrier(const CollectiveCall& call) override;

  void Abort(absl::Status status) override { lanes_.Abort(std::move(status)); }
  CollectiveProgress Progress() const override { return lanes_.Progress(); }

 private:
  struct CachedPlan {
    CallSignature signature;
    TransferPlan plan;
  };

  // Returns the plan of the call that `signature` describes, which `make` makes
  // if it is not cached. Valid until the next call.
  template <typename Make>
  const TransferPlan& PlanOf(const CallSignature& signature, Make make);

  absl::Status Run(const TransferPlan& plan, const CallSignature& signature,
                   const CollectiveCall& call, void* memory);
  // All-reduces or reduce-scatters. Both use the algorithm of an all-reduce, so
  // that the parts of a reduce-scatter have the same bits.
  absl::Status Combine(CollectiveOperation operation, ReduceOp op,
                       TensorSpan buffer, const CollectiveCall& call);
  absl::Status CombineAtOnce(const CallSignature& signature, TensorSpan buffer,
                             const CollectiveCall& call);
  // Returns the owner of `memory` if this communicator allocated it, else null.
  std::shared_ptr<const void> OwnerOf(const void* memory);

  const AlgorithmChoice choose_;
  std::vector<std::weak_ptr<Buffer>> allocated_;
  std::list<CachedPlan> plans_;  // Most recently used first.
  // The values of all ranks in a one-shot all-reduce, which each rank reduces
  // by itself.
  std::shared_ptr<Buffer> stage_;
  LaneGroup lanes_;
};

template <typename Make>
const TransferPlan& MessageCommunicator::PlanOf(const CallSignature& signature,
                                                Make make) {
  for (auto it = plans_.begin(); it != plans_.end(); ++it) {
    if (it->signature == signature) {
      plans_.splice(plans_.begin(), plans_, it);
      return plans_.front().plan;
    }
  }
  if (plans_.size() >= kCachedPlanCountMax) plans_.pop_back();
  plans_.push_front(
      {signature,
       MakeTransferPlan(make(), size(), SegmentElements(signature.dtype))});
  return plans_.front().plan;
}

absl::Status MessageCommunicator::Run(const TransferPlan& plan,
                                      const CallSignature& signature,
                                      const CollectiveCall& call,
                                      void* memory) {
  Transmission transmission;
  transmission.plan = &plan;
  transmission.signature = signature;
  transmission.name = call.name;
  transmission.timeout = call.timeout;
  transmission.memory = static_cast<uint8_t*>(memory);
  transmission.memory_owner = OwnerOf(memory);
  return lanes_.Run(transmission);
}

std::shared_ptr<const void> MessageCommunicator::OwnerOf(const void* memory) {
  const auto* bytes = static_cast<const uint8_t*>(memory);
  if (stage_ != nullptr && bytes == stage_->data()) return stage_;
  for (const std::weak_ptr<Buffer>& weak : allocated_) {
    std::shared_ptr<Buffer> buffer = weak.lock();
    if (buffer != nullptr && bytes >= buffer->data() &&
        bytes < buffer->data() + buffer->size_bytes()) {
      return buffer;
    }
  }
  return nullptr;
}

absl::StatusOr<std::shared_ptr<Buffer>> MessageCommunicator::Allocate(
    size_t size_bytes, const CollectiveCall&) {
  std::erase_if(allocated_, [](const auto& weak) { return weak.expired(); });
  std::shared_ptr<Buffer> buffer = AllocatePages(size_bytes);
  allocated_.push_back(buffer);
  return buffer;
}

absl::Status MessageCommunicator::Combine(CollectiveOperation operation,
                                          ReduceOp op, TensorSpan buffer,
                                          const CollectiveCall& call) {
  RETURN_IF_ERROR(CheckReducible(buffer.dtype));
  if (size() == 1) return absl::OkStatus();
  const Algorithm algorithm = choose_(size(), buffer.size_bytes());
  CallSignature signature;
  signature.operation = operation;
  signature.reduce_op = op;
  signature.dtype = buffer.dtype;
  signature.algorithm = static_cast<uint8_t>(algorithm);
  signature.element_count = buffer.element_count;
  if (algorithm == Algorithm::kOneShot) {
    return CombineAtOnce(signature, buffer, call);
  }
  const TransferPlan& plan = PlanOf(signature, [&] {
    return operation == CollectiveOperation::kReduceScatter
               ? ReduceScatterSchedule(algorithm, rank(), size(),
                                       buffer.element_count)
               : AllReduceSchedule(algorithm, rank(), size(),
                                   buffer.element_count);
  });
  return Run(plan, signature, call, buffer.data);
}

absl::Status MessageCommunicator::CombineAtOnce(const CallSignature& signature,
                                                TensorSpan buffer,
                                                const CollectiveCall& call) {
  const size_t size_bytes = buffer.size_bytes();
  if (stage_ == nullptr || stage_->size_bytes() < size() * size_bytes) {
    stage_ = Buffer::Allocate(size() * size_bytes);
  }
  uint8_t* const own = stage_->data() + rank() * size_bytes;
  if (size_bytes > 0) std::memcpy(own, buffer.data, size_bytes);
  const TransferPlan& plan = PlanOf(signature, [&] {
    std::vector<int64_t> ends;
    for (int peer = 1; peer <= size(); ++peer) {
      ends.push_back(peer * buffer.element_count);
    }
    return AllGatherSchedule(Algorithm::kDirect, rank(), ends);
  });
  RETURN_IF_ERROR(Run(plan, signature, call, stage_->data()));
  if (size_bytes == 0) return absl::OkStatus();
  std::vector<const void*> inputs;
  for (int peer = 0; peer < size(); ++peer) {
    inputs.push_back(stage_->data() + peer * size_bytes);
  }
  Reduce(signature.reduce_op, buffer.dtype, buffer.element_count, inputs,
         {&buffer.data, 1});
  return absl::OkStatus();
}

absl::Status MessageCommunicator::AllGather(
    TensorSpan input, absl::Span<const int64_t> element_counts,
    TensorSpan output, const CollectiveCall& call) {
  std::vector<int64_t> ends;
  int64_t end = 0;
  for (const int64_t count : element_counts) ends.push_back(end += count);
  MUSTER_CHECK(static_cast<int>(ends.size()) == size());
  MUSTER_CHECK(input.dtype == output.dtype &&
               input.element_count == element_counts[rank()] &&
               output.element_count == end);
  const TensorSpan own =
      output.Part(end = ends[rank()] - input.element_count, ends[rank()]);
  if (own.size_bytes() > 0 && own.data != input.data) {
    std::memmove(own.data, input.data, own.size_bytes());
  }
  if (size() == 1) return absl::OkStatus();
  CallSignature signature;
  signature.operation = CollectiveOperation::kAllGather;
  signature.dtype = output.dtype;
  signature.algorithm = static_cast<uint8_t>(Algorithm::kDirect);
  signature.element_count = output.element_count;
  signature.layout = HashOf(element_counts);
  const TransferPlan& plan = PlanOf(signature, [&] {
    return AllGatherSchedule(Algorithm::kDirect, rank(), ends);
  });
  return Run(plan, signature, call, output.data);
}

absl::Status MessageCommunicator::Broadcast(TensorSpan buffer, int root,
                                            const CollectiveCall& call) {
  if (size() == 1) return absl::OkStatus();
  CallSignature signature;
  signature.operation = CollectiveOperation::kBroadcast;
  signature.dtype = buffer.dtype;
  signature.algorithm = static_cast<uint8_t>(Algorithm::kTree);
  signature.root = root;
  signature.element_count = buffer.element_count;
  const TransferPlan& plan = PlanOf(signature, [&] {
    return BroadcastSchedule(rank(), size(), root, buffer.element_count);
  });
  return Run(plan, signature, call, buffer.data);
}

absl::Status MessageCommunicator::Barrier(const CollectiveCall& call) {
  if (size() == 1) return absl::OkStatus();
  CallSignature signature;
  signature.operation = CollectiveOperation::kBarrier;
  signature.algorithm = static_cast<uint8_t>(Algorithm::kDissemination);
  const TransferPlan& plan =
      PlanOf(signature, [&] { return BarrierSchedule(rank(), size()); });
  return Run(plan, signature, call, nullptr);
}

}  // namespace

Algorithm ChooseAlgorithm(int size, size_t size_bytes) {
  return CheapestAllReduce(size, static_cast<int64_t>(size_bytes),
                           RawLaneCosts());
}

absl::StatusOr<std::unique_ptr<Communicator>> MakeMessageCommunicator(
    MessageGroup group, AlgorithmChoice choose) {
  const int size = static_cast<int>(group.lanes.size());
  if (group.rank < 0 || group.rank >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", group.rank, " in a group of ", size));
  }
  if (!group.rank_names.empty() &&
      group.rank_names.size() != group.lanes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(group.rank_names.size(), " names for ", size, " ranks"));
  }
  for (int peer = 0; peer < size; ++peer) {
    if ((group.lanes[peer] == nullptr) != (peer == group.rank)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rank ", group.rank, peer == group.rank ? " has" : " has no",
          " lane to rank ", peer));
    }
  }
  return std::make_unique<MessageCommunicator>(std::move(group),
                                               std::move(choose));
}

}  // namespace muster
