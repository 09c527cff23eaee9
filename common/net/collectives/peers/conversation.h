#ifndef COMMON_NET_COLLECTIVES_PEERS_CONVERSATION_H_
#define COMMON_NET_COLLECTIVES_PEERS_CONVERSATION_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"

namespace muster {

namespace proto {
enum PeerRefusal_Reason : int;
class PeerHello;
class PeerMessage;
}  // namespace proto

// Encodes a proto as a message of a stream.
Message ToMessage(const proto::PeerMessage& message);

// A stream that a peer has opened. It begins with the peer's hello and then
// carries the peer's messages to this task. This class answers pings.
//
// The transport makes one call of the observer functions at a time. The other
// functions are thread-safe.
class Conversation final : public StreamObserver,
                           public std::enable_shared_from_this<Conversation> {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    // Answers the hello. Returns the caller's rank, or -1 if it was refused.
    virtual int Admit(const std::shared_ptr<Conversation>& conversation,
                      const proto::PeerHello& hello) = 0;
    // Called for admitted conversations only.
    virtual void OnIncoming(int rank, const proto::PeerMessage& message) = 0;
    virtual void OnIncomingDone(int rank, const Conversation* conversation) = 0;
  };

  // `host` outlives the stream.
  Conversation(Host* host, std::shared_ptr<Stream> stream);

  Stream& stream() { return *stream_; }
  // Sends a refusal with the reason and ends the stream. `view` is that of this
  // task.
  void Refuse(proto::PeerRefusal_Reason reason, absl::string_view text,
              uint64_t view = 0);

  void OnMessage(ReceivedMessage received) override;
  void OnHalfClose() override;
  void OnDone(const absl::Status& status) override;

 private:
  Host* const host_;
  const std::shared_ptr<Stream> stream_;
  int rank_ = -1;  // Set when the hello is admitted. Used by the transport's
                   // calls only.
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_CONVERSATION_H_
