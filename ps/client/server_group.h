#ifndef PS_CLIENT_SERVER_GROUP_H_
#define PS_CLIENT_SERVER_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/network.h"
#include "common/tensor/tensor.h"
#include "proto/optimizer.pb.h"
#include "proto/parameter_server.pb.h"
#include "ps/client/lane.h"

namespace muster {

// One message to one server, and what came back.
struct ServerExchange {
  int server = 0;
  proto::ExchangeRequest request;
  std::vector<Tensor> tensors;
  size_t size_bytes = 0;  // Of the tensors, and of the values pulled.

  proto::ExchangeResponse response;
  std::optional<ReceivedMessage> received;

  bool IsEmpty() const {
    return request.update_handles().empty() &&
           request.gather_handles().empty() && request.pull_handles().empty();
  }
  // Whether the server would notice that it has had this one before, or does
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
  };

  // `network` is borrowed.
  ServerGroup(Network* network, const Options& options);
  // Ends the watches.
  ~ServerGroup();

  int size() const { return static_cast<int>(servers_.size()); }

  // Asks every server who it is and what it holds. From the first answer on, a
  // server is addressed by that incarnation only.
  absl::StatusOr<std::vector<proto::DescribeResponse>> Describe();

  // All servers at the same time, and to each what is for it in order, a few
  // on the way at once, so that one's answer meets the next one's question. A
  // server may apply those on the way in any order. The first of several errors
  // is returned; the other exchanges took place.
  absl::Status Exchange(std::vector<ServerExchange>* exchanges);

  // Each `specs[i]` on server `servers[i]`; returns their handles.
  absl::StatusOr<std::vector<uint32_t>> Create(
      const std::vector<proto::ShardSpec>& specs,
      const std::vector<int>& servers);

  absl::Status SetOptimizer(const proto::Optimizer& optimizer);

  // Tells every server to end with `exit_code`. Tries all, and returns the
  // first error.
  absl::Status Shutdown(int exit_code);

  // Calls `on_lost` once for each server whose connection breaks, on a thread
  // of the transport. Servers take the one who watches as coordinator for
  // lost when it is.
  // Returns when the servers know. Once.
  void Watch(bool as_coordinator,
             std::function<void(int server, const absl::Status&)> on_lost);

  std::vector<uint64_t> incarnations() const;

 private:
  class Watcher;

  // Starts every call by start(call, done), and again those that failed as
  // unreachable and may be repeated, until they succeed or `retry_for` is over.
  absl::Status RunAll(
      int call_count,
      absl::FunctionRef<void(int call, Channel::Done done)> start,
      absl::FunctionRef<absl::Status(int call, ReceivedMessage)> finish,
      absl::FunctionRef<bool(int call)> is_repeatable);

  template <typename Response>
  absl::StatusOr<std::vector<Response>> AskAll(
      absl::string_view method, const std::vector<int>& servers,
      const std::vector<std::string>& bodies);

  const absl::Duration timeout_;
  const absl::Duration retry_for_;
  std::vector<std::unique_ptr<Channel>> servers_;  // Bulk.
  std::vector<std::unique_ptr<Lane>> lanes_;
  // Watches share no connection with bulk, so that they are heard at once.
  std::vector<std::unique_ptr<Channel>> watch_channels_;
  std::vector<std::shared_ptr<Watcher>> watchers_;
};

}  // namespace muster

#endif  // PS_CLIENT_SERVER_GROUP_H_
