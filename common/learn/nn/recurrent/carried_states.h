#ifndef COMMON_LEARN_NN_RECURRENT_CARRIED_STATES_H_
#define COMMON_LEARN_NN_RECURRENT_CARRIED_STATES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/weight.h"

// The states of recurrent layers with `stateful`: Layer::states().
namespace muster::internal {

// Returns the name of state `index` of a layer: "rnn_state", "rnn_state_1", ...
std::string CarriedStateName(int index);

// Assigns the states after the last step to those that the next batch begins
// with. Does nothing if `carried` is empty.
void Carry(absl::Span<const Value> last, const std::vector<Weight>& carried);

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_RECURRENT_CARRIED_STATES_H_
