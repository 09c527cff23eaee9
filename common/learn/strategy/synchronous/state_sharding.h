#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_STATE_SHARDING_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_STATE_SHARDING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/variables/element_shares.h"
#include "common/compute/variables/replica_variables.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/gradient_packs.h"
#include "common/learn/strategy/synchronous/pack_exchange.h"
#include "common/net/collectives/communicator.h"

namespace muster {

// One dense gradient of a step, as StateSharding needs to know it.
struct TrainedVariable {
  std::string name;
  TensorType type;
  // The step also has gradients of rows of the variable.
  bool takes_rows = false;
  // The gradient is limited: by its norm or others', or by value.
  bool is_limited = false;
  // The gradient is applied only if all elements of it are finite.
  bool has_loss_scale = false;
};

// Divides the optimizer state of the variables that a step trains among the
// ranks, and exchanges the new values of each step.
//
// A rank has the elements that a reduce-scatter of the packs leaves it, so each
// pack is reduce-scattered instead of all-reduced, with the same bits. A pack
// is all-reduced nevertheless if a rank needs other elements of it:
//
//   - for gradients that are limited or have a loss scale: their norm, or
//     whether they are finite, is a matter of all elements
//   - for a variable whose optimizer or constraint needs all elements. One rank
//     has all of them
//   - for a variable that the step also updates by rows. It is not divided
//   - for a variable that an earlier step, with other packs, has divided: a
//     variable is divided once
//
// Every rank makes the same calls. Not thread-safe.
class StateSharding {
 public:
  // Divides the variables. `trained` are the gradients of `plan`, in its order.
  // `variables` and `communicator` are borrowed.
  //   errors  as ReplicaVariables::Divide()
  static absl::StatusOr<std::unique_ptr<StateSharding>> Create(
      const PackPlan& plan, absl::Span<const TrainedVariable> trained,
      ReplicaVariables* variables, Communicator* communicator,
      absl::Duration timeout);

  // By pack: true if each rank needs only its part of the sums.
  const std::vector<bool>& scattered_packs() const { return scattered_packs_; }

  // Call it once. The memory of the gradients in `packs`, which is borrowed,
  // then also transfers new values.
  void ConnectPacks(PackExchange* packs);

  // Sends the new values of this rank's elements and sets those of the other
  // ranks. Called after the updates of a step; overwrites its gradients. A
  // collective. After an error the values are unspecified.
  //   errors  as Communicator
  absl::Status ExchangeValues();

 private:
  struct Divided {
    std::string name;
    ElementShares shares;
  };
  // The variables whose values are transferred in one collective. Its memory
  // holds the elements of the first rank, of all variables, then those of the
  // next.
  struct Transfer {
    int first_item = 0;  // Of the pack with the memory.
    std::string call_name;
    std::vector<Divided> variables;
    std::vector<int64_t> counts;  // Elements, by rank.
    Tensor memory;
  };

  StateSharding(const PackPlan& plan, ReplicaVariables* variables,
                Communicator* communicator, absl::Duration timeout)
      : plan_(plan),
        variables_(*variables),
        communicator_(*communicator),
        timeout_(timeout) {}

  absl::Status DivideAll(absl::Span<const TrainedVariable> trained);
  // Returns the elements of an item that a reduce-scatter leaves each rank.
  std::vector<int64_t> PartEnds(int item, int64_t element_count) const;
  void PlanTransfers(absl::Span<const TrainedVariable> trained);
  absl::Status Exchange(Transfer& transfer);

  const PackPlan plan_;
  ReplicaVariables& variables_;
  Communicator& communicator_;
  const absl::Duration timeout_;
  std::vector<ElementShares> shares_;  // By gradient.
  std::vector<bool> scattered_packs_;
  std::vector<Transfer> transfers_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_STATE_SHARDING_H_
