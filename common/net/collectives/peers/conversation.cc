#include "common/net/collectives/peers/conversation.h"

#include <string>
#include <utility>

#include "proto/peer_group.pb.h"

namespace muster {

Message ToMessage(const proto::PeerMessage& message) {
  return Message{message.SerializeAsString(), {}};
}

Conversation::Conversation(Host* host, std::shared_ptr<Stream> stream)
    : host_(host), stream_(std::move(stream)) {}

void Conversation::Refuse(proto::PeerRefusal::Reason reason,
                          absl::string_view text, uint64_t view) {
  proto::PeerMessage message;
  message.mutable_refusal()->set_reason(reason);
  message.mutable_refusal()->set_message(std::string(text));
  message.mutable_refusal()->set_view(view);
  stream_->Send(ToMessage(message)).IgnoreError();
  stream_->Finish(absl::FailedPreconditionError(text));
}

void Conversation::OnMessage(ReceivedMessage received) {
  const auto message = received.ParseBody<proto::PeerMessage>();
  if (!message.ok()) {
    stream_->Finish(message.status());
    return;
  }
  if (rank_ < 0) {
    if (message->has_hello()) {
      rank_ = host_->Admit(shared_from_this(), message->hello());
    } else {
      stream_->Finish(absl::FailedPreconditionError(
          "a conversation begins with a hello, and this one did not"));
    }
    return;
  }
  host_->OnIncoming(rank_, *message);
  if (!message->has_ping()) return;
  proto::PeerMessage pong;
  pong.mutable_pong();
  stream_->Send(ToMessage(pong)).IgnoreError();  // OnDone() reports errors.
}

void Conversation::OnHalfClose() { stream_->Finish(absl::OkStatus()); }

void Conversation::OnDone(const absl::Status&) {
  if (rank_ >= 0) host_->OnIncomingDone(rank_, this);
}

}  // namespace muster
