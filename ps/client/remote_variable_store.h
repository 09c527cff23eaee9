#ifndef PS_CLIENT_REMOTE_VARIABLE_STORE_H_
#define PS_CLIENT_REMOTE_VARIABLE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/variables/variable_store.h"
#include "common/net/rpc/network.h"
#include "ps/client/frozen_snapshot.h"
#include "ps/client/optimizer_requests.h"
#include "ps/client/partitioner.h"
#include "ps/client/placement.h"
#include "ps/client/update_gate.h"

namespace muster {

class ServerGroup;
class VariableDirectory;
struct StepMarks;
namespace proto {
class SetOptimizerRequest;
class VariableSpec;
}  // namespace proto

// The variables of a job on its parameter servers.
//
// Every process of a job opens its own store for the same servers. One process,
// the coordinator, creates the variables. OpenSession() and Read() in the other
// processes ask the servers for variables with unknown names. All processes
// derive the same sharding and placement from the descriptions of the servers.
//
// A step sends one request to each server: Commit() sends the updates, and the
// response brings the values that the next step reads, if they changed. The
// requests to different servers run concurrently. Over gRPC, tensors are sent
// from the caller's memory without a copy. Between processes on one host they
// are passed through shared memory if both processes support it; the values
// that a step reads then lie in shared memory. A step sees no difference.
//
// Staleness: the next step may use the values of the last Commit() only if it
// was scheduled before they were requested. A step therefore always sees every
// update that had been applied when it was scheduled. NoteScheduled() tells the
// store which steps have been scheduled; without it every step pulls its values
// again.
//
// Errors carry a TaskFailure naming the server and its incarnation.
//   kUnavailable         a server cannot be reached
//   kFailedPrecondition  a server was restarted and has lost its variables, or
//                        training was rolled back after this store was opened
//
// Thread-safe; sessions are not.
class RemoteVariableStore final : public VariableStore {
 public:
  struct Options {
    // As ServerGroup::Options.
    std::vector<ChannelOptions> tasks;
    int copy_count = 1;
    std::vector<int> serving_tasks;
    // If null, variables are not sharded.
    std::shared_ptr<const Partitioner> partitioner;
    PlacementPolicy placement = PlacementPolicy::kRoundRobin;
    // How long one exchange with a server may take.
    absl::Duration timeout = absl::Seconds(60);
    // How long to retry if a server cannot be reached.
    absl::Duration retry_for = absl::Seconds(2);
    // True if tensors may go through shared memory to servers of this host.
    bool shared_memory = true;
    // Limit on the shared memory; 0 stands for a quarter of the memory of the
    // machine. Tensors that do not fit are sent over gRPC.
    size_t shared_memory_bytes_max = 0;
    // The generation of exchanges. A server rejects exchanges of another
    // generation. Each rollback increases it.
    uint64_t generation = 0;
    // In synchronous training: as SetOptimizerRequest, for all optimizers.
    int64_t gradients_per_step = 1;
    // As RemoteVariableSession. Borrowed.
    UpdateGate* update_gate = nullptr;
  };

  // Requests the identity and the shards of each server. `network` is borrowed.
  //   kInvalidArgument  no tasks are given, their number is no multiple of
  //                     copy_count, or serving_tasks does not fit them
  static absl::StatusOr<std::unique_ptr<RemoteVariableStore>> Open(
      Network* network, Options options);

  ~RemoteVariableStore() override;

  absl::Status Create(const proto::VariableSpec& spec) override;
  absl::Status StartOver(const proto::VariableSpec& spec) override;
  std::vector<proto::VariableSpec> List() const override;
  absl::StatusOr<Tensor> Read(absl::string_view name) override;
  absl::Status Assign(absl::string_view name, const Tensor& value) override;
  //   kUnimplemented  the optimizer needs whole variables, and one is
  //                   partitioned; or a slot has another shape than its
  //                   variable
  absl::Status SetOptimizer(const Optimizer& optimizer) override;
  absl::Status SetOptimizerOf(absl::Span<const std::string> variables,
                              const Optimizer& optimizer) override;
  absl::Status AssignAverages() override;
  absl::StatusOr<std::vector<int64_t>> UpdateCounts(
      absl::Span<const std::string> names) override;
  // Every server saves and restores its own shards, all servers at the same
  // time. Each server must see the same folder at `prefix` as this process.
  int checkpoint_shard_count() const override;
  //   kFailedPrecondition  this process does not see the files of a server
  //   kPermissionDenied    a server may not write there
  absl::Status SaveShards(absl::string_view prefix, int shard_count) override;
  absl::Status Restore(absl::string_view prefix, bool values_only) override;
  // Sessions must not outlive the store.
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenSession(
      absl::Span<const VariableUse> uses) override;
  // Null: the variables are on the hosts of the servers.
  absl::StatusOr<std::unique_ptr<VariableSession>> OpenDeviceSession(
      absl::Span<const VariableUse>, Device*, DeviceStream*) override {
    return nullptr;
  }

