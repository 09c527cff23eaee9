#include "ps/frozen_rows.h"

#include <cstring>
#include <new>
#include <utility>

#include "common/base/check.h"

namespace muster {

FrozenRows::FrozenRows(int array_count, int block_count,
                       std::shared_ptr<AsideBudget> budget)
    : array_count_(array_count),
      block_count_(block_count),
      budget_(std::move(budget)),
      blocks_(static_cast<size_t>(array_count) * block_count),
      pending_count_(static_cast<int64_t>(blocks_.size())) {}

FrozenRows::~FrozenRows() {
  for (Block& block : blocks_) Drop(&block);
}

void FrozenRows::Drop(Block* block) {
  if (block->aside == nullptr) return;
  block->aside = nullptr;
  budget_->Return(std::exchange(block->aside_bytes, 0));
}

void FrozenRows::PutAside(int array, int block,
                          absl::Span<const uint8_t> live) {
  Block& at = At(array, block);
  if (at.state != State::kLive) return;
  if (is_given_up_.load(std::memory_order_relaxed)) return;
  if (!budget_->Take(live.size())) {
    GiveUp();
    return;
  }
  at.aside.reset(new (std::nothrow) uint8_t[live.size()]);
  if (at.aside == nullptr) {
    budget_->Return(live.size());
    GiveUp();
    return;
  }
  at.aside_bytes = live.size();
  std::memcpy(at.aside.get(), live.data(), live.size());
  at.state = State::kAside;
  pending_count_.fetch_sub(1, std::memory_order_relaxed);
}

bool FrozenRows::Take(int array, int block, absl::Span<const uint8_t> live,
                      uint8_t* out) {
  Block& at = At(array, block);
  MUSTER_CHECK(at.state != State::kRead);
  if (is_given_up_.load()) return false;
  if (at.state == State::kLive) {
    std::memcpy(out, live.data(), live.size());
    pending_count_.fetch_sub(1, std::memory_order_relaxed);
  } else {
    std::memcpy(out, at.aside.get(), live.size());
    Drop(&at);
  }
  at.state = State::kRead;
  return true;
}

}  // namespace muster
