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

// A client that offers a segment to a server without a network.
class TestShare {
 public:
  static constexpr uint64_t kProof = 0x1234;

  // Offers a segment of `size_bytes` bytes to `service` as `identity`, and
  // waits for the answer. Aborts the test if none arrives.
  TestShare(const Service& service, const proto::RequestIdentity& identity,
            uint64_t segment_id, size_t size_bytes);
  ~TestShare() { End(); }

  const proto::ShareEvent& event() const { return event_; }
  uint8_t* data() const { return segment_->memory()->data(); }

  // Simulates the disconnect of the client.
  void End();

 private:
  class FakeStream;

  const std::unique_ptr<ClientSegment> segment_;
  std::shared_ptr<FakeStream> stream_;
  std::shared_ptr<StreamObserver> observer_;
  proto::ShareEvent event_;
};

// Returns `message` as the server receives it. Aborts the test if it is
// malformed.
ReceivedMessage Arrived(const proto::RequestIdentity& identity,
                        const Message& message);

}  // namespace muster

#endif  // PS_TESTING_TEST_SHARE_H_
