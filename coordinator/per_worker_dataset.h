#ifndef COORDINATOR_PER_WORKER_DATASET_H_
#define COORDINATOR_PER_WORKER_DATASET_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/learn/strategy/input/sharding_plan.h"
#include "proto/worker.pb.h"

namespace muster {

// An input pipeline in the form in which it is sent to workers: one definition
// for all workers, or one for each.
struct IteratorRecord {
  std::vector<std::string> serialized_datasets;
  std::vector<proto::IteratorDefinition> contexts;  // By worker; no dataset.
};

// Encodes the plan of each worker, or that of worker 0, which is then for all.
//   kFailedPrecondition  a definition cannot be sent; see EncodeDataset()
//   kInvalidArgument     the datasets have different element types or names
absl::StatusOr<IteratorRecord> EncodePerWorker(
    absl::Span<const ShardingPlan> plans);

}  // namespace muster

#endif  // COORDINATOR_PER_WORKER_DATASET_H_
