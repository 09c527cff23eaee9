#include "common/learn/train/keras/converted_checkpoint.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/storage/disk.h"
#include "proto/variable.pb.h"

namespace muster {

absl::Status WriteConvertedCheckpoint(ConvertedState state,
                                      VariableStore& variables, Disk* disk,
                                      absl::string_view prefix) {
  for (const proto::VariableSpec& spec : variables.List()) {
    const std::string key = VariableValueKey(spec.name());
    if (state.contains(key)) continue;
    ASSIGN_OR_RETURN(Tensor value, variables.Read(spec.name()));
    state.emplace(key, std::move(value));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleWriter> writer,
                   TensorBundleWriter::Create(disk, prefix));
  for (const auto& [key, value] : state) {
    RETURN_IF_ERROR(writer->Add(key, value));
  }
  RETURN_IF_ERROR(writer->Finish());
  return PublishTensorBundle(disk, prefix, 1);
}

}  // namespace muster
