#ifndef COMMON_NET_COLLECTIVES_PEERS_PEER_LISTENER_H_
#define COMMON_NET_COLLECTIVES_PEERS_PEER_LISTENER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

namespace proto {
class PeerMessage;
}  // namespace proto

// Receives events of peers from PeerLinks. Called on threads of the transport
// and of the links, without a lock. Must not wait.
class PeerListener {
 public:
  virtual ~PeerListener() = default;
  virtual void OnPresent(int rank) = 0;
  // After Watch(), only called for a peer that may end.
  virtual void OnMissing(int rank, absl::string_view reason) = 0;
  // Only called after Watch(), once for a rank. The status carries a
  // TaskFailure.
  virtual void OnLost(int rank, const absl::Status& why) = 0;
  // No group can be formed with this task, or with a peer that cannot train.
  // Only called before Watch().
  virtual void OnRefused(const absl::Status& why) = 0;
  // Only called in a task with Admission::Options::failure: the peer has
  // received the failure.
  virtual void OnFailureDelivered(int rank) = 0;
  virtual void OnMessage(int rank, const proto::PeerMessage& message) = 0;
  // Every heartbeat interval.
  virtual void OnTick() = 0;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_PEER_LISTENER_H_
