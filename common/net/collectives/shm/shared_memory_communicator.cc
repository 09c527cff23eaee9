#include "common/net/collectives/shm/shared_memory_communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/net/collectives/reduce_kernels.h"
#include "common/net/rpc/fault_point.h"

namespace muster::internal {
namespace {

constexpr size_t kLineBytes = 64;

// More prefetches in flight would delay the caller's next work.
constexpr size_t kReclaimedBytesMax = 2048;

// Bytes that are read from the other ranks' memory at once. They stay in this
// rank's cache until they have been reduced.
constexpr size_t kReadBytes = 256 * 1024;

// Returns the bytes of `size_bytes` that `rank` reduces: whole cache lines, so
// that no two ranks write to the same line.
std::pair<size_t, size_t> LinesOf(size_t size_bytes, int rank, int size) {
  const int64_t line_count = (size_bytes + kLineBytes - 1) / kLineBytes;
  const Communicator::Range lines =
      Communicator::PartOf(line_count, rank, size);
  return {std::min(lines.begin * kLineBytes, size_bytes),
          std::min(lines.end * kLineBytes, size_bytes)};
}

absl::Status CheckMovable(DType dtype) {
  if (dtype == DType::kString || SizeOf(dtype) == 0) {
    return absl::UnimplementedError(
        absl::StrCat(DTypeName(dtype), " cannot be moved between ranks"));
  }
  return absl::OkStatus();
}

uint32_t HashCounts(absl::Span<const int64_t> counts) {
  uint64_t hash = 0;
  for (const int64_t count : counts) {
    hash = FoldIn(hash, static_cast<uint64_t>(count));
  }
  return static_cast<uint32_t>(hash);
}

}  // namespace

class SharedMemoryCommunicator::Call {
 public:
  Call(RankBarrier* barrier, Collective collective, const CollectiveCall& call)
      : barrier_(barrier), status_(barrier->Begin(collective, call)) {}
  ~Call() { barrier_->End(); }

  const absl::Status& status() const { return status_; }

  // Returns OK if `argument` is OK. Otherwise fails the group, so that the
  // others do not wait for this rank.
  absl::Status Check(const absl::Status& argument) {
    return argument.ok() ? argument : barrier_->Fail(argument);
  }

 private:
  RankBarrier* const barrier_;
  const absl::Status status_;
};

SharedMemoryCommunicator::SharedMemoryCommunicator(Options options,
                                                   MemoryResources ground)
    : options_(std::move(options)),
      resources_(std::move(ground)),
      barrier_(resources_.barrier.get()),
      memory_(resources_.memory.get()),
      rank_(barrier_->rank()),
      size_(barrier_->size()) {}

SharedMemoryCommunicator::~SharedMemoryCommunicator() { barrier_->Leave(); }

void SharedMemoryCommunicator::Abort(absl::Status status) {
  barrier_->Abort(std::move(status));
  memory_->Interrupt();
}

Location SharedMemoryCommunicator::CopyToSlot(const uint8_t* from,
                                              size_t size_bytes) {
  std::memcpy(barrier_->block(rank_).slots[staged_count_ & 1], from,
              size_bytes);
  return {.kind = Kind::kSlot};
}

Location SharedMemoryCommunicator::Offer(TensorSpan span) {
  ++staged_count_;
  const size_t size_bytes = span.size_bytes();
  if (size_bytes == 0) return {.kind = Kind::kSlot};
  if (size_bytes <= options_.tuning.one_shot_bytes_max) {
    return CopyToSlot(span.bytes(), size_bytes);
  }
  const Location location = memory_->Locate(span.data, size_bytes);
  if (location.kind == Kind::kPrivate &&
      size_bytes <= std::min(options_.tuning.staged_bytes_max,
                             ControlBlock::kSlotBytes)) {
    return CopyToSlot(span.bytes(), size_bytes);
  }
  return location;
}

void SharedMemoryCommunicator::ReclaimNextSlot(size_t size_bytes) {
#if defined(__x86_64__)
  const uint8_t* slot = barrier_->block(rank_).slots[(staged_count_ + 1) & 1];
  if (size_bytes > kReclaimedBytesMax) return;
  for (size_t i = 0; i < size_bytes; i += kLineBytes) {
    asm volatile("prefetchw %0" : : "m"(slot[i]));
  }
#else
  static_cast<void>(size_bytes);
#endif
}

bool SharedMemoryCommunicator::HaveAll(Kind kind) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (barrier_->card(rank).location.kind != kind) return false;
  }
  return true;
}

