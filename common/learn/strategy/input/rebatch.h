#ifndef COMMON_LEARN_STRATEGY_INPUT_REBATCH_H_
#define COMMON_LEARN_STRATEGY_INPUT_REBATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// How a global batch is divided among replicas. Pure arithmetic.
//
// Replicas are numbered worker by worker: replica r of worker w is number
// w * replicas_per_worker + r of all.

enum class RebatchRule {
  kDefault,  // Chosen by who divides; no rule of its own.
  // Sub-batches of equal size, the first ones with one row more where the
  // global batch size is no multiple. A batch that is not full fills them in
  // order, so that trailing ones are short or empty.
  kBalanced,
  // Of each batch as it comes, full or not: pieces of ceil(rows / replicas),
  // then one piece with what remains, then empty ones.
  kLegacy,
};

struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

//   kInvalidArgument  there are no workers or no replicas, or replicas cannot
//   be
//                     spread equally
absl::StatusOr<int> ReplicasPerWorker(int replica_count, int worker_count);

// The sizes of all replicas' sub-batches by kBalanced: global_batch_size /
// replica_count, and one more for the first global_batch_size % replica_count.
std::vector<int64_t> BalancedSizes(int64_t global_batch_size,
                                   int replica_count);

// By kLegacy, of a batch with `row_count` rows.
std::vector<int64_t> LegacySizes(int64_t row_count, int replica_count);

// The rows of a batch of `row_count` that each of all replicas gets when the
// batch is one step. They cover the batch in order, each row once; a batch that
// is larger than it was said to be is divided as what it is.
std::vector<RowRange> DivideBatch(RebatchRule rule, int64_t global_batch_size,
                                  int64_t row_count, int replica_count);

// What a replica may take, and the place of its first row in the global batch.
struct Share {
  int64_t size = 0;
  int64_t offset = 0;

  bool operator==(const Share&) const = default;
};

// The shares of one worker's replicas in step `step` when each worker divides
// batches of its own over the steps that they last. The list of BalancedSizes()
// is gone through from worker_index * replicas_per_worker on and around again,
// so in every step the shares of all workers are disjoint and make up the
// global batch.
std::vector<Share> SharesOfStep(int64_t global_batch_size, int worker_count,
                                int worker_index, int replicas_per_worker,
                                int64_t step);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_REBATCH_H_
