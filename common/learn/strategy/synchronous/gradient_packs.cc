#include "common/learn/strategy/synchronous/gradient_packs.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "common/core/tensor/buffer.h"

namespace muster {
namespace {

int64_t AlignUp(int64_t element_count, DType dtype) {
  const int64_t step = Buffer::kAlignmentBytes / SizeOf(dtype);
  return (element_count + step - 1) / step * step;
}

// Numbers packs in the order of completion, so that every replica sends them in
// the same order.
void SortByLastGradient(PackPlan* plan) {
  std::vector<int> order(plan->packs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [plan](int a, int b) {
    return plan->packs[a].last_gradient < plan->packs[b].last_gradient;
  });
  std::vector<int> new_numbers(order.size());
  std::vector<PackPlan::Pack> sorted;
  for (const int old_number : order) {
    new_numbers[old_number] = static_cast<int>(sorted.size());
    sorted.push_back(plan->packs[old_number]);
  }
  plan->packs = std::move(sorted);
  for (PackPlan::Place& place : plan->places) {
    place.pack = new_numbers[place.pack];
  }
}

}  // namespace

std::vector<PackPart> PartsOf(const PackPlan& plan,
                              absl::Span<const PackItem> items, int item_begin,
                              int item_end) {
  std::vector<PackPart> parts;
  std::map<int, size_t> part_of_pack;
  for (int item = item_begin; item < item_end; ++item) {
    const PackPlan::Place& place = plan.places[item];
    const auto [found, is_new] =
        part_of_pack.try_emplace(place.pack, parts.size());
    if (is_new) parts.push_back({.first_item = item});
    PackPart& part = parts[found->second];
    part.element_count = place.begin + items[item].element_count -
                         plan.places[part.first_item].begin;
  }
  return parts;
}

PackPlan PlanPacks(absl::Span<const PackItem> gradients,
                   absl::Span<const PackItem> trailer, int64_t bytes_per_pack) {
  PackPlan plan;
  std::map<DType, int> open;  // The last pack of each dtype.
  const auto add = [&](const PackItem& item, int gradient) {
    const auto [found, is_new] =
        open.try_emplace(item.dtype, static_cast<int>(plan.packs.size()));
    if (is_new) plan.packs.push_back({.dtype = item.dtype});
    PackPlan::Pack& pack = plan.packs[found->second];
    const int64_t begin = AlignUp(pack.element_count, item.dtype);
    plan.places.push_back({.pack = found->second, .begin = begin});
    pack.element_count = begin + item.element_count;
    pack.last_gradient = gradient;
  };
  const int gradient_count = static_cast<int>(gradients.size());
  for (int i = 0; i < gradient_count; ++i) {
    const auto found = open.find(gradients[i].dtype);
    const bool is_over =
        found != open.end() && bytes_per_pack > 0 &&
        static_cast<int64_t>(plan.packs[found->second].size_bytes()) >
            bytes_per_pack;
    if (is_over) open.erase(found);
    add(gradients[i], i);
  }
  for (const PackItem& item : trailer) add(item, gradient_count);
  SortByLastGradient(&plan);
  return plan;
}

}  // namespace muster
