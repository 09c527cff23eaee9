#include "coordinator/per_worker_dataset.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/codec/dataset_codec.h"
#include "coordinator/iterator_record.h"
#include "proto/dataset.pb.h"
#include "proto/worker.pb.h"

namespace muster {
namespace {

InputContext ContextOf(int worker, const PerWorkerDatasetOptions& options) {
  return {.num_input_pipelines = options.worker_count,
          .input_pipeline_id = worker,
          .num_replicas_in_sync = options.num_replicas_in_sync};
}

void AddContexts(const PerWorkerDatasetOptions& options,
                 IteratorRecord* record) {
  for (int worker = 0; worker < options.worker_count; ++worker) {
    const InputContext context = ContextOf(worker, options);
    proto::IteratorDefinition& definition = record->contexts.emplace_back();
    definition.set_num_input_pipelines(context.num_input_pipelines);
    definition.set_input_pipeline_id(context.input_pipeline_id);
    definition.set_num_replicas_in_sync(context.num_replicas_in_sync);
    definition.set_epoch(options.epoch);
  }
}

absl::StatusOr<std::string> Serialize(const Dataset& dataset,
                                      bool decorrelate_shuffles) {
  RETURN_IF_ERROR(dataset.status());
  ASSIGN_OR_RETURN(proto::Dataset encoded, EncodeDataset(dataset));
  if (decorrelate_shuffles) {
    for (proto::DatasetStage& stage : *encoded.mutable_stages()) {
      if (stage.has_shuffle()) stage.mutable_shuffle()->set_decorrelate(true);
    }
  }
  return encoded.SerializeAsString();
}

}  // namespace

absl::StatusOr<IteratorRecord> EncodePerWorker(
    const Dataset& dataset, const PerWorkerDatasetOptions& options) {
  IteratorRecord record;
  ASSIGN_OR_RETURN(std::string serialized,
                   Serialize(dataset, options.decorrelate_shuffles));
  record.serialized_datasets.push_back(std::move(serialized));
  AddContexts(options, &record);
  return record;
}

absl::StatusOr<IteratorRecord> EncodePerWorker(
    const WorkerDatasetFunction& make, const PerWorkerDatasetOptions& options,
    std::vector<TensorType>* element_types) {
  IteratorRecord record;
  std::vector<std::string> names;
  for (int worker = 0; worker < options.worker_count; ++worker) {
    const Dataset dataset = make(ContextOf(worker, options));
    // The dataset function gets an InputContext and decides about shuffling
    // itself.
    ASSIGN_OR_RETURN(std::string serialized,
                     Serialize(dataset, /*decorrelate_shuffles=*/false));
    record.serialized_datasets.push_back(std::move(serialized));
    if (worker == 0) {
      *element_types = dataset.element_types();
      names = dataset.component_names();
    } else if (*element_types != dataset.element_types() ||
               names != dataset.component_names()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the dataset function makes other element types or "
                       "component names for worker ",
                       worker, " than for worker 0"));
    }
  }
  AddContexts(options, &record);
  return record;
}

}  // namespace muster
