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
// the host does not wait for it before outcome() and results() are wanted. Then
// two steps may be under way:
//
//     executable->Start(...)          in RunLeaves()
//     step.EndLeaf(leaf, executable->StartedResults())
//   step.Commit()                     enqueues the updates
//   ...                               the next step
//   executable->Finish(...)           of the first step that is under way
//   step.Await()
//
// Gradients that the step has weighted (SetLossDenominator) become sum(w_r g_r)
// / sum(w_r) over the replicas; others are summed. A replica without data
// contributes zeros, whatever it computed. A step in which no replica had data,
// or in which a replica requests to stop, changes no variable.
//
// Other updates follow the variable's aggregation: values are summed, averaged
// over the replicas with data, or taken from the first replica (there is no
// update if that has no data), at the time of the update. Variables that are
// synchronized on reading take the replica's own updates.
//
// If the step runs on a GPU that has the variables, gradients stay there: they
// are packed, combined and applied in its memory. Gradients of rows, and values
// that are exchanged while the step runs, pass through the host.
//
// Every replica makes the same calls. Errors are those of the communicator and
// of the variables. A replica whose device finds an error in the data gets it
// from its executable, and ends the group with it; no replica applies the step
// or a later one. Not thread-safe. Steps under way use memory of this, so their
// executables and their stream end first.
class ReplicaStep {
 public:
  struct Options {
    Communicator* communicator = nullptr;   // Borrowed.
    ReplicaVariables* variables = nullptr;  // Borrowed: this replica's copy.
    // All replicas use the same store, and one of them updates it.
    bool shares_variables = false;
    bool applies_updates = true;
    int64_t bytes_per_pack = 0;
    absl::Duration timeout = absl::Seconds(300);
    // As PackExchange::Options.
    bool overlaps = false;
    Leaves leaves = {};
    // The graph has ops between replicas. Fixed leaves are the replicas of
    // these ops, and run in lockstep (LeafLockstep).
    bool has_replica_ops = false;
    // The usual sum of the weights of all replicas; the same on all of them.
    // Gradients are divided by it when they are packed, which saves a pass over
    // them if it is correct.
    double expected_weight = 1;
    // The types of the results that are summed over replicas; none: results are
    // ignored. Fully known.
    std::vector<TensorType> result_types = {};
  };

  // The outcome on which the group agreed.
  struct Outcome {
    // Of all parts of the global batch; 0: the step changed nothing.
    int64_t leaves_with_data = 0;
    bool somebody_wants_to_stop = false;
    // A replica requests to stop after it.
    bool is_last_step = false;
    // All replicas let steps overlap, from the one after the next on.
    bool all_let_steps_overlap = false;
  };

  // A replica's request.
  enum class Wish {
    kGoOn,
    kStop,       // Now: the step is discarded.
    kStopAfter,  // The step is the last.
  };

  //   kInvalidArgument  a result cannot be summed
  static absl::StatusOr<std::unique_ptr<ReplicaStep>> Create(Options options);
  ~ReplicaStep();

  // How many executables run the leaves of this replica: leaf i runs on the
  // i-th of executable_count(), or all on the only one. Those of a device have
  // one stream.
  int executable_count() const;

  // This replica's variables, for these executables, compiled one after
  // another. The sessions opened on it feed this step.
  //   kInvalidArgument  a variable is updated by replicas and has no
  //                     aggregation, or an unsupported one
  //   kUnimplemented    leaves are fixed, and the step assigns to a variable
  //                     that it reads again, or takes the value of the first
  //                     replica
  VariableSessionFactory* variables();

  // For the ops between replicas of the i-th executable. Null if there are no
  // other replicas or leaves.
  ReplicaLink* link(int executable = 0);

  // True if a step must run even without data, because other replicas would
  // wait for a collective in it. Known once the step is compiled.
  bool MustRun() const;

  // True if the device decides about steps. Known once the step is compiled,
  // and the same on all replicas on devices.
  bool overlaps_steps() const;

