#include "common/learn/train/keras/converted_state.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_state.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/storage/disk.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// Returns the new state of a variable, which loses its place in `state`.
absl::StatusOr<VariableState> TakeState(const std::string& variable,
                                        VariableStore& variables,
                                        ConvertedState* state) {
  VariableState taken;
  if (const auto found = state->find(variable); found != state->end()) {
    taken = std::move(found->second);
    state->erase(found);
  }
  if (!taken.value.IsValid()) {
    ASSIGN_OR_RETURN(taken.value, variables.Read(variable));
  }
  return taken;
}

absl::Status AssignValues(const ConvertedState& state,
                          ReplicaVariables& variables) {
  for (const proto::VariableSpec& spec : variables.List()) {
    const auto found = state.find(spec.name());
    const bool is_assigned = found != state.end() &&
                             found->second.value.IsValid() &&
                             !spec.is_optimizer_state();
    if (!is_assigned) continue;
    RETURN_IF_ERROR(variables.Assign(spec.name(), found->second.value));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RestoreConvertedState(ConvertedState state, bool values_only,
                                   ReplicaVariables& variables) {
  if (values_only) return AssignValues(state, variables);
  for (const proto::VariableSpec& spec : variables.List()) {
    ASSIGN_OR_RETURN(VariableState taken,
                     TakeState(spec.name(), variables, &state));
    RETURN_IF_ERROR(variables.RestoreState(spec.name(), std::move(taken)));
  }
  return absl::OkStatus();
}

absl::Status WriteConvertedCheckpoint(
    ConvertedState state, VariableStore& variables, Disk* disk,
    absl::string_view prefix, const std::map<std::string, Tensor>& others) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleWriter> writer,
                   TensorBundleWriter::Create(disk, prefix));
  for (const proto::VariableSpec& spec : variables.List()) {
    ASSIGN_OR_RETURN(const VariableState taken,
                     TakeState(spec.name(), variables, &state));
    const VariableRows all = VariableRows::All(spec.name(), taken.value.type());
    RETURN_IF_ERROR(WriteVariableState(all, taken, writer.get()));
  }
  for (const auto& [key, value] : others) {
    RETURN_IF_ERROR(writer->Add(key, value));
  }
  RETURN_IF_ERROR(writer->Finish());
  return PublishTensorBundle(disk, prefix, 1);
}

}  // namespace muster
