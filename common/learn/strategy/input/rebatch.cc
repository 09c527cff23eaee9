#include "common/learn/strategy/input/rebatch.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

std::vector<RowRange> RangesOf(const std::vector<int64_t>& sizes,
                               int64_t row_count) {
  std::vector<RowRange> ranges;
  ranges.reserve(sizes.size());
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    const int64_t end = std::min(begin + size, row_count);
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

}  // namespace

absl::StatusOr<int> ReplicasPerWorker(int replica_count, int worker_count) {
  if (worker_count >= 1 && replica_count >= 1 &&
      replica_count % worker_count == 0) {
    return replica_count / worker_count;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      replica_count, " replicas cannot be spread equally on ", worker_count,
      " workers; expected every worker to have the same number, one at least"));
}

std::vector<int64_t> BalancedSizes(int64_t global_batch_size,
                                   int replica_count) {
  const int64_t remainder = global_batch_size % replica_count;
  std::vector<int64_t> sizes(replica_count, global_batch_size / replica_count);
  for (int64_t i = 0; i < remainder; ++i) ++sizes[i];
  return sizes;
}

std::vector<int64_t> LegacySizes(int64_t row_count, int replica_count) {
  const int64_t piece =
      row_count / replica_count + (row_count % replica_count == 0 ? 0 : 1);
  std::vector<int64_t> sizes(replica_count);
  for (int64_t& size : sizes) {
    size = std::min(piece, row_count);
    row_count -= size;
  }
  return sizes;
}

std::vector<RowRange> DivideBatch(RebatchRule rule, int64_t global_batch_size,
                                  int64_t row_count, int replica_count) {
  if (rule == RebatchRule::kLegacy) {
    return RangesOf(LegacySizes(row_count, replica_count), row_count);
  }
  return RangesOf(
      BalancedSizes(std::max(global_batch_size, row_count), replica_count),
      row_count);
}

std::vector<Share> SharesOfStep(int64_t global_batch_size, int worker_count,
                                int worker_index, int replicas_per_worker,
                                int64_t step) {
  const int replica_count = worker_count * replicas_per_worker;
  const std::vector<int64_t> sizes =
      BalancedSizes(global_batch_size, replica_count);
  // In step s, worker w has the share that worker w + s has in step 0.
  int64_t next = step % worker_count * replicas_per_worker;
  int64_t offset = 0;
  std::vector<Share> shares;
  for (int replica = 0; replica < (worker_index + 1) * replicas_per_worker;
       ++replica) {
    const int64_t size = sizes[next++ % replica_count];
    if (replica >= worker_index * replicas_per_worker) {
      shares.push_back({.size = size, .offset = offset});
    }
    offset += size;
  }
  return shares;
}

}  // namespace muster
