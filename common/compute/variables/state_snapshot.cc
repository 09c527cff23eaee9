#include "common/compute/variables/state_snapshot.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"

namespace muster {

void StateSnapshot::Add(VariableRows rows, VariableState state) {
  std::vector<std::string> slots;
  for (const VariableState::Slot& slot : state.slots) {
    slots.push_back(slot.name);
  }
  entries_.push_back({.variable = rows.variable,
                      .slots = std::move(slots),
                      .update_count = state.update_count});
  rows_.push_back(std::move(rows));
  states_.push_back(std::move(state));
}

std::optional<double> StateSnapshot::ScalarSlot(absl::string_view variable,
                                                absl::string_view slot) const {
  for (size_t i = 0; i < states_.size(); ++i) {
    if (entries_[i].variable != variable) continue;
    for (const VariableState::Slot& made : states_[i].slots) {
      if (made.name == slot) return made.value.ElementAsDouble(0);
    }
  }
  return std::nullopt;
}

absl::Status StateSnapshot::WriteShards(Disk* disk, absl::string_view prefix,
                                        int shard_count) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorBundleWriter> writer,
                   TensorBundleWriter::Create(
                       disk, prefix, {.index = 0, .count = shard_count}));
  for (size_t i = 0; i < states_.size(); ++i) {
    RETURN_IF_ERROR(WriteVariableState(rows_[i], states_[i], writer.get()));
    // Releases what has been written, so that running steps need not copy it.
    states_[i] = {};
  }
  return writer->Finish();
}

}  // namespace muster
