#include "common/learn/strategy/synchronous/device_pack_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "common/core/base/status_macros.h"
#include "common/core/device/device.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/synchronous/scale_on_device.h"
#include "common/net/collectives/on_device/device_reduce.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

class DevicePackMemory final : public PackMemory {
 public:
  DevicePackMemory(const PackLayout* layout, DeviceCommunicator* communicator,
                   DeviceStream* stream, absl::Duration timeout)
      : layout_(*layout),
        communicator_(*communicator),
        device_(communicator->device()),
        stream_(*stream),
        timeout_(timeout) {}

  absl::Status MakeEvents();

  absl::Status Allocate() override;
  absl::Status Contribute(int item, int leaf, const Tensor& value,
                          const PackScale& scale) override;
  absl::Status ContributeZeros(int item, int leaf, size_t size_bytes) override {
    return stream_.Fill(Contribution(item, leaf), 0, size_bytes);
  }
  uint8_t* HostContribution(int item, int leaf) override {
    return packs_[layout_.plan.places[item].pack].stage->data() +
           StageOffset(item, leaf);
  }
  absl::Status Seal(int pack) override;
  absl::Status Reduce(int pack) override;
  absl::Status Combine() override;
  absl::Status Await() override;
  Tensor SumOf(int item, const TensorType& type) override;
  absl::Status Scale(Tensor* sum, const PackScale& scale) override {
    return CopyScaledOnDevice(sum->dtype(), sum->address(), scale,
                              sum->element_count(), sum->address(), &device_,
                              &stream_);
  }

 private:
  struct Pack {
    std::shared_ptr<Buffer> buffer;
    // The host items, which are adjacent: elements [host_begin, host_end) of a
    // leaf.
    int64_t host_begin = 0;
    int64_t host_end = 0;
    // Pinned memory: the host items of each leaf of this rank, then their sums.
    std::shared_ptr<Buffer> stage;
    std::unique_ptr<Event> sealed;
    std::unique_ptr<Event> reduced;
  };

  CollectiveCall CallOf(int pack) const {
    return {.name = layout_.packs[pack].name, .timeout = timeout_};
  }
  size_t ElementBytes(int pack) const {
    return SizeOf(layout_.plan.packs[pack].dtype);
  }
  size_t StageBytes(int pack) const {
    return (packs_[pack].host_end - packs_[pack].host_begin) *
           ElementBytes(pack);
  }
  // Returns the offset of a host item in the stage. Leaf own_leaf_count denotes
  // the sum.
  size_t StageOffset(int item, int leaf) const {
    const PackPlan::Place& place = layout_.plan.places[item];
    return leaf * StageBytes(place.pack) +
           (place.begin - packs_[place.pack].host_begin) *
               ElementBytes(place.pack);
  }
  uint8_t* Contribution(int item, int leaf) const {
    return packs_[layout_.plan.places[item].pack].buffer->data() +
           layout_.OffsetBytes(item, layout_.own_leaf_begin + leaf);
  }
  // Returns the address in the pack of the host items of `leaf`, numbered among
  // the leaves of all ranks.
  uint8_t* HostItems(int pack, int leaf) const {
    return packs_[pack].buffer->data() +
           (leaf * layout_.packs[pack].stride + packs_[pack].host_begin) *
               ElementBytes(pack);
  }
  void FindHostItems();
  absl::Status SumLeaves(int pack);

  const PackLayout& layout_;
  DeviceCommunicator& communicator_;
  Device& device_;
  DeviceStream& stream_;
  const absl::Duration timeout_;
  std::vector<Pack> packs_;
};

absl::Status DevicePackMemory::MakeEvents() {
  packs_.resize(layout_.packs.size());
  for (Pack& pack : packs_) {
    ASSIGN_OR_RETURN(pack.sealed, device_.CreateEvent());
    ASSIGN_OR_RETURN(pack.reduced, device_.CreateEvent());
  }
  return absl::OkStatus();
}

void DevicePackMemory::FindHostItems() {
  const auto& places = layout_.plan.places;
  for (int item = layout_.host_items_end - 1; item >= layout_.host_items_begin;
       --item) {
    Pack& pack = packs_[places[item].pack];
    const bool is_last = pack.host_end == 0;
    pack.host_begin = places[item].begin;
    if (!is_last) continue;
    // The host items end at the next item of the pack, or at its end.
    pack.host_end = layout_.plan.packs[places[item].pack].element_count;
    for (size_t next = item + 1; next < places.size(); ++next) {
      if (places[next].pack != places[item].pack) continue;
      pack.host_end = places[next].begin;
      break;
    }
  }
}

