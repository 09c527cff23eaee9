#ifndef PS_TESTING_TEST_SHARE_H_
#define PS_TESTING_TEST_SHARE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/net/rpc/message.h"
#include "common/net/rpc/service.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "ps/client/client_segment.h"
#include "ps/client/segment_transfer.h"

namespace muster {

// A client that offers a segment to a server without a network between them.
class TestShare {
 public:
  static constexpr uint64_t kProof = 0x1234;

  // Offers `size_bytes` to `service` in the name of `identity`, and waits for
  // the answer. Ends with the test when none comes.
  TestShare(const Service& service, const proto::RequestIdentity& identity,
            uint64_t segment_id, size_t size_bytes);
  ~TestShare() { End(); }

  const proto::ShareEvent& event() const { return event_; }
  uint8_t* data() const { return segment_->memory()->data(); }

  // As when the client goes.
  void End();

 private:
  class FakeStream;

  const std::unique_ptr<ClientSegment> segment_;
  std::shared_ptr<FakeStream> stream_;
  std::shared_ptr<StreamObserver> observer_;
  proto::ShareEvent event_;
};

// `message` as it arrives. Ends the test when it is none.
ReceivedMessage Arrived(const proto::RequestIdentity& identity,
                        const Message& message);

}  // namespace muster

#endif  // PS_TESTING_TEST_SHARE_H_
