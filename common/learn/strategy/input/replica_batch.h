#ifndef COMMON_LEARN_STRATEGY_INPUT_REPLICA_BATCH_H_
#define COMMON_LEARN_STRATEGY_INPUT_REPLICA_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"

namespace muster {

// Where this process' replicas stand among all. Every worker has as many
// (see ReplicasPerWorker() where a number of all replicas is given).
struct InputPlacement {
  int worker_count = 1;
  int worker_index = 0;
  int replicas_per_worker = 1;

  int replica_count() const { return worker_count * replicas_per_worker; }
};

// What one replica trains on in one step.
struct ReplicaBatch {
  // Shares its memory with the global batch: not to be written to.
  Element element;
  // Rows of the element; 0: there is nothing for this replica, and the tensors
  // have no rows.
  int64_t example_count = 0;
  // The place of the first row in the global batch, counted as if every replica
  // had its full share. No two rows of a step have the same place.
  int64_t example_offset = 0;
};

// Not thread-safe.
class DistributedIterator {
 public:
  virtual ~DistributedIterator() = default;

  // Makes `batches` one batch for each replica of this worker, and returns
  // whether this worker has anything in this step or a later one. True does not
  // mean that there are rows for its own replicas in this step: a batch may
  // have fewer rows than there are replicas. False: this worker is at its end;
  // others may not be, and so this can be called again and gives batches
  // without rows each time.
  //
  // Batches that are handed in are released; a caller that keeps handing in the
  // same vector lets the iterator use its memory again.
  //   kInvalidArgument  components of an element have different numbers of rows
  //   as DatasetIterator::Next(), and from then on
  virtual absl::StatusOr<bool> Next(std::vector<ReplicaBatch>* batches) = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_REPLICA_BATCH_H_
