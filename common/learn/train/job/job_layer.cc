#include "common/learn/train/job/job_layer.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/train/job/job_config_reader.h"
#include "common/learn/train/job/job_schema.h"
#include "google/protobuf/message.h"
#include "proto/job_model.pb.h"

namespace muster {

absl::StatusOr<LayerPtr> BuildJobLayer(const proto::JobLayer& job,
                                       const JobLayerBuilder& build_inner) {
  const auto build = [&](const google::protobuf::Message& message)
      -> absl::StatusOr<LayerPtr> {
    proto::JobLayer inner;
    CopyFromKinds(message, &inner);
    if (!inner.inputs().empty()) {
      return absl::InvalidArgumentError(
          "inputs: a layer inside another one has the inputs of that one");
    }
    return build_inner ? build_inner(inner) : BuildJobLayer(inner);
  };
  ASSIGN_OR_RETURN(LayerPtr layer,
                   MakeOfKind<LayerPtr>(
                       kLayerKinds, job, "dense { units: 10 }",
                       [](const LayerKind& kind, ConfigVisitor& visitor) {
                         LayerPtr made = kind.make();
                         made->VisitConfig(visitor);
                         return made;
                       },
                       build));
  layer->set_name(job.name());
  return layer;
}

}  // namespace muster
