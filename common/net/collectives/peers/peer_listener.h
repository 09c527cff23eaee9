#ifndef COMMON_NET_COLLECTIVES_PEERS_PEER_LISTENER_H_
#define COMMON_NET_COLLECTIVES_PEERS_PEER_LISTENER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

namespace proto {
class PeerMessage;
}  // namespace proto

// Is told by PeerLinks of the peers. Called on threads of the transport and of
// the links, without a lock, and must not wait.
class PeerListener {
 public:
  virtual ~PeerListener() = default;
  virtual void OnPresent(int rank) = 0;
  // While watching, only of a peer that may go.
  virtual void OnMissing(int rank, absl::string_view reason) = 0;
  // While watching, once for a rank. The status carries a TaskFailure.
  virtual void OnLost(int rank, const absl::Status& why) = 0;
  // There can be no group with this task, or with a peer that cannot train.
  // Before watching only.
  virtual void OnRefused(const absl::Status& why) = 0;
  // Of a task with Admission::Options::failure: the peer has been told it.
  virtual void OnTold(int rank) = 0;
  virtual void OnMessage(int rank, const proto::PeerMessage& message) = 0;
  // Every heartbeat interval.
  virtual void OnTick() = 0;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_PEER_LISTENER_H_
