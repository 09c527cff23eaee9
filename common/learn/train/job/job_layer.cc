#include "common/learn/train/job/job_layer.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers.h"
#include "common/learn/train/job/job_config_reader.h"
#include "google/protobuf/descriptor.h"
#include "proto/job_layer.pb.h"

namespace muster {

absl::StatusOr<LayerPtr> BuildJobLayer(const proto::JobLayer& job) {
  const google::protobuf::FieldDescriptor* const kind =
      job.GetReflection()->GetOneofFieldDescriptor(
          job, job.GetDescriptor()->FindOneofByName("kind"));
  if (kind == nullptr) {
    return absl::InvalidArgumentError(
        "says nothing; expected for example dense { units: 10 }");
  }
  const LayerKind* const known =
      std::find_if(std::begin(kLayerKinds), std::end(kLayerKinds),
                   [&](const LayerKind& k) { return k.name == kind->name(); });
  if (known == std::end(kLayerKinds)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kind->name(),
                     " cannot stand here; expected a layer, for "
                     "example dense { units: 10 }"));
  }
  LayerPtr layer = known->make();
  JobConfigReader reader(kind->name(),
                         job.GetReflection()->GetMessage(job, kind));
  layer->VisitConfig(reader);
  RETURN_IF_ERROR(reader.Finish());
  layer->set_name(job.name());
  return layer;
}

}  // namespace muster