bool SharedMemoryCommunicator::HasAny(Kind kind) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (barrier_->card(rank).location.kind == kind) return true;
  }
  return false;
}

uint8_t* SharedMemoryCommunicator::MemoryOfRank(int rank,
                                                size_t size_bytes) const {
  const Location& location = barrier_->card(rank).location;
  switch (location.kind) {
    case Kind::kSlot:
      return barrier_->block(rank).slots[staged_count_ & 1];
    case Kind::kShared:
      return memory_->Resolve(rank, location, size_bytes);
    default:
      return nullptr;
  }
}

absl::Status SharedMemoryCommunicator::Fetch(int rank, size_t total_bytes,
                                             ByteRange range, uint8_t* to) {
  if (range.size() == 0) return absl::OkStatus();
  if (const uint8_t* from = MemoryOfRank(rank, total_bytes); from != nullptr) {
    std::memcpy(to, from + range.begin, range.size());
    return absl::OkStatus();
  }
  const Location& location = barrier_->card(rank).location;
  if (location.kind != Kind::kPrivate) {
    return barrier_->Fail(absl::InternalError(
        absl::StrCat(barrier_->Describe(), ": rank ", rank,
                     " published a location outside of its memory")));
  }
  const absl::Status status =
      memory_->Read(rank, location.offset + range.begin, range.size(), to);
  if (status.ok()) return status;
  return barrier_->Fail(
      absl::Status(status.code(), absl::StrCat(barrier_->Describe(), ": rank ",
                                               rank, ": ", status.message())));
}

