// The part of ShardVariable that saves and restores.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "proto/parameter_server.pb.h"
#include "ps/shard_variable.h"

namespace muster {

FrozenRows::Block ShardVariable::BlockAt(int array, int block) {
  const int64_t row_bytes =
      row_elements_ * static_cast<int64_t>(SizeOf(type_.dtype));
  const int stripe = block / blocks_per_stripe_;
  const int64_t stripe_end = StripeRowBegin(stripe + 1);
  const int64_t begin =
      std::min(stripe_end, StripeRowBegin(stripe) +
                               block % blocks_per_stripe_ * rows_per_block_);
  const int64_t end = std::min(stripe_end, begin + rows_per_block_);
  const auto offset_bytes = static_cast<size_t>(begin * row_bytes);
  return {.array = array,
          .number = block,
          .offset_bytes = offset_bytes,
          .live = {ArrayAt(array).raw_data() + offset_bytes,
                   static_cast<size_t>((end - begin) * row_bytes)}};
}

void ShardVariable::PutAside(const PreparedUpdate& update, int stripe,
                             int64_t row_begin, int64_t row_end) {
  for (const std::weak_ptr<FrozenRows>& saved : frozen_) {
    const std::shared_ptr<FrozenRows> frozen = saved.lock();
    if (frozen == nullptr || frozen->is_read()) continue;
    PutAside(update, stripe, row_begin, row_end, frozen.get());
  }
}

void ShardVariable::PutAside(const PreparedUpdate& update, int stripe,
                             int64_t row_begin, int64_t row_end,
                             FrozenRows* frozen) {
  const int array_count = IsGradient(update.kind) ? frozen->array_count() : 1;
  const int block_begin = stripe * blocks_per_stripe_;
  const auto put_aside = [&](int block) {
    for (int array = 0; array < array_count; ++array) {
      frozen->PutAside(BlockAt(array, block));
    }
  };
  if (row_begin == row_end) {
    for (int i = 0; i < blocks_per_stripe_; ++i) put_aside(block_begin + i);
    return;
  }
  const int64_t stripe_row_begin = StripeRowBegin(stripe);
  int last = -1;
  for (int64_t i = row_begin; i < row_end; ++i) {
    const int block =
        block_begin +
        static_cast<int>((update.rows[i] - stripe_row_begin) / rows_per_block_);
    if (block == last) continue;
    put_aside(block);
    last = block;
  }
}

ShardVariable::Frozen ShardVariable::Freeze(
    std::shared_ptr<AsideBudget> budget) {
  FillSlots();
  std::erase_if(frozen_, [](const std::weak_ptr<FrozenRows>& saved) {
    return saved.expired();
  });
  Frozen frozen;
  frozen.slot_names = slot_names();
  frozen.update_count = update_count();
  frozen.version = version();
  {
    absl::MutexLock lock(&slots_mutex_);
    frozen.has_slots = has_slots_;
  }
  frozen.rows = std::make_shared<FrozenRows>(
      1 + static_cast<int>(frozen.slot_names.size()),
      stripe_count_ * blocks_per_stripe_, value_.size_bytes(),
      std::move(budget));
  frozen_.push_back(frozen.rows);
  return frozen;
}

void ShardVariable::Thaw() {
  for (const std::weak_ptr<FrozenRows>& saved : frozen_) {
    if (const auto frozen = saved.lock(); frozen != nullptr) frozen->GiveUp();
  }
  frozen_.clear();
}

absl::Status ShardVariable::ReadFrozen(
    const Frozen& frozen, int array,
    absl::FunctionRef<absl::Status(absl::Span<const uint8_t>)> sink) {
  std::vector<uint8_t> bytes;
  for (int block = 0; block < stripe_count_ * blocks_per_stripe_; ++block) {
    bool is_read = false;
    {
      absl::MutexLock lock(&stripes_[block / blocks_per_stripe_].mutex);
      // The slots may have been removed.
      if (!frozen.rows->is_given_up()) {
        const FrozenRows::Block now = BlockAt(array, block);
        bytes.resize(now.live.size());
        is_read = frozen.rows->Take(now, bytes.data());
      }
    }
    if (!is_read) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "variable \"", spec_->shard_name(),
          "\" cannot be saved: updates changed more data during the save than "
          "there is memory to copy, or variables were restored meanwhile. Save "
          "again"));
    }
    RETURN_IF_ERROR(sink(bytes));
  }
  return absl::OkStatus();
}

