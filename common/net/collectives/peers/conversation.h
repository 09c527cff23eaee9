#ifndef COMMON_NET_COLLECTIVES_PEERS_CONVERSATION_H_
#define COMMON_NET_COLLECTIVES_PEERS_CONVERSATION_H_

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

// A proto as it goes over a stream.
Message ToMessage(const proto::PeerMessage& message);

// A stream that a peer has opened: begins with its hello, and is then where it
// speaks and this task listens. Pings are answered here.
//
// The transport calls one at a time; the rest is thread-safe.
class Conversation final : public StreamObserver,
                           public std::enable_shared_from_this<Conversation> {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    // Answers the hello. Returns the caller's rank, or -1 when it was refused.
    virtual int Admit(const std::shared_ptr<Conversation>& conversation,
                      const proto::PeerHello& hello) = 0;
    // Of admitted ones.
    virtual void OnIncoming(int rank, const proto::PeerMessage& message) = 0;
    virtual void OnIncomingDone(int rank, const Conversation* conversation) = 0;
  };

  // `host` outlives the stream.
  Conversation(Host* host, std::shared_ptr<Stream> stream);

  Stream& stream() { return *stream_; }
  // Says why, and ends the stream.
  void Refuse(proto::PeerRefusal_Reason reason, absl::string_view text);

  void OnMessage(ReceivedMessage received) override;
  void OnHalfClose() override;
  void OnDone(const absl::Status& status) override;

 private:
  Host* const host_;
  const std::shared_ptr<Stream> stream_;
  int rank_ = -1;  // Set with the hello. Used by the transport's calls only.
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_CONVERSATION_H_