  // Each server creates its part of the snapshot between two exchanges.
  absl::StatusOr<std::unique_ptr<VariableSnapshot>> TakeSnapshot() override;

  // As TakeSnapshot(), with an id that the caller chooses: random, not 0.
  absl::StatusOr<FrozenSnapshot> Freeze(uint64_t snapshot_id);
  // Asks the servers whether they may write to `prefix`. Writes nothing.
  //   kPermissionDenied  `prefix` is outside of the folders of a server; the
  //                      message names both
  //   kInvalidArgument   `prefix` is not a valid prefix of a checkpoint
  //   kUnavailable       a server was lost; the message names it
  absl::Status CheckCanSave(absl::string_view prefix);
  // Writes a snapshot to files. A snapshot can be saved once.
  absl::Status SaveFrozen(absl::string_view prefix, int shard_count,
                          const FrozenSnapshot& snapshot);

  // ---- After the loss of servers. Until recovery ends the store must not be
  // used; exchanges that still run fail.

  // The index of a server that was lost, and the process that replaces it, as
  // the task with this index.
  struct ReplacedServer {
    int server = 0;
    int task = 0;
    uint64_t incarnation = 0;
    uint64_t state_id = 0;
  };
  // Connects to the replacements, begins a new generation on all servers and
  // creates the shards of the replacements again. Their values are zero until
  // Restore(). If `starts_over`, all variables of all servers get their initial
  // values instead.
  absl::Status RecoverServers(absl::Span<const ReplacedServer> returned,
                              uint64_t generation, uint64_t low_water_mark,
                              bool starts_over);

  // Addresses further requests to a process that has the state of its
  // predecessor. A request that still goes to the predecessor does the same.
  void NoteRestored(const ReplacedServer& server);

  // Discards the cached values of all variables.
  void ForgetValues();

  // Records that steps up to `step_id` have been scheduled. Steps are scheduled
  // in the order of their ids.
  void NoteScheduled(uint64_t step_id);

  // Records that every step with a lower id has finished and will not run
  // again. The next exchange sends the mark to the servers, which may then
  // delete their records of those steps.
  void SetLowWaterMark(uint64_t step_id);

  // Calls `on_lost` once for each server whose connection breaks, on a thread
  // of the transport. `on_lost` must not destroy the store. If
  // `as_coordinator`, the servers report the coordinator as lost when the
  // connection to this process breaks. Returns when the servers have registered
  // the watch. Call it at most once.
  void Watch(bool as_coordinator,
             std::function<void(int server, const absl::Status&)> on_lost);

  // Tells every server that the job has ended and with which code to exit.
  // Contacts all servers, then returns the first error.
  absl::Status ShutdownServers(int exit_code);

 private:
  RemoteVariableStore(Network* network, Options options);

  const std::unique_ptr<ServerGroup> servers_;
  const std::unique_ptr<VariableDirectory> directory_;
  const std::unique_ptr<StepMarks> marks_;
  const int64_t gradients_per_step_;
  UpdateGate* const update_gate_;
  const std::shared_ptr<DroppedSnapshots> dropped_snapshots_ =
      std::make_shared<DroppedSnapshots>();

  // Sends a request and keeps it for RecoverServers(). If the servers have
  // carried out the same request, sends nothing: a server may be lost at
  // present, and RecoverServers() sends the request to its replacement.
  absl::Status SetOptimizer(proto::SetOptimizerRequest request)
      ABSL_LOCKS_EXCLUDED(set_optimizer_mutex_, optimizer_mutex_);

  bool HasOptimizer(const proto::SetOptimizerRequest& request)
      ABSL_LOCKS_EXCLUDED(optimizer_mutex_);

  // Held while `optimizers_` may have a request that the servers refuse.
  // Acquired before optimizer_mutex_.
  absl::Mutex set_optimizer_mutex_;
  absl::Mutex optimizer_mutex_;
  OptimizerRequests optimizers_ ABSL_GUARDED_BY(optimizer_mutex_);
};

}  // namespace muster

#endif  // PS_CLIENT_REMOTE_VARIABLE_STORE_H_
