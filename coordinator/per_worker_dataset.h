#ifndef COORDINATOR_PER_WORKER_DATASET_H_
#define COORDINATOR_PER_WORKER_DATASET_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "coordinator/worker_lane.h"

namespace muster {

using WorkerDatasetFunction = std::function<Dataset(const InputContext&)>;

struct PerWorkerDatasetOptions {
  int worker_count = 1;
  int num_replicas_in_sync = 1;
  // Every shuffle draws another order in each worker, however it was defined.
  bool decorrelate_shuffles = true;
  // Passes through the data that went before.
  int64_t epoch = 0;
};

// Gives every worker the whole of `dataset`.
//   kFailedPrecondition  as EncodeDataset(): the definition cannot be sent
//   kInvalidArgument     a mistake made while chaining
absl::StatusOr<IteratorRecord> EncodePerWorker(
    const Dataset& dataset, const PerWorkerDatasetOptions& options);

// Gives each worker what `make` makes for it. All must have the same element
// types, which go to `element_types`.
absl::StatusOr<IteratorRecord> EncodePerWorker(
    const WorkerDatasetFunction& make, const PerWorkerDatasetOptions& options,
    std::vector<TensorType>* element_types);

}  // namespace muster

#endif  // COORDINATOR_PER_WORKER_DATASET_H_
