#include "coordinator/rollback_point.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/io/storage/disk.h"

namespace muster {

bool IsPublished(const std::string& prefix) {
  return !absl::IsNotFound(
      Disk::Real()->Open(BundleIndexPath(prefix)).status());
}

void RollbackPoints::Add(RollbackPoint point) {
  absl::MutexLock lock(&mutex_);
  points_.push_back(std::move(point));
  if (points_.size() > count_max_) points_.erase(points_.begin());
}

void RollbackPoints::DropFirstValues() {
  absl::MutexLock lock(&mutex_);
  std::erase_if(
      points_, [](const RollbackPoint& point) { return point.prefix.empty(); });
}

void RollbackPoints::DropAfter(const RollbackPoint& point) {
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(
      points_.begin(), points_.end(), [&](const RollbackPoint& other) {
        return other.id == point.id && other.prefix == point.prefix;
      });
  if (found != points_.end()) points_.erase(found + 1, points_.end());
}

void RollbackPoints::DropDeleted(
    absl::FunctionRef<bool(const std::string& prefix)> exists) {
  std::map<std::string, bool> is_there;  // By prefix.
  {
    absl::MutexLock lock(&mutex_);
    for (const RollbackPoint& point : points_) {
      if (!point.prefix.empty()) is_there[point.prefix] = false;
    }
  }
  for (auto& [prefix, there] : is_there) there = exists(prefix);
  absl::MutexLock lock(&mutex_);
  std::erase_if(points_, [&](RollbackPoint& point) {
    const auto found = is_there.find(point.prefix);
    if (found == is_there.end()) return false;  // Added during `exists`.
    const bool was_published = point.is_published;
    point.is_published = found->second;
    return was_published && !found->second;
  });
}

std::vector<RollbackPoint> RollbackPoints::List() const {
  absl::MutexLock lock(&mutex_);
  return std::vector<RollbackPoint>(points_.rbegin(), points_.rend());
}

bool RollbackPoints::IncludesExactly(const ClosureIds& succeeded) const {
  absl::MutexLock lock(&mutex_);
  return !points_.empty() && points_.back().succeeded == succeeded;
}

}  // namespace muster
