#include "common/compute/variables/replica_variables.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/compute/optimizers/staged_rule.h"
#include "common/compute/variables/state_snapshot.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

absl::Status CannotDivide() {
  return absl::UnimplementedError(
      "the optimizer state of variables on GPUs cannot be sharded");
}

}  // namespace

absl::StatusOr<bool> ReplicaVariables::NeedsWholeVariable(
    absl::string_view) const {
  return CannotDivide();
}

absl::Status ReplicaVariables::Divide(absl::string_view, ElementShares) {
  return CannotDivide();
}

absl::Status ReplicaVariables::AssignElements(absl::string_view,
                                              absl::Span<const ElementValues>) {
  return CannotDivide();
}

absl::Status ReplicaVariables::AssignAverages() {
  for (const proto::VariableSpec& spec : List()) {
    ASSIGN_OR_RETURN(VariableState state, ReadState(spec.name()));
    for (const VariableState::Slot& slot : state.slots) {
      if (slot.name != kAverageSlot || slot.is_share) continue;
      RETURN_IF_ERROR(Assign(spec.name(), slot.value));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ReplicaVariables::StateBytes() {
  int64_t size_bytes = 0;
  for (const proto::VariableSpec& spec : List()) {
    ASSIGN_OR_RETURN(const VariableState state, ReadState(spec.name()));
    size_bytes += static_cast<int64_t>(state.value.size_bytes());
    for (const VariableState::Slot& slot : state.slots) {
      size_bytes += static_cast<int64_t>(slot.value.size_bytes());
    }
  }
  return size_bytes;
}

absl::StatusOr<std::unique_ptr<VariableSnapshot>>
ReplicaVariables::TakeSnapshot() {
  auto snapshot = std::make_unique<StateSnapshot>();
  for (const proto::VariableSpec& spec : List()) {
    ASSIGN_OR_RETURN(const Description variable, Describe(spec.name()));
    ASSIGN_OR_RETURN(VariableState state, ReadState(spec.name()));
    snapshot->Add(VariableRows::All(spec.name(), variable.type),
                  std::move(state));
  }
  return snapshot;
}

absl::Status ReplicaVariables::SaveShards(absl::string_view prefix,
                                          int shard_count) {
  ASSIGN_OR_RETURN(const std::unique_ptr<VariableSnapshot> snapshot,
                   TakeSnapshot());
  return snapshot->WriteShards(Disk::Real(), prefix, shard_count);
}

absl::Status ReplicaVariables::Restore(absl::string_view prefix,
                                       bool values_only) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleReader> reader,
                   TensorBundleReader::Open(Disk::Real(), prefix));
  return RestoreFrom(*reader, values_only);
}

absl::Status ReplicaVariables::RestoreFrom(const TensorBundleReader& reader,
                                           bool values_only) {
  std::vector<VariableRows> rows;
  for (const proto::VariableSpec& spec : List()) {
    if (!IsRestored(reader, spec, values_only)) continue;
    ASSIGN_OR_RETURN(const Description variable, Describe(spec.name()));
    rows.push_back(VariableRows::All(spec.name(), variable.type));
  }
  RETURN_IF_ERROR(CheckVariables(reader, rows));
  // Reads everything before it changes a variable, because the files may be
  // damaged.
  std::vector<VariableState> states;
  for (const VariableRows& variable : rows) {
    ASSIGN_OR_RETURN(VariableState state,
                     ReadVariableState(reader, variable, values_only));
    states.push_back(std::move(state));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    RETURN_IF_ERROR(values_only
                        ? Assign(rows[i].variable, states[i].value)
                        : RestoreState(rows[i].variable, std::move(states[i])));
  }
  return absl::OkStatus();
}

}  // namespace muster
