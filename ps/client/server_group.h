#ifndef PS_CLIENT_SERVER_GROUP_H_
#define PS_CLIENT_SERVER_GROUP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/compute/optimizers/optimizer.h"
#include "common/core/system/metrics.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/network.h"
#include "proto/parameter_server.pb.h"
#include "ps/client/segment_offer.h"
#include "ps/client/server_transport.h"

namespace muster {

// One message to one server, and what came back.
struct ServerExchange {
  int server = 0;
  proto::ExchangeRequest request;
  std::vector<Tensor> tensors;
  std::vector<AnswerSlot> slots;  // For gathers, then for pulls.
  size_t size_bytes = 0;          // Of the tensors, and of the values pulled.

  ExchangeAnswer answer;
  // How often it was sent. A server may be at work on all but the last yet.
  int attempt_count = 0;

  bool IsEmpty() const {
    return request.update_handles().empty() &&
           request.gather_handles().empty() && request.pull_handles().empty();
  }
  // True if the server would notice that it has had this one before, or does
  // not mind.
  bool IsRepeatable() const {
    return request.step_id() != 0 || request.update_handles().empty();
  }
};

// The parameter servers of a job, each reached over a connection of its own.
//
// Requests that can be repeated are, while a server cannot be reached, for
// `retry_for`; a server that was restarted in the meantime is not asked again.
//
// Thread-safe. Calls wait, so they are not for the transport's threads.
class ServerGroup {
 public:
  struct Options {
    std::vector<ChannelOptions> servers;  // By index.
    absl::Duration timeout;               // Of one call.
    absl::Duration retry_for;
    // Of a call that writes or reads a checkpoint.
    absl::Duration checkpoint_timeout = absl::Minutes(30);
    // The memory that may be shared with servers of this host; 0 for none.
    size_t segment_bytes = 0;
  };

  // `network` is borrowed.
  ServerGroup(Network* network, const Options& options);
  // Ends the watches.
  ~ServerGroup();

  int size() const { return static_cast<int>(servers_.size()); }

  // Asks every server for its identity and what it holds. From the first answer
  // on, a server is addressed by that incarnation only.
  absl::StatusOr<std::vector<proto::DescribeResponse>> Describe();

  // Offers servers of this host memory for what is exchanged with them, and
  // says in the log which servers take it. Once, after Describe(). No failure
  // matters: tensors then go beside messages.
  void ShareMemory();

  // Memory in which servers can read and write; null where there is none.
  std::shared_ptr<Buffer> AllocateShared(size_t size_bytes);
  // True if `data` lies in such memory.
  bool IsShared(const void* data) const;
  // A tensor in such memory where there is some, else in any.
  Tensor AllocateTensor(DType dtype, const Shape& shape);

  // All servers at the same time, and to each what is for it in order, a few
  // on the way at once, so that replies overlap with the next requests. A
  // server may apply those on the way in any order. The first of several errors
  // is returned; the other exchanges took place.
  absl::Status Exchange(std::vector<ServerExchange>* exchanges);

  // Each of `requests` on its server; returns their handles.
  absl::StatusOr<std::vector<uint32_t>> Create(
      const std::vector<proto::CreateRequest>& requests,
      const std::vector<int>& servers);

  absl::Status SetOptimizer(const proto::SetOptimizerRequest& request);
  absl::Status AssignAverages();

  // ---- Checkpoints and what follows a loss, of all servers at the same time;
  // see the messages in proto/parameter_server.proto. Prefixes are absolute.

  absl::StatusOr<std::vector<proto::FreezeResponse>> Freeze(
      uint64_t snapshot_id, absl::Span<const uint64_t> dropped_snapshot_ids);

  // Server i writes shard i of `shard_count`.
  //   kFailedPrecondition  a server wrote where this process does not see it
  absl::Status Save(absl::string_view prefix, int shard_count,
                    uint64_t snapshot_id);
  // Whether the servers write to this prefix at all.
  absl::Status CheckCanSave(absl::string_view prefix);

  absl::Status Restore(absl::string_view prefix, bool values_only,
                       bool only_verifies);

  // Exchanges say this generation from now on.
  absl::Status RollBack(uint64_t generation, uint64_t low_water_mark);
  void SetGeneration(uint64_t generation) { generation_.store(generation); }
  uint64_t generation() const { return generation_.load(); }

  // From now on the server of this index is this process.
  void SetIncarnation(int server, uint64_t incarnation);

  // Tells every server to end with `exit_code`. Tries all, and returns the
  // first error.
  absl::Status Shutdown(int exit_code);

  // Calls `on_lost` once for each server whose connection breaks, on a thread
  // of the transport. Servers take the one who watches as coordinator for
  // lost when it is.
  // Returns when the servers know. Once.
  void Watch(bool as_coordinator,
             std::function<void(int server, const absl::Status&)> on_lost);

 private:
  class Watcher;

  using CallDone = absl::AnyInvocable<void(absl::Status)>;

  // Starts every call by start(call, attempt, done), and again those that
  // failed as unreachable and may be repeated, until they succeed or
  // `retry_for` is over. Attempts count from 1. Logs a long wait with `what`
  // and the servers that it is for.
  absl::Status RunAll(
      absl::string_view what, int call_count,
      absl::FunctionRef<int(int call)> server_of,
      absl::FunctionRef<void(int call, int attempt, CallDone done)> start,
      absl::FunctionRef<bool(int call)> is_repeatable);

  struct AskOptions {
    absl::Duration timeout;
    bool is_repeatable = true;
  };
  template <typename Response>
  absl::StatusOr<std::vector<Response>> AskAll(
      absl::string_view method, const std::vector<int>& servers,
      const std::vector<std::string>& bodies, const AskOptions& options);
  // The same question to every server.
  template <typename Response, typename Request>
  absl::StatusOr<std::vector<Response>> AskEach(absl::string_view method,
                                                const Request& request,
                                                absl::Duration timeout);

  const absl::Duration timeout_;
  const absl::Duration retry_for_;
  const absl::Duration checkpoint_timeout_;
  std::atomic<uint64_t> generation_{0};
  const size_t segment_bytes_;
  std::vector<std::unique_ptr<Channel>> servers_;  // Bulk.
  std::unique_ptr<SegmentOffer> offer_;            // Null until there is one.
  std::vector<std::unique_ptr<ServerTransport>> transports_;
  // Of exchanges, by server: those that only read, and those that update.
  std::vector<DurationMetric*> pull_seconds_;
  std::vector<DurationMetric*> push_seconds_;
  // Watches share no connection with bulk, so that they are heard at once.
  std::vector<std::unique_ptr<Channel>> watch_channels_;
  std::vector<std::shared_ptr<Watcher>> watchers_;
};

}  // namespace muster

#endif  // PS_CLIENT_SERVER_GROUP_H_
