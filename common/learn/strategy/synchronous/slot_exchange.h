#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_SLOT_EXCHANGE_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_SLOT_EXCHANGE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_state.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// Exchanges of optimizer slots between steps. Collectives: every rank makes the
// same calls. Errors are those of the communicator.

// Replaces value, slots and update count of `state`, of `variable`, by those of
// rank `root`.
absl::Status BroadcastState(const ReplicaVariables::Description& variable,
                            int root, Communicator& communicator,
                            absl::Duration timeout, VariableState* state);

// As BroadcastState(), but keeps the slots.
absl::Status BroadcastValue(const ReplicaVariables::Description& variable,
                            int root, Communicator& communicator,
                            absl::Duration timeout, VariableState* state);

// Returns the slots of a divided variable, each covering the whole variable.
// `own` are the slots of this rank. If `only` is not empty, returns no slot
// with another name. Returns slots without values if `keeps_values` is false:
// this rank takes part only because the others need its elements.
absl::StatusOr<std::vector<VariableState::Slot>> GatherSlots(
    const ReplicaVariables::Description& variable,
    const std::vector<VariableState::Slot>& own, absl::string_view only,
    bool keeps_values, Communicator& communicator, absl::Duration timeout);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_SLOT_EXCHANGE_H_
