#include "coordinator/per_worker_dataset.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/codec/dataset_codec.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

absl::StatusOr<std::string> Serialize(const ShardingPlan& plan) {
  ASSIGN_OR_RETURN(proto::Dataset encoded, EncodeDataset(plan.dataset));
  if (plan.decorrelates_all_shuffles) {
    for (proto::DatasetStage& stage : *encoded.mutable_stages()) {
      if (stage.has_shuffle()) stage.mutable_shuffle()->set_decorrelate(true);
    }
  }
  return encoded.SerializeAsString();
}

}  // namespace

absl::StatusOr<IteratorRecord> EncodePerWorker(
    absl::Span<const ShardingPlan> plans) {
  IteratorRecord record;
  const Dataset& first = plans[0].dataset;
  for (const ShardingPlan& plan : plans) {
    ASSIGN_OR_RETURN(record.serialized_datasets.emplace_back(),
                     Serialize(plan));
    if (plan.element_types != first.element_types() ||
        plan.dataset.component_names() != first.component_names()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the dataset function makes other element types or "
                       "component names for worker ",
                       plan.placement.worker_index, " than for worker 0"));
    }
  }
  for (int w = 0; w < plans[0].placement.worker_count; ++w) {
    const InputContext& context = plans[0].context;
    proto::IteratorDefinition& definition = record.contexts.emplace_back();
    definition.set_num_input_pipelines(context.num_input_pipelines);
    definition.set_input_pipeline_id(w);
    definition.set_num_replicas_in_sync(context.num_replicas_in_sync);
  }
  return record;
}

}  // namespace muster
