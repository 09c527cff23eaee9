#ifndef COMMON_LEARN_STRATEGY_INPUT_REPLICA_BATCH_H_
#define COMMON_LEARN_STRATEGY_INPUT_REPLICA_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/dataset/dataset.h"

namespace muster {

// The position of this process' replicas among all replicas. Every worker has
// equally many (see ReplicasPerWorker() for the number of all replicas).
struct InputPlacement {
  int worker_count = 1;
  int worker_index = 0;
  int replicas_per_worker = 1;
  // Above 0: every worker draws as many parts of each global batch in place of
  // those of its replicas, so that they do not depend on the workers.
  int micro_batch_count = 0;

  int replica_count() const { return worker_count * replicas_per_worker; }
};

// The data of one replica in one step.
struct ReplicaBatch {
  // Shares its memory with the global batch; do not write to it.
  Element element;
  // Rows of the element; 0: this replica has no data, and the tensors have no
  // rows.
  int64_t example_count = 0;
  // The position of the first row in the global batch, as if every replica had
  // its full share. Positions are unique within a step.
  int64_t example_offset = 0;
};

// Not thread-safe.
class DistributedIterator {
 public:
  virtual ~DistributedIterator() = default;

  // Sets `batches` to one batch for each replica of this worker. Returns true
  // if this worker has data in this step or a later one. This does not mean
  // that its replicas have rows in this step: a batch may have fewer rows than
  // there are replicas. Returns false at the end of this worker's data. Other
  // workers may have more, so this can be called again and returns batches
  // without rows.
  //
  // Batches passed in are released. A caller that always passes the same vector
  // lets the iterator reuse its memory.
  //   kInvalidArgument  components of an element have different numbers of rows
  //   as DatasetIterator::Next(), and from then on
  virtual absl::StatusOr<bool> Next(std::vector<ReplicaBatch>* batches) = 0;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_REPLICA_BATCH_H_
