#ifndef COMMON_LEARN_STRATEGY_INPUT_REBATCH_H_
#define COMMON_LEARN_STRATEGY_INPUT_REBATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// Divides a global batch among replicas. Pure arithmetic.
//
// Replicas are numbered worker by worker: replica r of worker w has number w *
// replicas_per_worker + r.

enum class RebatchRule {
  kDefault,  // Replaced by the caller; not a rule itself.
  // Sub-batches of equal size; the first ones have one row more if the global
  // batch size is not a multiple. A batch that is not full fills them in order,
  // so that the last ones are short or empty.
  kBalanced,
  // Divides each batch by its actual size: parts of ceil(rows / replicas), then
  // one part with the remainder, then empty ones.
  kLegacy,
};

struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

//   kInvalidArgument  there are no workers or no replicas, or replicas cannot
//                     be distributed equally
absl::StatusOr<int> ReplicasPerWorker(int replica_count, int worker_count);

// The sizes of all replicas' sub-batches for kBalanced: global_batch_size /
// replica_count, and one more for the first global_batch_size % replica_count.
std::vector<int64_t> BalancedSizes(int64_t global_batch_size,
                                   int replica_count);

// The same for kLegacy, for a batch with `row_count` rows.
std::vector<int64_t> LegacySizes(int64_t row_count, int replica_count);

// The rows of a batch of `row_count` rows that each replica gets if the batch
// is one step. They cover the batch in order, each row once. A batch larger
// than declared is divided by its actual size.
std::vector<RowRange> DivideBatch(RebatchRule rule, int64_t global_batch_size,
                                  int64_t row_count, int replica_count);

// The number of rows for a replica, and the position of its first row in the
// global batch.
struct Share {
  int64_t size = 0;
  int64_t offset = 0;

  bool operator==(const Share&) const = default;
};

// The shares of one worker's replicas in step `step` if each worker divides its
// own batches over several steps. Rotates through the list of BalancedSizes(),
// starting at worker_index * replicas_per_worker, so in every step the shares
// of all workers are disjoint and cover the global batch.
std::vector<Share> SharesOfStep(int64_t global_batch_size, int worker_count,
                                int worker_index, int replicas_per_worker,
                                int64_t step);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_REBATCH_H_