std::vector<std::string> ShardVariable::slot_names() const {
  absl::MutexLock lock(&slots_mutex_);
  std::vector<std::string> names;
  for (const SlotSpec& slot : slot_specs_) names.push_back(slot.name);
  return names;
}

absl::Status ShardVariable::PrepareSlots(const UpdateRule* rule,
                                         absl::Span<const std::string> names) {
  if (rule != nullptr) {
    RETURN_IF_ERROR(MakeSlots(*rule));
    FillSlots();
    return absl::OkStatus();
  }
  absl::MutexLock lock(&slots_mutex_);
  if (has_slots_) return absl::OkStatus();
  slot_specs_.clear();
  slots_.clear();
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(Tensor slot, MakeSlot(0));
    slots_.push_back(std::move(slot));
    slot_specs_.push_back({.name = name});
  }
  return absl::OkStatus();
}

void ShardVariable::Overwrite(int array, int64_t offset_bytes,
                              absl::Span<const uint8_t> bytes) {
  const int64_t row_bytes =
      row_elements_ * static_cast<int64_t>(SizeOf(type_.dtype));
  uint8_t* const to = ArrayAt(array).mutable_raw_data();
  while (!bytes.empty()) {
    const int stripe =
        static_cast<int>(offset_bytes / (rows_per_stripe_ * row_bytes));
    const int64_t stripe_end = StripeRowBegin(stripe + 1) * row_bytes;
    const size_t count =
        std::min<size_t>(bytes.size(), stripe_end - offset_bytes);
    absl::MutexLock lock(&stripes_[stripe].mutex);
    std::memcpy(to + offset_bytes, bytes.data(), count);
    bytes.remove_prefix(count);
    offset_bytes += static_cast<int64_t>(count);
  }
}

void ShardVariable::ResetSlot(int array) {
  SlotSpec spec;
  {
    absl::MutexLock lock(&slots_mutex_);
    spec = slot_specs_[array - 1];
  }
  if (spec.starts_as_variable) {
    FillSlot(array - 1);
    return;
  }
  VisitNumber(type_.dtype, [&]<typename T>() {
    if constexpr (std::is_floating_point_v<T>) {
      T* const slot = slots_[array - 1].mutable_flat<T>().data();
      for (int stripe = 0; stripe < stripe_count_; ++stripe) {
        absl::MutexLock lock(&stripes_[stripe].mutex);
        std::fill(slot + StripeRowBegin(stripe) * row_elements_,
                  slot + StripeRowBegin(stripe + 1) * row_elements_,
                  static_cast<T>(spec.initial_value));
      }
    }
  });
}

void ShardVariable::DropSlots() {
  // A reader of a snapshot that Thaw() abandoned may still hold a stripe's
  // lock.
  for (const Stripe& stripe : stripes_) absl::MutexLock lock(&stripe.mutex);
  absl::MutexLock lock(&slots_mutex_);
  has_slots_ = false;
  has_slots_to_fill_ = false;
  slots_to_fill_.clear();
  slot_specs_.clear();
  slots_.clear();
}

void ShardVariable::FinishRestore(int64_t update_count) {
  update_count_.store(update_count, std::memory_order_relaxed);
  End();
}

void ShardVariable::FinishRestore(int64_t update_count, int64_t version) {
  update_count_.store(update_count, std::memory_order_relaxed);
  version_.store(version, std::memory_order_release);
}

}  // namespace muster