absl::Status SharedMemoryCommunicator::ReducePart(ReduceOp op,
                                                  TensorSpan buffer,
                                                  ByteRange range,
                                                  ResultsTo results_to) {
  if (const absl::Status fault = FaultPoint("collectives.shared_memory.reduce");
      !fault.ok()) {
    return barrier_->Fail(fault);
  }
  // Splits the range into blocks, of whole cache lines, only if elements must
  // be fetched first.
  const size_t block_bytes =
      HasAny(Kind::kPrivate) ? std::max<size_t>(kReadBytes / size_, 16 * 1024) /
                                   kLineBytes * kLineBytes
                             : std::max<size_t>(range.size(), 1);
  if (HasAny(Kind::kPrivate)) scratch_.resize(block_bytes * size_);
  const void* inputs[kSharedMemoryRanksMax];
  void* outputs[kSharedMemoryRanksMax];
  int output_count = 0;
  for (size_t begin = range.begin; begin < range.end; begin += block_bytes) {
    const size_t end = std::min(begin + block_bytes, range.end);
    output_count = 0;
    for (int rank = 0; rank < size_; ++rank) {
      uint8_t* elements = rank == rank_
                              ? buffer.bytes()
                              : MemoryOfRank(rank, buffer.size_bytes());
      if (elements != nullptr) {
        inputs[rank] = elements + begin;
      } else {
        uint8_t* block = scratch_.data() + rank * block_bytes;
        RETURN_IF_ERROR(Fetch(rank, buffer.size_bytes(), {begin, end}, block));
        inputs[rank] = block;
      }
      if (rank == rank_ || results_to == ResultsTo::kAllRanks) {
        outputs[output_count++] = elements + begin;
      }
    }
    Reduce(op, buffer.dtype, (end - begin) / SizeOf(buffer.dtype),
           absl::MakeConstSpan(inputs, size_),
           absl::MakeConstSpan(outputs, output_count));
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryCommunicator::AllReduce(ReduceOp op, TensorSpan buffer,
                                                 const CollectiveCall& call) {
  Call running(barrier_, Collective::kAllReduce, call);
  RETURN_IF_ERROR(running.status());
  RETURN_IF_ERROR(running.Check(CheckReducible(buffer.dtype)));
  if (size_ == 1) return absl::OkStatus();
  const PublishedCall signature = {.collective = Collective::kAllReduce,
                                   .op = op,
                                   .dtype = buffer.dtype,
                                   .element_count = buffer.element_count};
  const size_t size_bytes = buffer.size_bytes();
  RETURN_IF_ERROR(ArriveAndWait(signature, Offer(buffer)));
  if (HaveAll(Kind::kSlot)) {
    RETURN_IF_ERROR(ReducePart(op, buffer, {0, size_bytes}, ResultsTo::kOwner));
    ReclaimNextSlot(size_bytes);
    return absl::OkStatus();
  }
  const auto [begin, end] = LinesOf(size_bytes, rank_, size_);
  if (HaveAll(Kind::kShared)) {
    RETURN_IF_ERROR(ReducePart(op, buffer, {begin, end}, ResultsTo::kAllRanks));
    return ArriveAndWait(signature, {});
  }
  if (!memory_->can_read() || size_bytes <= options_.tuning.staged_bytes_max) {
    return AllReduceStaged(signature, buffer);
  }
  const Location location = barrier_->card(rank_).location;
  RETURN_IF_ERROR(ReducePart(op, buffer, {begin, end}, ResultsTo::kOwner));
  RETURN_IF_ERROR(ArriveAndWait(signature, location));
  for (int i = 1; i < size_; ++i) {
    const int rank = (rank_ + i) % size_;
    const auto [theirs_begin, theirs_end] = LinesOf(size_bytes, rank, size_);
    RETURN_IF_ERROR(Fetch(rank, size_bytes, {theirs_begin, theirs_end},
                          buffer.bytes() + theirs_begin));
  }
  return ArriveAndWait(signature, {});
}

absl::Status SharedMemoryCommunicator::AllReduceStaged(
    const PublishedCall& signature, TensorSpan buffer) {
  return ForEachBlock(
      signature, buffer, /*is_mine=*/true, [&](TensorSpan block) {
        return ReducePart(signature.op, block, {0, block.size_bytes()},
                          ResultsTo::kOwner);
      });
}

absl::Status SharedMemoryCommunicator::ReduceScatter(
    ReduceOp op, TensorSpan buffer, const CollectiveCall& call) {
  Call running(barrier_, Collective::kReduceScatter, call);
  RETURN_IF_ERROR(running.status());
  RETURN_IF_ERROR(running.Check(CheckReducible(buffer.dtype)));
  if (size_ == 1) return absl::OkStatus();
  const PublishedCall signature = {.collective = Collective::kReduceScatter,
                                   .op = op,
                                   .dtype = buffer.dtype,
                                   .element_count = buffer.element_count};
  RETURN_IF_ERROR(ArriveAndWait(signature, Offer(buffer)));
  const Range part = PartOf(buffer.element_count, rank_, size_);
  const size_t element_bytes = SizeOf(buffer.dtype);
  const ByteRange range = {part.begin * element_bytes,
                           part.end * element_bytes};
  if (HasAny(Kind::kPrivate) && !memory_->can_read()) {
    // Every rank reads all blocks and reduces the elements of its part.
    return ForEachBlock(
        signature, buffer, /*is_mine=*/true, [&](TensorSpan block) {
          const size_t offset = block.bytes() - buffer.bytes();
          const size_t begin = std::max(range.begin, offset);
          const size_t end = std::min(range.end, offset + block.size_bytes());
          if (begin >= end) return absl::OkStatus();
          return ReducePart(op, block, {begin - offset, end - offset},
                            ResultsTo::kOwner);
        });
  }
  const bool is_settled = HaveAll(Kind::kSlot);
  RETURN_IF_ERROR(ReducePart(op, buffer, range, ResultsTo::kOwner));
  return is_settled ? absl::OkStatus() : ArriveAndWait(signature, {});
}

absl::Status SharedMemoryCommunicator::ForEachBlock(
    const PublishedCall& signature, TensorSpan buffer, bool is_mine,
    absl::FunctionRef<absl::Status(TensorSpan block)> combine) {
  const int64_t block_elements =
      ControlBlock::kSlotBytes / SizeOf(buffer.dtype);
  for (int64_t begin = 0; begin < buffer.element_count;
       begin += block_elements) {
    const TensorSpan block = buffer.Part(
        begin, std::min(begin + block_elements, buffer.element_count));
    ++staged_count_;
    RETURN_IF_ERROR(ArriveAndWait(
        signature, is_mine ? CopyToSlot(block.bytes(), block.size_bytes())
                           : Location{.kind = Kind::kSlot}));
    RETURN_IF_ERROR(combine(block));
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryCommunicator::Broadcast(TensorSpan buffer, int root,
                                                 const CollectiveCall& call) {
  Call running(barrier_, Collective::kBroadcast, call);
  RETURN_IF_ERROR(running.status());
  RETURN_IF_ERROR(running.Check(CheckMovable(buffer.dtype)));
  if (root < 0 || root >= size_) {
    return running.Check(absl::InvalidArgumentError(
        absl::StrCat("broadcast from rank ", root, " in a group of ", size_)));
  }
  if (size_ == 1) return absl::OkStatus();
  const PublishedCall signature = {.collective = Collective::kBroadcast,
                                   .dtype = buffer.dtype,
                                   .root = static_cast<uint8_t>(root),
                                   .element_count = buffer.element_count};
  const bool is_root = rank_ == root;
  const Location offered = Offer(is_root ? buffer : TensorSpan());
  RETURN_IF_ERROR(ArriveAndWait(signature, offered));
  const Kind kind = barrier_->card(root).location.kind;
  if (kind == Kind::kPrivate && !memory_->can_read()) {
    return ForEachBlock(signature, buffer, is_root, [&](TensorSpan block) {
      if (is_root) return absl::OkStatus();
      return Fetch(root, block.size_bytes(), {0, block.size_bytes()},
                   block.bytes());
    });
  }
  if (!is_root) {
    RETURN_IF_ERROR(Fetch(root, buffer.size_bytes(), {0, buffer.size_bytes()},
                          buffer.bytes()));
  }
  return kind == Kind::kSlot ? absl::OkStatus() : ArriveAndWait(signature, {});
}

absl::Status SharedMemoryCommunicator::CheckGather(
    TensorSpan input, absl::Span<const int64_t> element_counts,
    TensorSpan output) const {
  RETURN_IF_ERROR(CheckMovable(input.dtype));
  int64_t total = 0;
  for (const int64_t count : element_counts) {
    if (count < 0) return absl::InvalidArgumentError("a count below 0");
    total += count;
  }
  if (static_cast<int>(element_counts.size()) != size_ ||
      input.dtype != output.dtype ||
      input.element_count != element_counts[rank_] ||
      output.element_count != total) {
    return absl::InvalidArgumentError(
        absl::StrCat("all-gather on rank ", rank_, " of ", size_, ": ",
                     input.element_count, " ", DTypeName(input.dtype), " into ",
                     output.element_count, " ", DTypeName(output.dtype), " by ",
                     element_counts.size(), " counts with a sum of ", total));
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryCommunicator::AllGather(
    TensorSpan input, absl::Span<const int64_t> element_counts,
    TensorSpan output, const CollectiveCall& call) {
  Call running(barrier_, Collective::kAllGather, call);
  RETURN_IF_ERROR(running.status());
  RETURN_IF_ERROR(running.Check(CheckGather(input, element_counts, output)));
  const PublishedCall signature = {.collective = Collective::kAllGather,
                                   .dtype = input.dtype,
                                   .counts_hash = HashCounts(element_counts),
                                   .element_count = output.element_count};
  if (size_ > 1) RETURN_IF_ERROR(ArriveAndWait(signature, Offer(input)));
  std::vector<TensorSpan> parts;
  int64_t begin = 0;
  for (const int64_t count : element_counts) {
    parts.push_back(output.Part(begin, begin + count));
    begin += count;
  }
  if (input.size_bytes() > 0 && input.data != parts[rank_].data) {
    std::memmove(parts[rank_].data, input.data, input.size_bytes());
  }
  if (size_ == 1) return absl::OkStatus();
  if (HasAny(Kind::kPrivate) && !memory_->can_read()) {
    return AllGatherStaged(signature, parts);
  }
  const bool is_settled = HaveAll(Kind::kSlot);
  for (int i = 1; i < size_; ++i) {
    const int rank = (rank_ + i) % size_;
    const size_t size_bytes = parts[rank].size_bytes();
    RETURN_IF_ERROR(
        Fetch(rank, size_bytes, {0, size_bytes}, parts[rank].bytes()));
  }
  return is_settled ? absl::OkStatus() : ArriveAndWait(signature, {});
}

absl::Status SharedMemoryCommunicator::AllGatherStaged(
    const PublishedCall& signature, absl::Span<const TensorSpan> parts) {
  size_t longest_bytes = 0;
  for (const TensorSpan& part : parts) {
    longest_bytes = std::max(longest_bytes, part.size_bytes());
  }
  for (size_t begin = 0; begin < longest_bytes;
       begin += ControlBlock::kSlotBytes) {
    const auto block_of = [&](int rank) -> ByteRange {
      const size_t size_bytes = parts[rank].size_bytes();
      return {std::min(begin, size_bytes),
              std::min(begin + ControlBlock::kSlotBytes, size_bytes)};
    };
    ++staged_count_;
    const ByteRange mine = block_of(rank_);
    RETURN_IF_ERROR(ArriveAndWait(
        signature,
        mine.size() == 0
            ? Location{.kind = Kind::kSlot}
            : CopyToSlot(parts[rank_].bytes() + mine.begin, mine.size())));
    for (int rank = 0; rank < size_; ++rank) {
      const ByteRange theirs = block_of(rank);
      if (rank == rank_) continue;
      RETURN_IF_ERROR(Fetch(rank, theirs.size(), {0, theirs.size()},
                            parts[rank].bytes() + theirs.begin));
    }
  }
  return absl::OkStatus();
}

absl::Status SharedMemoryCommunicator::Barrier(const CollectiveCall& call) {
  Call running(barrier_, Collective::kBarrier, call);
  RETURN_IF_ERROR(running.status());
  return ArriveAndWait({.collective = Collective::kBarrier}, {});
}

absl::StatusOr<std::shared_ptr<Buffer>> SharedMemoryCommunicator::Allocate(
    size_t size_bytes, const CollectiveCall& call) {
  Call running(barrier_, Collective::kAllocate, call);
  RETURN_IF_ERROR(running.status());
  const PublishedCall signature = {
      .collective = Collective::kAllocate,
      .element_count = static_cast<int64_t>(size_bytes)};
  RETURN_IF_ERROR(ArriveAndWait(signature, {}));
  if (size_bytes == 0) return Buffer::Allocate(0);
  absl::StatusOr<std::shared_ptr<Buffer>> buffer =
      memory_->Allocate(size_bytes, barrier_->Deadline());
  if (!buffer.ok()) {
    return barrier_->Fail(absl::Status(
        buffer.status().code(),
        absl::StrCat(barrier_->Describe(), ": ", buffer.status().message())));
  }
  // No rank may use the memory before all ranks have mapped it.
  RETURN_IF_ERROR(ArriveAndWait(signature, {}));
  return buffer;
}

}  // namespace muster::internal
