#ifndef COMMON_NET_COLLECTIVES_TRANSPORTS_TRANSPORT_H_
#define COMMON_NET_COLLECTIVES_TRANSPORTS_TRANSPORT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/net/collectives/communication_implementation.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/lane.h"
#include "common/net/collectives/transports/group_plan.h"
#include "common/net/rpc/identity.h"

namespace muster {

class Device;
class Network;
class RpcLaneAcceptor;
namespace nccl {
struct Api;
}  // namespace nccl
namespace proto {
class ReplicaEndpoint;
class TransportOffer;
}  // namespace proto

// A transport transfers the bytes of a synchronous group. A group uses one
// transport, which its leader chooses. The tasks then connect in two steps,
// between which they exchange descriptions of their endpoints:
//
//   each task     Offer()    writes what it can use into its hello
//   leader        Fit()      whether a transport can serve the ranks, and why
//                            or why not
//   each replica  Prepare()  opens an endpoint: addresses, tokens, ids
//   each replica  Connect()  gets everyone's endpoints, returns a Communicator
//
// kTransports (transports.h) lists all of them, best first. docs/extending.md
// says how to add one.

// The resources that the transports of a task may use.
struct TransportSettings {
  // Tasks with the same host name can share memory. Empty: this machine's.
  std::string host;
  bool shared_memory = true;
  bool raw_sockets = true;
  // Raw sockets to other hosts use TLS 1.3. The key is sent over the network of
  // the tasks, which must itself be encrypted.
  bool encrypts_raw_sockets = false;
  // The port on which the task's first replica listens for raw sockets. The
  // next replicas use the following ports. 0: any free ports.
  int lane_port = 0;
  // Connections to ranks on other hosts tolerate silence for at least this
  // long. The group detects a lost rank earlier. At most a day.
  absl::Duration silence_timeout = kLaneSilenceTimeout;
  // The GPUs of the replicas, in order. Null, or left out at the end, for
  // replicas on CPUs. Borrowed; must outlive the communicators.
  std::vector<Device*> devices = {};
  // Null: libnccl.so.2 of this machine, if a replica has a GPU.
  const nccl::Api* nccl = nullptr;
};

// The offer of a rank's task. `offer` is borrowed.
struct RankOffer {
  int rank = 0;
  const proto::TransportOffer* offer = nullptr;
  int replica = 0;  // Index of the rank's replica within its task.
};

// Whether a transport can serve given ranks. In both cases, `reason` is a
// clause that completes "AUTO chose NAME because ..." or "NAME was left out:
// ...".
struct TransportFit {
  bool fits = false;
  std::string reason;
};

// The objects of a task that its transports use. Pointers are borrowed and must
// outlive the communicators.
struct TransportContext {
  TaskIdentity self;
  Network* network = nullptr;
  // Accepts the lanes that others open at this task's server.
  RpcLaneAcceptor* rpc_lanes = nullptr;
  TransportSettings settings = {};
};

// The ranks to be connected and the one among them, `self`, that connects. They
// are all ranks of a plan, or some of them if transports are composed. The rank
// in the new communicator is the position in `ranks`.
struct TransportRanks {
  int self = 0;
  std::vector<int> ranks;

  int size() const { return static_cast<int>(ranks.size()); }
  // Returns the position of `rank` in `ranks`, or size() if it is not among
  // them.
  int IndexOf(int rank) const;
  bool contains(int rank) const { return IndexOf(rank) < size(); }
};

// The endpoint of one rank, made by Transport::Prepare(). Not thread-safe. Must
// outlive the communicator that it returns.
class TransportEndpoint {
 public:
  virtual ~TransportEndpoint() = default;

  // Connects to the other ranks, which call this function at about the same
  // time. `endpoints` has the endpoints of all ranks of the plan, by rank.
  // Called once.
  //   kDeadlineExceeded  names the ranks that have not connected
  //   and what the transport returns for endpoints that cannot be reached
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Connect(
      absl::Span<const proto::ReplicaEndpoint> endpoints,
      absl::Time deadline) = 0;
};

// Stateless and thread-safe. The state of a group is in its endpoints.
class Transport {
 public:
  // The name in logs and in the leader's choice: unique.
  // "raw sockets".
  virtual std::string name() const = 0;

  // The implementation that a user selects to get this transport.
  virtual CommunicationImplementation implementation() const {
    return CommunicationImplementation::kRing;
  }

  // True if collectives leave processor time to other threads while bytes are
  // in transit, so that computing at the same time shortens a step.
  virtual bool leaves_processor_idle() const = 0;

  // Writes what this task offers for this transport into the transport's own
  // fields of `offer`. Leaves them unset if the task offers nothing.
  virtual void Offer(const TransportSettings& settings,
                     proto::TransportOffer* offer) const = 0;

  // True if ranks with these offers can be connected. A pure function.
  virtual TransportFit Fit(absl::Span<const RankOffer> offers) const = 0;

  // Opens the endpoint of `ranks.self` and writes its description for the other
  // ranks into the transport's own fields of `endpoint`. `plan` is borrowed and
  // must outlive the result.
  //   kUnavailable, kResourceExhausted  the system has no socket
  //   kInvalidArgument  the task's address is not an address of this machine
  virtual absl::StatusOr<std::unique_ptr<TransportEndpoint>> Prepare(
      const TransportContext& context, const GroupPlan& plan,
      TransportRanks ranks, proto::ReplicaEndpoint* endpoint) const = 0;

 protected:
  // Transports are constants without an owner.
  constexpr Transport() = default;
  ~Transport() = default;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_TRANSPORTS_TRANSPORT_H_
