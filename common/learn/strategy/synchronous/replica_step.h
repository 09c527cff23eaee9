#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_STEP_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_STEP_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/runtime/replica_link.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/pack_exchange.h"
#include "common/net/collectives/communicator.h"

namespace muster {

class ReplicaSession;

// One replica's part in a step that all replicas train in sync: takes the
// gradients and results that the replica computes, and makes of them what the
// whole group has computed.
//
//   step.variables()                  is what the step is compiled against
//   step.Begin({...})
//   step.BeginLeaf(has_data)          once; more often where leaves are fixed
//   executable->Run(...)              not needed without data: see MustRun()
//   step.EndLeaf(results)
//   step.Finish()                     waits for all; applies the updates
//
// Gradients that the step has weighted (SetGradientWeight) become
// sum(w_r g_r) / sum(w_r) over the replicas; others are summed. A replica
// without data contributes zeros, whatever it computed. A step in which nobody
// had data, or in which somebody wants to stop, changes no variable.
//
// Other updates follow the variable's aggregation: values are summed, averaged
// over the replicas with data, or taken from the first replica (nothing happens
// when that has no data), right when they are made. Variables that are
// synchronized on reading take the replica's own updates.
//
// Every replica makes the same calls; errors are the communicator's, and what
// the variables refuse. Not thread-safe.
class ReplicaStep {
 public:
  struct Options {
    Communicator* communicator = nullptr;     // Borrowed.
    LocalVariableStore* variables = nullptr;  // Borrowed: this replica's copy.
    // All replicas look into the same store, and one of them updates it.
    bool shares_variables = false;
    bool applies_updates = true;
    int64_t bytes_per_pack = 0;
    absl::Duration timeout = absl::Seconds(300);
    // As PackExchange::Options.
    bool overlaps = false;
    Leaves leaves = {};
    // What the weights of all replicas usually come to; the same on all of
    // them. Gradients are divided by it on their way into the packs, which
    // saves a pass over them when it proves right.
    double expected_weight = 1;
    // Of the results that are summed over replicas; none: results are nobody's
    // business. Fully known.
    std::vector<TensorType> result_types = {};
  };

  // What the group agreed on.
  struct Outcome {
    // Of all pieces of the global batch; 0: the step changed nothing.
    int64_t leaves_with_data = 0;
    bool somebody_wants_to_stop = false;
    // Somebody wants to stop after it.
    bool is_last_step = false;
  };

  // What a replica wants.
  enum class Wish {
    kGoOn,
    kStop,       // Now: the step is nobody's.
    kStopAfter,  // The step is the last.
  };

  //   kInvalidArgument  a result cannot be summed
  static absl::StatusOr<std::unique_ptr<ReplicaStep>> Create(Options options);
  ~ReplicaStep();

  // This replica's variables. The one session that is opened feeds this step.
  //   kInvalidArgument  a variable is updated by replicas and says no
  //                     aggregation, or one that cannot be
  //   kUnimplemented    leaves are fixed, and the step updates variables in
  //                     other ways than by gradients
  VariableStore* variables();

  // For the graph's own collectives. Null where leaves are fixed.
  ReplicaLink* link();

  // Whether a step must run even where there is no data, because others would
  // wait for what it does on its way. Known once the step is compiled; a graph
  // with replica ops must run too.
  bool MustRun() const;

  absl::Status Begin(Wish wish);
  void BeginLeaf(bool has_data);
  absl::Status EndLeaf(absl::Span<const Tensor> results);
  absl::Status Finish();

  const Outcome& outcome() const { return outcome_; }
  // The sums over all replicas; good until the next step.
  absl::Span<const Tensor> results() const { return results_; }

 private:
  friend class ReplicaSession;
  class Store;
  class Link;

  explicit ReplicaStep(Options options);

  // Alone there is nothing to agree on: updates are applied when they come.
  bool IsAlone() const;
  absl::Status Start();
  void WriteTrailer(absl::Span<const Tensor> results);
  void ReadTrailer();

  const Options options_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<PackExchange> packs_;  // Null until Start() and when alone.
  ReplicaSession* session_ = nullptr;    // Null without variables.
  int gradient_count_ = 0;               // Dense ones.

  int leaf_ = 0;
  bool has_data_ = false;
  Wish wish_ = Wish::kGoOn;
  bool is_weighted_ = false;
  double weight_ = 0;  // Of the leaf's gradients.

  Outcome outcome_;
  double gradient_scale_ = 1;  // From packs to gradients.
  std::vector<Tensor> results_;
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_STEP_H_
