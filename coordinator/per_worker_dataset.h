#ifndef COORDINATOR_PER_WORKER_DATASET_H_
#define COORDINATOR_PER_WORKER_DATASET_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"

namespace muster {

struct IteratorRecord;

using WorkerDatasetFunction = std::function<Dataset(const InputContext&)>;

struct PerWorkerDatasetOptions {
  int worker_count = 1;
  int num_replicas_in_sync = 1;
  // Gives every shuffle a different order on each worker, regardless of its
  // seed.
  bool decorrelate_shuffles = true;
  // Number of completed passes through the data.
  int64_t epoch = 0;
};

// Returns a record that gives the whole `dataset` to every worker.
//   kFailedPrecondition  the definition cannot be sent; see EncodeDataset()
//   kInvalidArgument     an error in the definition of the dataset
absl::StatusOr<IteratorRecord> EncodePerWorker(
    const Dataset& dataset, const PerWorkerDatasetOptions& options);

// Returns a record that gives each worker the dataset that `make` returns for
// it. All must have the same element types, which are written to
// `element_types`.
absl::StatusOr<IteratorRecord> EncodePerWorker(
    const WorkerDatasetFunction& make, const PerWorkerDatasetOptions& options,
    std::vector<TensorType>* element_types);

}  // namespace muster

#endif  // COORDINATOR_PER_WORKER_DATASET_H_