  // `lets_steps_overlap`: for Outcome::all_let_steps_overlap.
  absl::Status Begin(Wish wish, bool lets_steps_overlap = false);
  // Calls work(leaf) for each leaf of this replica, numbered from 0, in that
  // order or in lockstep. Returns the first error.
  absl::Status RunLeaves(absl::FunctionRef<absl::Status(int leaf)> work);
  void BeginLeaf(int leaf, bool has_data);
  // `results`: if overlaps_steps(), work of the stream that is enqueued before
  // may write them; none if an earlier error has ended the step.
  absl::Status EndLeaf(int leaf, absl::Span<const Tensor> results);

  // Completes the step. If overlaps_steps(), it returns when that is enqueued;
  // at most two steps are committed and not awaited.
  absl::Status Commit();
  // Blocks until the first step that was committed is done but for its updates.
  // If it changed nothing, those behind it have changed nothing, and count as
  // awaited.
  absl::Status Await();
  // Commit() and Await().
  absl::Status Finish();
  // Steps committed and not awaited; 0 unless overlaps_steps().
  int unfinished_count() const { return unfinished_count_; }

  // Of the last step awaited.
  const Outcome& outcome() const { return outcome_; }
  // The sums over all replicas; valid until the next step, or the one after it
  // if that begins before they are used.
  absl::Span<const Tensor> results() const { return results_; }

 private:
  class Sessions;
  class Link;

  explicit ReplicaStep(Options options);

  // A single replica has nothing to agree on: updates are applied immediately.
  bool IsAlone() const;
  absl::Status Start();
  // Blocks until packs in transit have arrived, before another collective.
  absl::Status AwaitPacks();
  // Opens a session on the host, or on a device, and keeps it.
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses, Device* device, DeviceStream* stream);
  // Sets on_device_, for which all replicas agree how they are staged.
  absl::Status ConnectDevice();
  // Null without variables.
  ReplicaSession* SessionOf(int leaf) const;
  // `items` are those of `plan`, and the trailer ends before item
  // `trailer_end`.
  absl::Status MakeTrailer(const PackPlan& plan,
                           absl::Span<const PackItem> items, int trailer_end);
  // The trailer of this replica at the end of a step, without the weight of a
  // device.
  TrailerFields FieldsOf(int leaf) const;
  void WriteTrailer(int leaf, absl::Span<const Tensor> results);
  absl::Status ContributeResults(absl::Span<const Tensor> results);
  void ReadFields(const float* fields);
  double GradientScale() const;
  absl::Status CommitOnHost();
  absl::Status CommitOnDevice();
  absl::Status EnqueueCommit();
  void ReadCopies();
  // Why a step is not applied in whose data another replica found an error.
  absl::Status ErrorOfOthers();

  const Options options_;
  const int own_leaf_count_;
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<LeafLockstep> lockstep_;  // Null unless leaves need it.
  Device* device_ = nullptr;  // That has the gradients; null on the host.
  // Of a replica on a GPU whose communicator is of the host. May be null.
  std::unique_ptr<DeviceCommunicator> staged_;
  DeviceCommunicator* on_device_ = nullptr;  // Null on the host.
  DeviceStream* stream_ = nullptr;           // Of the step on the device.
  std::unique_ptr<PackExchange> packs_;  // Null until Start() and when alone.
  std::unique_ptr<DeviceTrailer> trailer_;  // Null unless overlaps_steps().
  // Take the work of CommitOnDevice(); null if it is not captured.
  std::unique_ptr<StepGraphs> graphs_;
  std::vector<Tensor> gradient_parts_;  // Of the packs, with a trailer_.
  // By result: its part of the trailer, and its place there.
  std::vector<std::pair<int, size_t>> result_places_;
  int unfinished_count_ = 0;
  // Of the executables; none without variables.
  std::vector<ReplicaSession*> leaf_sessions_;
  int gradient_count_ = 0;  // Dense ones.

  std::vector<bool> has_data_;  // By leaf.
  Wish wish_ = Wish::kGoOn;
  bool lets_steps_overlap_ = false;

  Outcome outcome_;
  TrailerFields sums_ = {};  // Of the last step awaited.
  std::vector<Tensor> results_;
  Tensor fields_;  // The sums of the trailer's fields, in the packs.
};

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_SYNCHRONOUS_REPLICA_STEP_H_
