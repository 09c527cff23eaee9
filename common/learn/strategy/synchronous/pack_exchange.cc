#include "common/learn/strategy/synchronous/pack_exchange.h"

#include <utility>

#include "absl/memory/memory.h"
#include "common/core/base/status_macros.h"
#include "common/learn/strategy/synchronous/device_pack_memory.h"
#include "common/learn/strategy/synchronous/host_pack_memory.h"

namespace muster {

absl::StatusOr<std::unique_ptr<PackExchange>> PackExchange::Create(
    PackPlan plan, const std::vector<std::string>& names,
    const Options& options) {
  auto exchange =
      absl::WrapUnique(new PackExchange(std::move(plan), names, options));
  RETURN_IF_ERROR(exchange->Start(options));
  return exchange;
}

PackExchange::PackExchange(PackPlan plan, const std::vector<std::string>& names,
                           const Options& options)
    : layout_(std::move(plan), names, options.host_items_begin,
              options.host_items_end, options.leaves,
              options.communicator->rank(), options.scattered_packs) {}

absl::Status PackExchange::Start(const Options& options) {
  if (options.on_device == nullptr) {
    memory_ =
        MakeHostPackMemory(&layout_, options.communicator, options.timeout);
  } else {
    ASSIGN_OR_RETURN(memory_,
                     MakeDevicePackMemory(&layout_, options.on_device,
                                          options.stream, options.timeout));
  }
  RETURN_IF_ERROR(memory_->Allocate());
  if (options.overlaps) {
    thread_ = std::make_unique<CollectiveThread>(
        [this](int pack) { return memory_->Reduce(pack); },
        static_cast<int>(layout_.packs.size()));
  }
  return absl::OkStatus();
}

absl::Status PackExchange::GradientIsReady(int gradient) {
  if (thread_ == nullptr) return absl::OkStatus();
  const int pack_count = static_cast<int>(layout_.packs.size());
  while (next_pack_ < pack_count &&
         layout_.plan.packs[next_pack_].last_gradient <= gradient) {
    RETURN_IF_ERROR(memory_->Seal(next_pack_));
    thread_->Submit(next_pack_++);
  }
  return absl::OkStatus();
}

absl::Status PackExchange::AwaitPacksInTransit() {
  return thread_ == nullptr ? absl::OkStatus() : thread_->Drain();
}

absl::Status PackExchange::Combine() {
  RETURN_IF_ERROR(AwaitPacksInTransit());
  const int pack_count = static_cast<int>(layout_.packs.size());
  for (; next_pack_ < pack_count; ++next_pack_) {
    RETURN_IF_ERROR(memory_->Seal(next_pack_));
    RETURN_IF_ERROR(memory_->Reduce(next_pack_));
  }
  next_pack_ = 0;
  return memory_->Combine();
}

absl::Status PackExchange::Finish() {
  RETURN_IF_ERROR(Combine());
  return memory_->Await();
}

}  // namespace muster
