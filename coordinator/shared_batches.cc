#include "coordinator/shared_batches.h"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>

#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

// A few times the size of the batches that a loop sends ahead. Pages are
// allocated when they are used.
constexpr size_t kSegmentBytes = size_t{128} << 20;
// Smaller tensors are as fast in a message.
constexpr size_t kSharedBytesMin = size_t{32} << 10;

}  // namespace

std::unique_ptr<SharedBatches> SharedBatches::Make(
    Network* network, const std::vector<ChannelOptions>& workers) {
  std::unique_ptr<SharedBatches> batches(new SharedBatches);
  std::vector<Channel*> channels;
  for (const ChannelOptions& worker : workers) {
    batches->channels_.push_back(network->Connect(worker));
    channels.push_back(batches->channels_.back().get());
  }
  batches->offer_ = SegmentOffer::Make(channels, kSegmentBytes);
  return batches->offer_ == nullptr ? nullptr : std::move(batches);
}

Tensor SharedBatches::Share(const Tensor& tensor) {
  if (!IsFloating(tensor.dtype()) || tensor.size_bytes() < kSharedBytesMin) {
    return tensor;
  }
  std::shared_ptr<Buffer> buffer =
      offer_->pool()->Allocate(tensor.size_bytes());
  if (buffer == nullptr) return tensor;
  std::memcpy(buffer->data(), tensor.raw_data(), tensor.size_bytes());
  return Tensor(tensor.dtype(), tensor.shape(), std::move(buffer));
}

uint64_t SharedBatches::segment_id(int worker) const {
  return offer_->IsTaken(worker)
             ? offer_->segment_id(worker)->load(std::memory_order_acquire)
             : 0;
}

std::optional<uint64_t> SharedBatches::OffsetOf(const Tensor& tensor) const {
  if (!offer_->pool()->Holds(tensor.raw_data())) return std::nullopt;
  return offer_->pool()->OffsetOf(tensor.raw_data());
}

}  // namespace muster
