#include "ps/testing/test_share.h"

#include <cstring>
#include <utility>

#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/system/clock.h"
#include "ps/client/methods.h"

namespace muster {

// A stream that keeps the answer and stops the FileServer when it arrives.
class TestShare::FakeStream final : public Stream {
 public:
  explicit FakeStream(FileServer* file_server) : hand_out_(file_server) {}

  absl::Status Send(const Message& message) override {
    absl::MutexLock lock(&mutex_);
    MUSTER_CHECK(!is_answered_ && event_.ParseFromString(message.body));
    is_answered_ = true;
    hand_out_->Stop();
    return absl::OkStatus();
  }
  void Finish(absl::Status) override {}
  void Cancel() override {}

  proto::ShareEvent Answer() const {
    absl::MutexLock lock(&mutex_);
    MUSTER_CHECK(is_answered_);
    return event_;
  }

 private:
  FileServer* const hand_out_;
  mutable absl::Mutex mutex_;
  bool is_answered_ ABSL_GUARDED_BY(mutex_) = false;
  proto::ShareEvent event_ ABSL_GUARDED_BY(mutex_);
};

ReceivedMessage Arrived(const proto::RequestIdentity& identity,
                        const Message& message) {
  auto arrived = ReceivedMessage::Parse(EncodeMessage(identity, message));
  MUSTER_CHECK(arrived.ok());
  return *std::move(arrived);
}

TestShare::TestShare(const Service& service,
                     const proto::RequestIdentity& identity,
                     uint64_t segment_id, size_t size_bytes)
    : segment_(ClientSegment::Create(size_bytes).value()) {
  std::memcpy(data(), &kProof, sizeof(kProof));
  const auto file_server = FileServer::Open(&segment_->file()).value();
  stream_ = std::make_shared<FakeStream>(file_server.get());
  observer_ = (*service.FindStream(kShareMethod))(stream_);
  proto::ShareRequest request;
  request.set_segment_id(segment_id);
  request.set_endpoint(file_server->endpoint());
  request.set_token(file_server->token());
  observer_->OnMessage(
      Arrived(identity, Message{request.SerializeAsString(), {}}));
  file_server->Serve(Clock::Real()->Now() + absl::Seconds(30));
  event_ = stream_->Answer();
}

void TestShare::End() {
  if (observer_ == nullptr) return;
  observer_->OnDone(absl::CancelledError("the client has disconnected"));
  observer_ = nullptr;
}

}  // namespace muster
