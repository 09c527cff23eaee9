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
  // "host:port". Port 0 selects a free port.
  std::string address;
  // Larger requests are refused before they are read.
  size_t message_bytes_max = size_t{1} << 31;
  // Measures bandwidth and delay with pings while data is received, and adapts
  // flow control. For bulk data: with short messages the pings cost more than
  // they gain.
  bool probes_bandwidth = false;
  // As ChannelOptions::keepalive, for the server's clients.
  absl::Duration keepalive = absl::Seconds(10);
};

// Answers requests from construction until Shutdown(). Thread-safe.
class Server {
 public:
  virtual ~Server() = default;  // Shuts down at once.

  // Returns the address where the server listens, with its actual port.
  virtual std::string address() const = 0;

  // Accepts no new requests, and cancels those in progress that have not ended
  // after `grace`. Returns when no handler runs any more.
  virtual void Shutdown(absl::Duration grace) = 0;
};

// Which task a channel leads to, and which task calls.
struct ChannelOptions {
  std::string address;  // "host:port"
  std::string peer_task_type;
  int peer_task_index = 0;
  TaskIdentity caller;
  std::string job_id;
  // As RequestIdentity::coordinator_epoch.
  uint64_t coordinator_epoch = 0;
  // The process that requests are meant for; 0 for any process of the task.
  uint64_t target_incarnation = 0;
  // Larger responses are refused.
  size_t message_bytes_max = size_t{1} << 31;
  // As ServerOptions::probes_bandwidth.
  bool probes_bandwidth = false;
  // If the peer sends nothing for this long, it gets a keepalive ping. If it
  // does not answer the ping for as long again, the connection is closed. The
  // connection is also closed if the peer's host does not acknowledge sent data
  // for this long.
  absl::Duration keepalive = absl::Seconds(10);
};

// Creates the servers and channels by which tasks reach each other: over gRPC,
// with TLS or without. Thread-safe.
class Network {
 public:
  virtual ~Network() = default;

  // `service` and `admission_check` are borrowed and outlive the server.
  //   kInvalidArgument  the address is invalid
  //   kUnavailable      the address is taken, or not this machine's
  virtual absl::StatusOr<std::unique_ptr<Server>> Listen(
      const ServerOptions& options, const Service* service,
      AdmissionCheck* admission_check) = 0;

  // Never fails and does not block: a channel connects when it is first used,
  // and again whenever the connection is lost. Each channel has a separate
  // connection, so that bulk data on one does not delay control messages on
  // another.
  virtual std::unique_ptr<Channel> Connect(const ChannelOptions& options) = 0;

  // Returns a network without TLS. It lives as long as the process.
  static Network* Grpc();
};

}  // namespace muster

#endif  // COMMON_NET_RPC_NETWORK_H_
