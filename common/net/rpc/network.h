#ifndef COMMON_NET_RPC_NETWORK_H_
#define COMMON_NET_RPC_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/rpc/channel.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/service.h"

namespace muster {

struct ServerOptions {
  // "host:port"; port 0 takes a free one.
  std::string address;
  // Larger requests are refused before they are read.
  size_t message_bytes_max = size_t{1} << 31;
  // Measures bandwidth and delay with a ping beside received data, and adapts
  // flow control. For bulk: on a stream of short messages the pings cost more
  // than they gain.
  bool probes_bandwidth = false;
  // As for a channel, of clients.
  absl::Duration keepalive = absl::Seconds(10);
};

// Answers requests from construction until Shutdown(). Thread-safe.
class Server {
 public:
  virtual ~Server() = default;  // Shuts down at once.

  // Where it listens, with the port that was taken.
  virtual std::string address() const = 0;

  // Takes no new requests, gives those under way until `grace` has passed, and
  // then cancels them. Returns when no handler runs any more.
  virtual void Shutdown(absl::Duration grace) = 0;
};

// Which task a channel leads to, and which task calls.
struct ChannelOptions {
  std::string address;  // "host:port"
  std::string peer_task_type;
  int peer_task_index = 0;
  TaskIdentity caller;
  std::string job_id;
  // 0: whichever process answers.
  uint64_t target_incarnation = 0;
  // Larger answers are refused.
  size_t message_bytes_max = size_t{1} << 31;
  // As for a server.
  bool probes_bandwidth = false;
  // A peer that says nothing for this long is asked whether it still lives, and
  // given up when it does not answer for as long again. So is one whose host
  // does not acknowledge what is sent for this long.
  absl::Duration keepalive = absl::Seconds(10);
};

// How tasks reach each other: over gRPC, with TLS or without. Thread-safe.
class Network {
 public:
  virtual ~Network() = default;

  // `service` and `admission_check` are borrowed and outlive the server.
  //   kInvalidArgument  the address is invalid
  //   kUnavailable      the address is taken, or not this machine's
  virtual absl::StatusOr<std::unique_ptr<Server>> Listen(
      const ServerOptions& options, const Service* service,
      const AdmissionCheck* admission_check) = 0;

  // Never fails and does not wait: a channel connects when first used, and
  // again whenever the connection was lost. Every channel is a connection of
  // its own, so that bulk on one does not hold up control on another.
  virtual std::unique_ptr<Channel> Connect(const ChannelOptions& options) = 0;

  // Lives as long as the process.
  static Network* Grpc();
};

}  // namespace muster

#endif  // COMMON_NET_RPC_NETWORK_H_
