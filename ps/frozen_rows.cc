#include "ps/frozen_rows.h"

#include <cstring>
#include <utility>

#include "absl/status/statusor.h"
#include "common/core/base/check.h"
#include "common/core/tensor/dtype.h"
#include "ps/slab.h"

namespace muster {

FrozenRows::FrozenRows(int array_count, int block_count, size_t array_bytes,
                       std::shared_ptr<AsideBudget> budget)
    : array_count_(array_count),
      block_count_(block_count),
      array_bytes_(array_bytes),
      budget_(std::move(budget)),
      states_(static_cast<size_t>(array_count) * block_count, State::kLive),
      pending_count_(static_cast<int64_t>(states_.size())) {}

FrozenRows::~FrozenRows() {
  budget_->Return(static_cast<size_t>(aside_bytes_.load()));
}

uint8_t* FrozenRows::PlaceOf(const Block& block) {
  std::call_once(made_, [this] {
    const auto size = static_cast<int64_t>(array_count_ * array_bytes_);
    absl::StatusOr<Tensor> slab = AllocateSlab({DType::kUint8, {size}});
    if (slab.ok()) aside_ = *std::move(slab);
  });
  if (!aside_.IsValid()) return nullptr;
  return aside_.mutable_raw_data() + block.array * array_bytes_ +
         block.offset_bytes;
}

void FrozenRows::PutAside(const Block& block) {
  State& state = StateOf(block);
  if (state != State::kLive) return;
  if (is_given_up_.load(std::memory_order_relaxed)) return;
  const size_t size_bytes = block.live.size();
  if (!budget_->Take(size_bytes)) {
    GiveUp();
    return;
  }
  aside_bytes_.fetch_add(static_cast<int64_t>(size_bytes));
  uint8_t* const place = PlaceOf(block);
  if (place == nullptr) {
    GiveUp();
    return;
  }
  std::memcpy(place, block.live.data(), size_bytes);
  state = State::kAside;
  pending_count_.fetch_sub(1, std::memory_order_relaxed);
}

bool FrozenRows::Take(const Block& block, uint8_t* out) {
  State& state = StateOf(block);
  MUSTER_CHECK(state != State::kRead);
  if (is_given_up_.load()) return false;
  if (state == State::kLive) {
    std::memcpy(out, block.live.data(), block.live.size());
    pending_count_.fetch_sub(1, std::memory_order_relaxed);
  } else {
    std::memcpy(out, PlaceOf(block), block.live.size());
  }
  state = State::kRead;
  return true;
}

}  // namespace muster
