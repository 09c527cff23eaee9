#ifndef COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_STEP_H_
#define COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_STEP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/runtime/replica_link.h"
#include "common/compute/variables/replica_variables.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/device/device.h"
#include "common/core/device/step_graphs.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/device_code/trailer_parameters.h"
#include "common/learn/strategy/synchronous/gradient_packs.h"
#include "common/learn/strategy/synchronous/pack_exchange.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/device_communicator.h"

namespace muster {

class DeviceTrailer;
class LeafLockstep;
class ReplicaSession;
class StateSharding;

using TrailerFields = std::array<float, internal::kTrailerFieldCount>;

// One replica's part in a synchronous step: takes the gradients and results
// that the replica computes, and replaces them with those of the whole group.
//
//   step.variables()                  the variables to compile the step with
//   step.Begin({...})
//   step.RunLeaves([](int leaf) {     once; several times with fixed leaves
//     step.BeginLeaf(leaf, has_data)
//     executable->Run(...)            optional without data: see MustRun()
//     step.EndLeaf(leaf, results)
//   })
//   step.Finish()                     waits for all; applies the updates
//
// If overlaps_steps(), the device decides whether the updates are applied, and
// the host waits for it only when it needs outcome() and results(). Then two
// steps may overlap:
//
//     executable->Start(...)          in RunLeaves()
//     step.EndLeaf(leaf, executable->StartedResults())
//   step.Commit()                     enqueues the updates
//   ...                               the next step
//   executable->Finish(...)           of the oldest unfinished step
//   step.Await()
//
// Gradients that the step has weighted (SetLossDenominator) become sum(w_r g_r)
// / sum(w_r) over the replicas; others are summed. A replica without data
// contributes zeros, whatever it computed. A step changes no variable if no
// replica had data or if a replica requests to stop.
//
// Other updates follow the variable's aggregation: at the time of the update,
// values are summed, averaged over the replicas with data, or taken from the
// first replica (without its data there is no update). Variables that are
// synchronized on reading take the replica's own updates.
//
// A step is applied whole or not at all: gradients, and assignments that the
// step does not read again, change the variables after the last exchange with
// other replicas. If the group loses a replica before that, the variables and
// slots of every other replica are those before the step. Loss of a replica
// after its last message may leave some replicas before the step and others
// after it. Two kinds of updates are applied while the step runs, and remain:
// those that are exchanged at once, and those of variables that are
// synchronized on reading.
//
// If optimizer state is sharded, each replica updates its elements of the
// variables, and then the replicas exchange the new values. A loss during this
// exchange leaves values and slots of different steps: only a checkpoint
// restores the state.
//
// If the step runs on a GPU that has the variables, gradients stay there: they
// are packed, combined and applied in its memory. Gradients of rows, and values
// that are exchanged while the step runs, pass through the host.
//
// Every replica makes the same calls. Errors are those of the communicator and
// of the variables. If the device of a replica finds an error in the data, its
// executable returns the error, the caller ends the group with it, and no
// replica applies the step or a later one. Not thread-safe. Unfinished steps
// use memory of this object, so their executables and their stream must be
// destroyed first.
class ReplicaStep {
 public:
  struct Options {
    Communicator* communicator = nullptr;   // Borrowed.
    ReplicaVariables* variables = nullptr;  // Borrowed: this replica's copy.
    // True if all replicas use the same store, which one of them updates.
    bool shares_variables = false;
    bool applies_updates = true;
    // True if the replicas divide the optimizer state among themselves. Only
    // for variables on the host that replicas do not share.
    bool shards_optimizer_state = false;
    int64_t bytes_per_pack = 0;
    absl::Duration timeout = absl::Seconds(300);
    // As PackExchange::Options.
    bool overlaps = false;
    Leaves leaves = {};
    // True if the group survives the loss of replicas. Steps that would change
    // variables before their last exchange are then refused (kUnimplemented).
    bool survives_losses = false;
    // True if the graph has ops between replicas. Fixed leaves are the replicas
    // of these ops and run in lockstep (LeafLockstep).
    bool has_replica_ops = false;
    // The expected sum of the weights of all replicas; equal on all replicas.
    // Gradients are divided by it when they are packed. If it is correct, this
    // saves a pass over them.
    double expected_weight = 1;
    // The fully known types of the results that are summed over replicas. If
    // empty, results are ignored.
    std::vector<TensorType> result_types = {};
  };

  // The outcome on which the group agreed.
  struct Outcome {
    // Number of parts of the global batch with data. 0 means that the step
    // changed nothing.
    int64_t leaves_with_data = 0;
    bool stop_requested = false;
    // A replica requests to stop after this step.
    bool is_last_step = false;
    // All replicas allow steps to overlap, from the step after the next one on.
    bool all_let_steps_overlap = false;
  };

  // A replica's request.
  enum class StepRequest {
    kContinue,
    kStop,       // At once: the step is discarded.
    kStopAfter,  // After this step.
  };

  //   kInvalidArgument  a result cannot be summed
  static absl::StatusOr<std::unique_ptr<ReplicaStep>> Create(Options options);
  ~ReplicaStep();

  // Returns the number of executables for the leaves of this replica. Leaf i
  // runs on executable i, or all leaves run on the only one. Executables of a
  // device share one stream.
  int executable_count() const;

