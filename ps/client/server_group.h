#ifndef PS_CLIENT_SERVER_GROUP_H_
#define PS_CLIENT_SERVER_GROUP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/core/system/metrics.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/network.h"
#include "proto/parameter_server.pb.h"
#include "ps/client/segment_offer.h"
#include "ps/client/server_channel.h"
#include "ps/client/server_transport.h"

namespace muster {

// One request to one server, and its response.
struct ServerExchange {
  int server = 0;
  proto::ExchangeRequest request;
  std::vector<Tensor> tensors;
  std::vector<AnswerSlot> slots;  // For gathers, then for pulls.
  size_t size_bytes = 0;          // Bytes of the tensors and of the pulled
                                  // values.

  ExchangeAnswer answer;
  // The number of attempts. After several attempts the server may still be
  // processing any but the last.
  int attempt_count = 0;

  bool IsEmpty() const {
    return request.update_handles().empty() &&
           request.gather_handles().empty() && request.pull_handles().empty();
  }
  // True if the request can be sent again: the server detects a repetition, or
  // the request changes nothing.
  bool IsRepeatable() const {
    return request.step_id() != 0 || request.update_handles().empty();
  }
};

// The parameter servers of a job. Each has its own connection.
//
// While a server cannot be reached, repeatable requests are retried for
// `retry_for`. A server that was restarted in the meantime rejects them. If it
// has restored its state, or another task has taken over with it, they are then
// addressed to that process; otherwise they are not retried.
//
// Thread-safe. Calls block, so they must not run on threads of the transport.
class ServerGroup {
 public:
  struct Options {
    // The tasks, by index.
    std::vector<ChannelOptions> tasks;
    // Number of tasks that have the state of each server or a copy. With N
    // servers, those of server i are the tasks i, i + N, and so on.
    int copy_count = 1;
    // By server: the index of the task that serves it. Empty for tasks 0 to
    // N - 1.
    std::vector<int> serving_tasks;
    absl::Duration timeout;  // Timeout of one call.
    absl::Duration retry_for;
    // Timeout of a call that writes or reads a checkpoint.
    absl::Duration checkpoint_timeout = absl::Minutes(30);
    // Size of the memory that may be shared with servers of this host; 0 for
    // none.
    size_t segment_bytes = 0;
  };

  // `network` is borrowed.
  ServerGroup(Network* network, const Options& options);
  // Ends the watches.
  ~ServerGroup();

  int size() const { return static_cast<int>(servers_.size()); }

  // Requests the identity and the shards of every server. After its first
  // response, a server is addressed by the incarnation in that response.
  absl::StatusOr<std::vector<proto::DescribeResponse>> Describe();

  // Offers shared memory to the servers of this host and logs which servers
  // accept it. Call it once, after Describe(). A failure is no error: tensors
  // are then sent over gRPC.
  void ShareMemory();

  // Returns memory that servers can read and write; null if there is none.
  std::shared_ptr<Buffer> AllocateShared(size_t size_bytes);
  // True if `data` is in such memory.
  bool IsShared(const void* data) const;
  // Returns a tensor in such memory if possible, otherwise in ordinary memory.
  Tensor AllocateTensor(DType dtype, const Shape& shape);

  // Sends all exchanges, to all servers at the same time. The exchanges with
  // one server start in order, a few at a time, so that responses overlap with
  // the next requests; the server may apply concurrent ones in any order.
  // Returns the first error; the other exchanges have taken place.
  absl::Status Exchange(std::vector<ServerExchange>* exchanges);

  // Sends each of `requests` to its server and returns the handles.
  absl::StatusOr<std::vector<uint32_t>> Create(
      const std::vector<proto::CreateRequest>& requests,
      const std::vector<int>& servers);

  absl::Status SetOptimizer(const proto::SetOptimizerRequest& request);
  absl::Status AssignAverages();

  // ---- Checkpoints and recovery. Each call goes to all servers at the same
  // time; see the messages in proto/parameter_server.proto. Prefixes are
  // absolute.

  absl::StatusOr<std::vector<proto::FreezeResponse>> Freeze(
      uint64_t snapshot_id, absl::Span<const uint64_t> dropped_snapshot_ids);

  // Server i writes shard i of `shard_count`.
  //   kFailedPrecondition  this process does not see the files of a server
  absl::Status Save(absl::string_view prefix, int shard_count,
                    uint64_t snapshot_id);
  // Asks the servers whether they may write to this prefix.
  absl::Status CheckCanSave(absl::string_view prefix);

