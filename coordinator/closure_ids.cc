#include "coordinator/closure_ids.h"

#include <algorithm>
#include <iterator>

namespace muster {

void ClosureIds::Add(uint64_t id) {
  auto next = runs_.upper_bound(id);
  if (next != runs_.begin()) {
    const auto before = std::prev(next);
    if (id < before->second) return;
    if (id == before->second) {
      ++before->second;
      ++size_;
      if (next != runs_.end() && next->first == before->second) {
        before->second = next->second;
        runs_.erase(next);
      }
      return;
    }
  }
  ++size_;
  if (next != runs_.end() && next->first == id + 1) {
    const uint64_t end = next->second;
    next = runs_.erase(next);
    runs_.emplace_hint(next, id, end);
  } else {
    runs_.emplace_hint(next, id, id + 1);
  }
}

bool ClosureIds::Contains(uint64_t id) const {
  const auto next = runs_.upper_bound(id);
  return next != runs_.begin() && id < std::prev(next)->second;
}

void ClosureIds::AddRun(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  runs_.emplace_hint(runs_.end(), begin, end);
  size_ += static_cast<int64_t>(end - begin);
}

ClosureIds ClosureIds::Minus(const ClosureIds& other) const {
  ClosureIds rest;
  auto taken = other.runs_.begin();
  for (const auto& [run_begin, run_end] : runs_) {
    uint64_t begin = run_begin;
    while (taken != other.runs_.end() && taken->second <= begin) ++taken;
    for (auto it = taken; it != other.runs_.end() && it->first < run_end;
         ++it) {
      rest.AddRun(begin, it->first);
      begin = std::max(begin, it->second);
    }
    rest.AddRun(begin, run_end);
  }
  return rest;
}

std::vector<uint64_t> ClosureIds::First(size_t count_max) const {
  std::vector<uint64_t> ids;
  for (const auto& [begin, end] : runs_) {
    for (uint64_t id = begin; id < end; ++id) {
      if (ids.size() == count_max) return ids;
      ids.push_back(id);
    }
  }
  return ids;
}

}  // namespace muster
