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

// A transport moves the bytes of a synchronous group. A group uses one, which
// its leader chooses; the tasks then connect in two steps, between which they
// exchange what the others need to reach them:
//
//   each task     Offer()    what it has for each transport, in its hello
//   leader        Fit()      whether a transport can serve the ranks, and why
//                            or why not
//   each replica  Prepare()  opens an endpoint: addresses, tokens, ids
//   each replica  Connect()  gets everyone's endpoints, returns a Communicator
//
// kTransports (transports.h) lists all of them, best first. docs/extending.md
// says how to add one.

// The means that a task lets its transports use.
struct TransportSettings {
  // Tasks with the same host name can share memory. Empty: this machine's.
  std::string host;
  bool shared_memory = true;
  bool raw_sockets = true;
  // Raw sockets to other hosts speak TLS 1.3, with a key that is sent over the
  // network of the tasks, which must be encrypted itself.
  bool encrypts_raw_sockets = false;
  // Where the task's first replica listens for raw sockets; the next ones use
  // the ports that follow. 0: free ports.
  int lane_port = 0;
  // Connections to ranks of other hosts bear silence for at least this long:
  // whether such a rank is lost, its group decides earlier. At most a day.
  absl::Duration silence_timeout = kLaneSilenceTimeout;
  // The GPUs of the replicas, in their order; null, or left out, for those on
  // CPUs. Borrowed, outlive the communicators.
  std::vector<Device*> devices = {};
  // Null: libnccl.so.2 of this machine, if a replica has a GPU.
  const nccl::Api* nccl = nullptr;
};

// The offer of a rank's task. `offer` is borrowed.
struct RankOffer {
  int rank = 0;
  const proto::TransportOffer* offer = nullptr;
  int replica = 0;  // Which of its task's replicas the rank is.
};

// Tells whether a transport can serve ranks. `reason` is a clause in either
// case: it completes "AUTO chose NAME because ..." or "NAME was left out: ...".
struct TransportFit {
  bool fits = false;
  std::string reason;
};

// The objects that a task lends to its transports. Pointers are borrowed and
// outlive the communicators.
struct TransportContext {
  TaskIdentity self;
  Network* network = nullptr;
  // The lanes that others open at this task's server.
  RpcLaneAcceptor* rpc_lanes = nullptr;
  TransportSettings settings = {};
};

// The ranks that are to be connected, as one of them sees it: all ranks of a
// plan, or some, where transports are composed. In the new communicator, a rank
// is its position in `ranks`.
struct TransportRanks {
  int self = 0;
  std::vector<int> ranks;

  int size() const { return static_cast<int>(ranks.size()); }
  // The position of `rank`; size() if it is none of these.
  int IndexOf(int rank) const;
  bool contains(int rank) const { return IndexOf(rank) < size(); }
};

// A rank's side of a transport that is prepared. Not thread-safe. Outlives the
// communicator that it returned.
class TransportEndpoint {
 public:
  virtual ~TransportEndpoint() = default;

  // Connects with the other ranks, which do the same at about the same time.
  // `endpoints` has those of all ranks of the plan, by rank. Called once.
  //   kDeadlineExceeded  names the ranks that have not come
  //   and what the transport returns for endpoints that cannot be reached
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Connect(
      absl::Span<const proto::ReplicaEndpoint> endpoints,
      absl::Time deadline) = 0;
};

// Stateless and thread-safe: what belongs to a group is in its endpoints.
class Transport {
 public:
  // The name in logs and in the leader's choice: unique.
  // "raw sockets".
  virtual std::string name() const = 0;

  // Which implementation a user asks for to get this transport.
  virtual CommunicationImplementation implementation() const {
    return CommunicationImplementation::kRing;
  }

  // True if collectives leave processor time to others while bytes are under
  // way, so that computing meanwhile makes a step shorter.
  virtual bool leaves_processor_idle() const = 0;

  // Writes what this task has for this transport into the transport's own
  // fields of `offer`. Leaves them unset where the task has nothing.
  virtual void Offer(const TransportSettings& settings,
                     proto::TransportOffer* offer) const = 0;

  // True if ranks with these offers can be connected. A pure function.
  virtual TransportFit Fit(absl::Span<const RankOffer> offers) const = 0;

  // Opens the endpoint of `ranks.self` and writes what the others need to reach
  // it into the transport's own fields of `endpoint`. `plan` is borrowed and
  // outlives the endpoint.
  //   kUnavailable, kResourceExhausted  the system has no socket
  //   kInvalidArgument  the address of this task is not one of this machine
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
