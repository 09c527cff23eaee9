#include "common/learn/strategy/synchronous/pack_memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"

namespace muster {
namespace {

// Leaves are aligned like items.
int64_t StrideOf(const PackPlan::Pack& pack, int leaf_count) {
  if (leaf_count == 1) return pack.element_count;
  const int64_t step = Buffer::kAlignmentBytes / SizeOf(pack.dtype);
  return (pack.element_count + step - 1) / step * step;
}

// Returns "dense/kernel and 3 more", or describes the content of a pack without
// gradients.
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

PackLayout::PackLayout(PackPlan pack_plan,
                       const std::vector<std::string>& names,
                       int first_host_item, int end_host_item,
                       const Leaves& leaves, int rank,
                       const std::vector<bool>& scattered_packs)
    : plan(std::move(pack_plan)),
      host_items_begin(first_host_item),
      host_items_end(end_host_item),
      fixed_leaf_count(leaves.count),
      leaf_count(std::max(1, leaves.count)) {
  if (!leaves.count_of_rank.empty()) {
    for (int i = 0; i < rank; ++i) own_leaf_begin += leaves.count_of_rank[i];
    own_leaf_count = leaves.count_of_rank[rank];
  }
  for (size_t i = 0; i < plan.packs.size(); ++i) {
    Pack& pack = packs.emplace_back();
    pack.name = NameOf(plan, static_cast<int>(i), names);
    pack.stride = StrideOf(plan.packs[i], leaf_count);
    for (const int count : leaves.count_of_rank) {
      pack.element_counts.push_back(count * pack.stride);
    }
    pack.is_scattered = !scattered_packs.empty() && scattered_packs[i];
    pack.trailer_begin = plan.packs[i].element_count;
  }
  for (size_t item = names.size(); item < plan.places.size(); ++item) {
    int64_t& begin = packs[plan.places[item].pack].trailer_begin;
    begin = std::min(begin, plan.places[item].begin);
  }
}

size_t PackLayout::OffsetBytes(int item, int leaf) const {
  const PackPlan::Place& place = plan.places[item];
  return (leaf * packs[place.pack].stride + place.begin) *
         SizeOf(plan.packs[place.pack].dtype);
}

}  // namespace muster
