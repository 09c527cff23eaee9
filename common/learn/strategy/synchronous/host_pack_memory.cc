#include "common/learn/strategy/synchronous/host_pack_memory.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/core/base/status_macros.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/learn/strategy/synchronous/scale_elements.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

template <typename T>
void AddTo(const T* from, int64_t count, T* sum) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, bool>) {
      sum[i] = sum[i] || from[i];
    } else if constexpr (std::is_integral_v<T>) {
      // Integers wrap around. In C++ only unsigned integers may overflow.
      using Bits = std::make_unsigned_t<T>;
      sum[i] = static_cast<T>(static_cast<Bits>(static_cast<Bits>(sum[i]) +
                                                static_cast<Bits>(from[i])));
    } else if constexpr (std::is_floating_point_v<T>) {
      sum[i] += from[i];
    } else {
      sum[i] = T(static_cast<float>(sum[i]) + static_cast<float>(from[i]));
    }
  }
}

class HostPackMemory final : public PackMemory {
 public:
  HostPackMemory(const PackLayout* layout, Communicator* communicator,
                 absl::Duration timeout)
      : layout_(*layout), communicator_(*communicator), timeout_(timeout) {}

  absl::Status Allocate() override {
    for (size_t i = 0; i < layout_.packs.size(); ++i) {
      const int pack = static_cast<int>(i);
      ASSIGN_OR_RETURN(
          buffers_.emplace_back(),
          communicator_.Allocate(layout_.SizeBytes(pack), CallOf(pack)));
    }
    return absl::OkStatus();
  }

  absl::Status Contribute(int item, int leaf, const Tensor& value,
                          const PackScale& by) override {
    const double scale = by.value;
    uint8_t* const to = HostContribution(item, leaf);
    if (value.size_bytes() == 0) return absl::OkStatus();
    if (scale == 0) {
      std::memset(to, 0, value.size_bytes());
    } else if (scale == 1) {
      std::memcpy(to, value.raw_data(), value.size_bytes());
    } else {
      CopyScaled(value.dtype(), value.raw_data(), scale, value.element_count(),
                 to);
    }
    return absl::OkStatus();
  }

  absl::Status ContributeZeros(int item, int leaf, size_t size_bytes) override {
    if (size_bytes > 0) {
      std::memset(HostContribution(item, leaf), 0, size_bytes);
    }
    return absl::OkStatus();
  }

  uint8_t* HostContribution(int item, int leaf) override {
    return BufferOf(item)->data() +
           layout_.OffsetBytes(item, layout_.own_leaf_begin + leaf);
  }

  absl::Status Seal(int) override { return absl::OkStatus(); }
  absl::Status Reduce(int pack) override {
    if (layout_.has_fixed_leaves()) return GatherLeaves(pack);
    if (layout_.packs[pack].is_scattered) return Scatter(pack);
    return communicator_.AllReduce(ReduceOp::kSum, SpanOfLeaves(pack),
                                   CallOf(pack));
  }
  absl::Status Combine() override { return absl::OkStatus(); }
  absl::Status Await() override { return absl::OkStatus(); }

  Tensor SumOf(int item, const TensorType& type) override {
    return Tensor(type.dtype, type.shape, BufferOf(item),
                  layout_.OffsetBytes(item, 0));
  }
  absl::Status Scale(Tensor* sum, const PackScale& scale) override {
    ScaleElements(sum->dtype(), scale.value, sum->element_count(),
                  sum->mutable_raw_data());
    return absl::OkStatus();
  }

 private:
  CollectiveCall CallOf(int pack) const {
    return {.name = layout_.packs[pack].name, .timeout = timeout_};
  }
  const std::shared_ptr<Buffer>& BufferOf(int item) const {
    return buffers_[layout_.plan.places[item].pack];
  }
  TensorSpan SpanOfLeaves(int pack) const {
    return {layout_.plan.packs[pack].dtype,
            layout_.packs[pack].stride * layout_.leaf_count,
            buffers_[pack]->data()};
  }
  Communicator::Range OwnPart(int pack) const {
    return Communicator::PartOf(layout_.plan.packs[pack].element_count,
                                communicator_.rank(), communicator_.size());
  }
  absl::Status GatherLeaves(int pack);
  // Leaves this replica the sums of its part, and of the trailer.
  absl::Status Scatter(int pack);

  const PackLayout& layout_;
  Communicator& communicator_;
  const absl::Duration timeout_;
  std::vector<std::shared_ptr<Buffer>> buffers_;  // Of each pack.
};

absl::Status HostPackMemory::GatherLeaves(int pack) {
  const int64_t stride = layout_.packs[pack].stride;
  const TensorSpan all = SpanOfLeaves(pack);
  const int64_t own_begin = layout_.own_leaf_begin * stride;
  RETURN_IF_ERROR(communicator_.AllGather(
      all.Part(own_begin, own_begin + layout_.own_leaf_count * stride),
      layout_.packs[pack].element_counts, all, CallOf(pack)));
  Communicator::Range own = {0, stride};
  int64_t trailer_begin = stride;
  if (layout_.packs[pack].is_scattered) {
    trailer_begin = layout_.packs[pack].trailer_begin;
    own = OwnPart(pack);
    own.end = std::min(own.end, trailer_begin);
    own.begin = std::min(own.begin, own.end);
  }
  VisitNumber(all.dtype, [&]<typename T>() {
    T* const sum = reinterpret_cast<T*>(all.data);
    for (int leaf = 1; leaf < layout_.leaf_count; ++leaf) {
      const T* const values = sum + leaf * stride;
      AddTo(values + own.begin, own.end - own.begin, sum + own.begin);
      AddTo(values + trailer_begin, stride - trailer_begin,
            sum + trailer_begin);
    }
  });
  return absl::OkStatus();
}

absl::Status HostPackMemory::Scatter(int pack) {
  const TensorSpan all = SpanOfLeaves(pack);
  RETURN_IF_ERROR(
      communicator_.ReduceScatter(ReduceOp::kSum, all, CallOf(pack)));
  const int64_t begin = layout_.packs[pack].trailer_begin;
  if (begin == all.element_count) return absl::OkStatus();
  std::vector<int64_t> counts;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const Communicator::Range part =
        Communicator::PartOf(all.element_count, rank, communicator_.size());
    counts.push_back(std::max(part.end, begin) - std::max(part.begin, begin));
  }
  const Communicator::Range own = OwnPart(pack);
  return communicator_.AllGather(
      all.Part(std::max(own.begin, begin), std::max(own.end, begin)), counts,
      all.Part(begin, all.element_count), CallOf(pack));
}

}  // namespace

std::unique_ptr<PackMemory> MakeHostPackMemory(const PackLayout* layout,
                                               Communicator* communicator,
                                               absl::Duration timeout) {
  return std::make_unique<HostPackMemory>(layout, communicator, timeout);
}

}  // namespace muster
