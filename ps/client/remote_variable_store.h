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
#include "ps/client/partitioner.h"
#include "ps/client/placement.h"

namespace muster {

class ServerGroup;
class VariableDirectory;
struct StepMarks;
namespace proto {
class SetOptimizerRequest;
class VariableSpec;
}  // namespace proto

// The variables of a job, on its parameter servers.
//
// Every process of a job opens its own store over the same servers. Variables
// are created by one of them, the coordinator; the others find what exists
// (OpenSession() and Read() ask the servers for names not seen before). All
// work out the same sharding and placement from what the servers say they hold.
//
// A step talks to each server once: its updates go out with Commit(), and the
// answer brings the values that the next step reads, as far as they changed.
// Servers are talked to at the same time. Over gRPC tensors go out from the
// caller's memory and are not copied on the way. Between processes of one host
// they go through shared memory, where both ends allow it, and values that are
// read lie in it; a step cannot tell.
//
// Staleness: values that came with the last Commit() serve the next step only
// if that step was scheduled before they were asked for, so that a step always
// sees what had been applied when it was scheduled. NoteScheduled() is how the
// store knows; without it every step asks again.
//
// Errors carry a TaskFailure naming the server and its incarnation.
//   kUnavailable         a server cannot be reached
//   kFailedPrecondition  a server was restarted: what it held is gone; or
//                        training was rolled back after this store was opened
//
// Thread-safe; sessions are not.
class RemoteVariableStore final : public VariableStore {
 public:
  struct Options {
    // The servers, by index. Each channel leads to the server of that index.
    std::vector<ChannelOptions> servers;
    // Null does not shard.
    std::shared_ptr<const Partitioner> partitioner;
    PlacementPolicy placement = PlacementPolicy::kRoundRobin;
    // How long one exchange with a server may take.
    absl::Duration timeout = absl::Seconds(60);
    // How long a server that cannot be reached is tried again.
    absl::Duration retry_for = absl::Seconds(2);
    // True if tensors may go through shared memory to servers of this host.
    bool shared_memory = true;
    // How much of it there may be; 0 for a quarter of the machine's. What does
    // not fit goes beside messages.
    size_t shared_memory_bytes_max = 0;
    // The generation of exchanges; servers refuse those of another generation
    // than theirs. Rises when training is rolled back.
    uint64_t generation = 0;
  };

  // Learns the servers' identities and what they hold. `network` is borrowed.
  //   kInvalidArgument  no servers are given
  static absl::StatusOr<std::unique_ptr<RemoteVariableStore>> Open(
      Network* network, Options options);

  ~RemoteVariableStore() override;

  absl::Status Create(const proto::VariableSpec& spec) override;
  absl::Status StartOver(const proto::VariableSpec& spec) override;
  std::vector<proto::VariableSpec> List() const override;
  absl::StatusOr<Tensor> Read(absl::string_view name) override;
  absl::Status Assign(absl::string_view name, const Tensor& value) override;
  //   kUnimplemented  the rule needs whole variables, of which servers update
  //                   parts
  absl::Status SetOptimizer(const Optimizer& optimizer) override;
  absl::Status SetOptimizerOf(absl::Span<const std::string> variables,
                              const Optimizer& optimizer) override;
  absl::Status AssignAverages() override;
  absl::StatusOr<std::vector<int64_t>> UpdateCounts(
      absl::Span<const std::string> names) override;
  // Every server saves and restores its own part, all at the same time. Each
  // must see the folder of `prefix` as this process does.
  int checkpoint_shard_count() const override;
  //   kFailedPrecondition  a server wrote where this process does not see it
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

  // Each server freezes its state between two exchanges.
  absl::StatusOr<std::unique_ptr<VariableSnapshot>> TakeSnapshot() override;

  // TakeSnapshot() under a name of the caller's: random, not 0.
  absl::StatusOr<FrozenSnapshot> Freeze(uint64_t snapshot_id);
  // Asks the servers whether they may write to `prefix`. Writes nothing.
  //   kPermissionDenied  it is outside of a server's folders; names both
  //   kInvalidArgument   it is no prefix of a checkpoint
  //   kUnavailable       a server was lost; names it
  absl::Status CheckCanSave(absl::string_view prefix);
  // Once for each snapshot.
  absl::Status SaveFrozen(absl::string_view prefix, int shard_count,
                          const FrozenSnapshot& snapshot);

  // ---- After the loss of servers. The store is not used meanwhile, except
  // that exchanges may come and fail.

  // Servers that were lost, and the processes that are in their places now.
  struct ReturnedServer {
    int server = 0;
    uint64_t incarnation = 0;
  };
  // Speaks to these, begins a generation on all servers, and makes the shards
  // on the new ones again. Those are zero until Restore(), or, with
  // `starts_over`, all variables of all servers take their first values.
  absl::Status BringBack(absl::Span<const ReturnedServer> returned,
                         uint64_t generation, uint64_t low_water_mark,
                         bool starts_over);

  // Discards all values that are held.
  void ForgetValues();

  // Steps up to `step_id` have been scheduled. Ids rise in the order of
  // scheduling.
  void NoteScheduled(uint64_t step_id);

  // Every step with a lower id has finished for good; servers may forget what
  // they remember of them. Sent along with the next exchange.
  void SetLowWaterMark(uint64_t step_id);

  // Calls `on_lost` once for each server whose connection breaks, on a thread
  // of the transport; the callee must not destroy the store. Servers take the
  // one who watches as coordinator for lost when it is.
  // Returns when the servers know. Once.
  void Watch(bool as_coordinator,
             std::function<void(int server, const absl::Status&)> on_lost);

  // Tells every server that the job is over and what to exit with. Tries all,
  // and returns the first error.
  absl::Status ShutdownServers(int exit_code);

 private:
  RemoteVariableStore(Network* network, Options options);

  const std::unique_ptr<ServerGroup> servers_;
  const std::unique_ptr<VariableDirectory> directory_;
  const std::unique_ptr<StepMarks> marks_;
  const std::shared_ptr<DroppedSnapshots> dropped_snapshots_ =
      std::make_shared<DroppedSnapshots>();

  // Sends a request and keeps it for BringBack(). Sends nothing if servers have
  // carried it out already: one may be lost, and BringBack() tells the next.
  absl::Status SetOptimizer(proto::SetOptimizerRequest request)
      ABSL_LOCKS_EXCLUDED(optimizer_mutex_);

  bool HasOptimizer(const proto::SetOptimizerRequest& request)
      ABSL_LOCKS_EXCLUDED(optimizer_mutex_);

  absl::Mutex optimizer_mutex_;
  // In the order in which servers carried them out, without what later ones
  // replaced.
  std::vector<proto::SetOptimizerRequest> optimizers_
      ABSL_GUARDED_BY(optimizer_mutex_);
};

}  // namespace muster

#endif  // PS_CLIENT_REMOTE_VARIABLE_STORE_H_
