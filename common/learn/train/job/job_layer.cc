#include "common/learn/train/job/job_layer.h"

#include "absl/status/statusor.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers.h"
#include "common/learn/train/job/job_config_reader.h"
#include "proto/job_layer.pb.h"

namespace muster {

absl::StatusOr<LayerPtr> BuildJobLayer(const proto::JobLayer& job) {
  ASSIGN_OR_RETURN(
      LayerPtr layer,
      MakeOfKind<LayerPtr>(kLayerKinds, job, "dense { units: 10 }",
                           [](const LayerKind& kind, ConfigVisitor& visitor) {
                             LayerPtr made = kind.make();
                             made->VisitConfig(visitor);
                             return made;
                           }));
  layer->set_name(job.name());
  return layer;
}

}  // namespace muster