  absl::Status Restore(absl::string_view prefix, bool values_only,
                       bool only_verifies);

  // Begins a generation on all servers. Later exchanges carry it.
  absl::Status RollBack(uint64_t generation, uint64_t low_water_mark);
  void SetGeneration(uint64_t generation) { generation_.store(generation); }
  uint64_t generation() const { return generation_.load(); }

  // Sets the process that now serves this server, as the task with this index,
  // and the state that it has.
  void SetProcess(int server, int task, uint64_t incarnation,
                  uint64_t state_id);

  // Tells every server to exit with `exit_code`. Contacts all servers, then
  // returns the first error.
  absl::Status Shutdown(int exit_code);

  // Calls `on_lost` once for each server whose connection breaks, on a thread
  // of the transport. If `as_coordinator`, the servers report the coordinator
  // as lost when the connection to this process breaks. Returns when the
  // servers have registered the watch. Call it at most once.
  void Watch(bool as_coordinator,
             std::function<void(int server, const absl::Status&)> on_lost);

 private:
  class Watcher;

  using CallDone = absl::AnyInvocable<void(absl::Status)>;

  // Starts every call with start(call, attempt, done). Repeats those that fail
  // because the server cannot be reached and that are repeatable, until they
  // succeed or `retry_for` has passed. Attempts count from 1. Logs a long wait
  // with `what` and the servers that have not answered.
  absl::Status RunAll(
      absl::string_view what, int call_count,
      absl::FunctionRef<int(int call)> server_of,
      absl::FunctionRef<void(int call, int attempt, CallDone done)> start,
      absl::FunctionRef<bool(int call)> is_repeatable);

  // `is_repeatable` as for RunAll(); by position in `servers`.
  template <typename Response>
  absl::StatusOr<std::vector<Response>> AskAll(
      absl::string_view method, const std::vector<int>& servers,
      const std::vector<std::string>& bodies, absl::Duration timeout,
      absl::FunctionRef<bool(int call)> is_repeatable = [](int) {
        return true;
      });
  // Sends the same request to every server.
  template <typename Response, typename Request>
  absl::StatusOr<std::vector<Response>> AskEach(absl::string_view method,
                                                const Request& request,
                                                absl::Duration timeout);

  // Addresses further requests to the process that now serves this server, if
  // it has the state of the process before. Blocks.
  //   kFailedPrecondition  it has another state
  //   others               no process with this state answers and serves
  absl::Status Follow(int server) ABSL_LOCKS_EXCLUDED(follow_mutex_);
  // As above, for one of the server's tasks. Returns its incarnation.
  absl::StatusOr<uint64_t> AskWhetherServing(int server, int task)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(follow_mutex_);

  // Follow(), until a task serves or the job has no variables.
  absl::Status AwaitServing(int server) ABSL_LOCKS_EXCLUDED(follow_mutex_);

  // Blocks while the server cannot be reached. Returns true if another process
  // runs as this server and has its state.
  bool AwaitRestart(int server) ABSL_LOCKS_EXCLUDED(follow_mutex_);

  const absl::Duration timeout_;
  const absl::Duration retry_for_;
  const absl::Duration checkpoint_timeout_;
  std::atomic<uint64_t> generation_{0};
  const size_t segment_bytes_;
  const std::string job_id_;
  std::vector<std::unique_ptr<ServerChannel>> servers_;  // For bulk data.
  std::unique_ptr<SegmentOffer> offer_;                  // Null without shared
                                                         // memory.
  std::vector<std::unique_ptr<ServerTransport>> transports_;
  // Round-trip times by server, of exchanges that only read and of those that
  // update.
  std::vector<DurationMetric*> pull_seconds_;
  std::vector<DurationMetric*> push_seconds_;
  // Watches have separate connections, so that bulk data does not delay them.
  std::vector<std::unique_ptr<ServerChannel>> watch_channels_;
  std::vector<std::shared_ptr<Watcher>> watchers_;

  // Held while one caller asks a server which state it has.
  absl::Mutex follow_mutex_;
  // By server; 0 before Describe().
  std::vector<uint64_t> state_ids_ ABSL_GUARDED_BY(follow_mutex_);
};

}  // namespace muster

#endif  // PS_CLIENT_SERVER_GROUP_H_