  // Returns this replica's variables for compiling these executables, one after
  // another. Sessions opened on it pass their updates to this step.
  //   kInvalidArgument  a variable is updated by replicas and has no
  //                     aggregation, or an unsupported one
  //   kUnimplemented    leaves are fixed, and the step assigns to a variable
  //                     that it reads again, or takes the value of the first
  //                     replica
  VariableSessionFactory* variables();

  // Returns the link for the ops between replicas in an executable. Null if
  // there are no other replicas or leaves.
  ReplicaLink* link(int executable = 0);

  // True if a step must run even without data, because other replicas would
  // wait for a collective in it. Valid once the step is compiled.
  bool MustRun() const;

  // True if the device decides whether steps are applied. Valid once the step
  // is compiled, and equal on all replicas on devices.
  bool overlaps_steps() const;

  // `lets_steps_overlap` contributes to Outcome::all_let_steps_overlap.
  absl::Status Begin(StepRequest request, bool lets_steps_overlap = false);
  // Calls work(leaf) for each leaf of this replica, numbered from 0, in that
  // order or in lockstep. Returns the first error.
  absl::Status RunLeaves(absl::FunctionRef<absl::Status(int leaf)> work);
  void BeginLeaf(int leaf, bool has_data);
  // If overlaps_steps(), work already enqueued on the stream may write
  // `results`. They are empty if an earlier error has ended the step.
  absl::Status EndLeaf(int leaf, absl::Span<const Tensor> results);

  // Completes the step. If overlaps_steps(), only enqueues the completion; at
  // most two steps may be committed and not awaited.
  absl::Status Commit();
  // Blocks until the oldest committed step is done except for its updates. If
  // it changed nothing, the later steps have changed nothing either and count
  // as awaited.
  absl::Status Await();
  // Commit() and Await().
  absl::Status Finish();
  // Steps committed and not awaited; 0 unless overlaps_steps().
  int unfinished_count() const { return unfinished_count_; }

  // The outcome of the last step awaited.
  const Outcome& outcome() const { return outcome_; }
  // The sums over all replicas. Valid until the next step or, if steps overlap,
  // until the step after it.
  absl::Span<const Tensor> results() const { return results_; }

 private:
  class Sessions;
  class Link;

  explicit ReplicaStep(Options options);

  // True for a single replica, which needs no agreement and applies updates
  // immediately.
  bool IsAlone() const;
  absl::Status Start();
  // Blocks until packs in transit have arrived, before another collective.
  absl::Status AwaitPacks();
  // Opens a session on the host or on a device and records it.
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses, Device* device, DeviceStream* stream);
  // Sets on_device_. All replicas agree on how their packs are staged.
  absl::Status ConnectDevice();
  // Returns null without variables.
  ReplicaSession* SessionOf(int leaf) const;
  // `items` are the items of `plan`, and the trailer ends before item
  // `trailer_end`.
  absl::Status MakeTrailer(const PackPlan& plan,
                           absl::Span<const PackItem> items, int trailer_end);
  // Returns the trailer of this replica at the end of a step, without a weight
  // that is on the device.
  TrailerFields FieldsOf(int leaf) const;
  void WriteTrailer(int leaf, absl::Span<const Tensor> results);
  absl::Status ContributeResults(absl::Span<const Tensor> results);
  void ReadFields(const float* fields);
  double GradientScale() const;
  // Sets sharding_ if optimizer state is sharded.
  absl::Status Shard(const PackPlan& plan);
  absl::Status CommitOnHost();
  absl::Status CommitOnDevice();
  absl::Status EnqueueCommit();
  void ReadCopies();
  // Returns the error of a step that is not applied because another replica
  // found an error in its data.
  absl::Status ErrorOfOthers();

  const Options options_;
  const int own_leaf_count_;
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<LeafLockstep> lockstep_;  // Null unless leaves need it.
  Device* device_ = nullptr;  // The device of the gradients; null on the host.
  // For a replica on a GPU whose communicator works on the host. May be null.
  std::unique_ptr<DeviceCommunicator> staged_;
  DeviceCommunicator* on_device_ = nullptr;  // Null on the host.
  DeviceStream* stream_ = nullptr;           // Of the step on the device.
  std::unique_ptr<PackExchange> packs_;  // Null until Start() and when alone.
  std::unique_ptr<StateSharding> sharding_;  // Null if nothing is sharded.
  std::unique_ptr<DeviceTrailer> trailer_;   // Null unless overlaps_steps().
  // Capture the work of CommitOnDevice(); null if it is not captured.
  std::unique_ptr<StepGraphs> graphs_;
  std::vector<Tensor> gradient_parts_;  // Parts of the packs; with a trailer_.
  // By result: its part of the trailer, and its offset in that part.
  std::vector<std::pair<int, size_t>> result_places_;
  int unfinished_count_ = 0;
  // By executable; empty without variables.
  std::vector<ReplicaSession*> leaf_sessions_;
  int gradient_count_ = 0;  // Number of dense gradients.

  std::vector<bool> has_data_;  // By leaf.
  StepRequest step_request_ = StepRequest::kContinue;
  bool lets_steps_overlap_ = false;

  Outcome outcome_;
  TrailerFields sums_ = {};  // Of the last step awaited.
  std::vector<Tensor> results_;
  Tensor fields_;  // The sums of the trailer's fields, in the packs.
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_STEP_H_
