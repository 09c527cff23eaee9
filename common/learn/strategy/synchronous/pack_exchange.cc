#include "common/learn/strategy/synchronous/pack_exchange.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/reduce_op.h"
#include "common/net/collectives/tensor_span.h"

namespace muster {
namespace {

// Leaves begin aligned, as items do.
int64_t StrideOf(const PackPlan::Pack& pack, int leaf_count) {
  if (leaf_count == 1) return pack.element_count;
  const int64_t step = Buffer::kAlignmentBytes / SizeOf(pack.dtype);
  return (pack.element_count + step - 1) / step * step;
}

template <typename T>
void AddTo(const T* from, int64_t count, T* sum) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, bool>) {
      sum[i] = sum[i] || from[i];
    } else if constexpr (std::is_integral_v<T>) {
      // Integers wrap around, which is only defined for unsigned ones.
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

// "dense/kernel and 3 more", or the content of a pack without gradients.
std::string NameOf(const PackPlan& plan, int pack,
                   const std::vector<std::string>& names) {
  std::string name;
  int more = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (plan.places[i].pack != pack) continue;
    if (name.empty()) {
      name = names[i];
    } else {
      ++more;
    }
  }
  if (name.empty()) return "results of the step";
  return more == 0 ? name : absl::StrCat(name, " and ", more, " more");
}

}  // namespace

PackExchange::PackExchange(PackPlan plan, const std::vector<std::string>& names,
                           Options options)
    : plan_(std::move(plan)),
      options_(std::move(options)),
      leaf_count_(std::max(1, options_.leaves.count)) {
  const std::vector<int>& count_of_rank = options_.leaves.count_of_rank;
  if (!count_of_rank.empty()) {
    const int rank = options_.communicator->rank();
    for (int i = 0; i < rank; ++i) own_leaf_begin_ += count_of_rank[i];
    own_leaf_count_ = count_of_rank[rank];
  }
  for (size_t i = 0; i < plan_.packs.size(); ++i) {
    Memory memory{.name = NameOf(plan_, static_cast<int>(i), names),
                  .stride = StrideOf(plan_.packs[i], leaf_count_)};
    for (const int count : count_of_rank) {
      memory.element_counts.push_back(count * memory.stride);
    }
    memories_.push_back(std::move(memory));
  }
}

absl::Status PackExchange::Start() {
  for (size_t i = 0; i < memories_.size(); ++i) {
    const size_t size_bytes =
        memories_[i].stride * leaf_count_ * SizeOf(plan_.packs[i].dtype);
    ASSIGN_OR_RETURN(memories_[i].buffer,
                     options_.communicator->Allocate(
                         size_bytes, {.name = memories_[i].name,
                                      .timeout = options_.timeout}));
  }
  if (options_.overlaps) {
    thread_ = std::make_unique<CollectiveThread>(
        [this](int pack) { return ReducePack(pack); },
        static_cast<int>(memories_.size()));
  }
  return absl::OkStatus();
}

uint8_t* PackExchange::Leaf(int item, int leaf) {
  const PackPlan::Place& place = plan_.places[item];
  const Memory& memory = memories_[place.pack];
  return memory.buffer->data() + (leaf * memory.stride + place.begin) *
                                     SizeOf(plan_.packs[place.pack].dtype);
}

uint8_t* PackExchange::Contribution(int item, int leaf) {
  return Leaf(item, own_leaf_begin_ + leaf);
}

const std::shared_ptr<Buffer>& PackExchange::BufferOf(int item) const {
  return memories_[plan_.places[item].pack].buffer;
}

size_t PackExchange::OffsetOf(int item) const {
  const PackPlan::Place& place = plan_.places[item];
  return place.begin * SizeOf(plan_.packs[place.pack].dtype);
}

void PackExchange::GradientIsReady(int gradient) {
  if (thread_ == nullptr) return;
  const int pack_count = static_cast<int>(memories_.size());
  while (next_pack_ < pack_count &&
         plan_.packs[next_pack_].last_gradient <= gradient) {
    thread_->Submit(next_pack_++);
  }
}

absl::Status PackExchange::AwaitPacksUnderWay() {
  return thread_ == nullptr ? absl::OkStatus() : thread_->Drain();
}

absl::Status PackExchange::Finish() {
  RETURN_IF_ERROR(AwaitPacksUnderWay());
  const int pack_count = static_cast<int>(memories_.size());
  while (next_pack_ < pack_count) RETURN_IF_ERROR(ReducePack(next_pack_++));
  next_pack_ = 0;
  return absl::OkStatus();
}

absl::Status PackExchange::ReducePack(int pack) {
  if (options_.leaves.count > 0) return GatherLeaves(pack);
  const Memory& memory = memories_[pack];
  return options_.communicator->AllReduce(
      ReduceOp::kSum,
      {plan_.packs[pack].dtype, memory.stride, memory.buffer->data()},
      {.name = memory.name, .timeout = options_.timeout});
}

absl::Status PackExchange::GatherLeaves(int pack) {
  const Memory& memory = memories_[pack];
  const TensorSpan all{plan_.packs[pack].dtype, memory.stride * leaf_count_,
                       memory.buffer->data()};
  const int64_t own_begin = own_leaf_begin_ * memory.stride;
  RETURN_IF_ERROR(options_.communicator->AllGather(
      all.Part(own_begin, own_begin + own_leaf_count_ * memory.stride),
      memory.element_counts, all,
      {.name = memory.name, .timeout = options_.timeout}));
  VisitNumber(all.dtype, [&]<typename T>() {
    T* const sum = reinterpret_cast<T*>(all.data);
    for (int leaf = 1; leaf < leaf_count_; ++leaf) {
      AddTo(sum + leaf * memory.stride, memory.stride, sum);
    }
  });
  return absl::OkStatus();
}

}  // namespace muster