absl::Status DevicePackMemory::Allocate() {
  FindHostItems();
  for (size_t i = 0; i < packs_.size(); ++i) {
    const int pack = static_cast<int>(i);
    const size_t size_bytes = layout_.SizeBytes(pack);
    ASSIGN_OR_RETURN(packs_[i].buffer,
                     communicator_.AllocateOnDevice(size_bytes, CallOf(pack)));
    // The gaps between items stay zero.
    RETURN_IF_ERROR(stream_.Fill(packs_[i].buffer->data(), 0, size_bytes));
    const size_t stage_bytes = (layout_.own_leaf_count + 1) * StageBytes(pack);
    if (stage_bytes == 0) continue;
    ASSIGN_OR_RETURN(packs_[i].stage,
                     device_.pinned_memory().Allocate(stage_bytes));
    std::memset(packs_[i].stage->data(), 0, stage_bytes);
  }
  return absl::OkStatus();
}

absl::Status DevicePackMemory::Contribute(int item, int leaf,
                                          const Tensor& value,
                                          const PackScale& scale) {
  uint8_t* const to = Contribution(item, leaf);
  const uint8_t* from = value.address();
  if (value.is_on_host() && scale.value != 0) {
    // The host computed this value.
    RETURN_IF_ERROR(stream_.Copy(from, to, value.size_bytes()));
    from = to;
  }
  return CopyScaledOnDevice(value.dtype(), from, scale, value.element_count(),
                            to, &device_, &stream_);
}

absl::Status DevicePackMemory::Seal(int pack) {
  const size_t stage_bytes = StageBytes(pack);
  for (int leaf = 0; leaf < layout_.own_leaf_count && stage_bytes > 0; ++leaf) {
    RETURN_IF_ERROR(stream_.Copy(
        packs_[pack].stage->data() + leaf * stage_bytes,
        HostItems(pack, layout_.own_leaf_begin + leaf), stage_bytes));
  }
  return stream_.Record(packs_[pack].sealed.get());
}

absl::Status DevicePackMemory::Reduce(int pack) {
  const TensorSpan all{layout_.plan.packs[pack].dtype,
                       layout_.packs[pack].stride * layout_.leaf_count,
                       packs_[pack].buffer->data()};
  Event* const reduced = packs_[pack].reduced.get();
  return layout_.has_fixed_leaves()
             ? communicator_.StartAllGather(layout_.packs[pack].element_counts,
                                            all, *packs_[pack].sealed, reduced,
                                            CallOf(pack))
             : communicator_.StartAllReduce(ReduceOp::kSum, all,
                                            *packs_[pack].sealed, reduced,
                                            CallOf(pack));
}

absl::Status DevicePackMemory::SumLeaves(int pack) {
  const int64_t stride = layout_.packs[pack].stride;
  std::vector<const void*> leaves;
  for (int leaf = 0; leaf < layout_.leaf_count; ++leaf) {
    leaves.push_back(packs_[pack].buffer->data() +
                     leaf * stride * ElementBytes(pack));
  }
  void* const sum = packs_[pack].buffer->data();
  return ReduceOnDevice(ReduceOp::kSum, layout_.plan.packs[pack].dtype, stride,
                        leaves, /*divisor=*/1, {&sum, 1}, &device_, &stream_);
}

absl::Status DevicePackMemory::Combine() {
  for (size_t i = 0; i < packs_.size(); ++i) {
    const int pack = static_cast<int>(i);
    RETURN_IF_ERROR(stream_.Wait(*packs_[i].reduced));
    if (layout_.has_fixed_leaves()) RETURN_IF_ERROR(SumLeaves(pack));
    const size_t stage_bytes = StageBytes(pack);
    if (stage_bytes == 0) continue;
    RETURN_IF_ERROR(stream_.Copy(
        HostItems(pack, 0),
        packs_[i].stage->data() + layout_.own_leaf_count * stage_bytes,
        stage_bytes));
  }
  return absl::OkStatus();
}

absl::Status DevicePackMemory::Await() {
  absl::Status status = communicator_.Await();
  // Waits after an error, too: the copies use memory that may be freed next.
  status.Update(stream_.Drain(Clock::Real()->Now() + timeout_,
                              "the results of a step of all replicas"));
  return status;
}

Tensor DevicePackMemory::SumOf(int item, const TensorType& type) {
  Pack& pack = packs_[layout_.plan.places[item].pack];
  if (!layout_.IsHostItem(item)) {
    return Tensor(type.dtype, type.shape, pack.buffer,
                  layout_.OffsetBytes(item, 0));
  }
  return Tensor(type.dtype, type.shape, pack.stage,
                StageOffset(item, layout_.own_leaf_count));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PackMemory>> MakeDevicePackMemory(
    const PackLayout* layout, DeviceCommunicator* communicator,
    DeviceStream* stream, absl::Duration timeout) {
  auto memory =
      std::make_unique<DevicePackMemory>(layout, communicator, stream, timeout);
  RETURN_IF_ERROR(memory->MakeEvents());
  return memory;
}

}  // namespace muster
