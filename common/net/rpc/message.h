#ifndef COMMON_NET_RPC_MESSAGE_H_
#define COMMON_NET_RPC_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/tensor.h"

// The format of every message between tasks: a small protobuf, followed by
// tensors that no layer copies or parses.
//
//   "MST1"  head size (uint32)  proto::MessageHead  { padding  tensor }*
//
// Integers are little-endian; tensors begin at multiples of kTensorAlignment
// from the start of the message, dense and row-major. A string tensor is, for
// each element, its length (uint32) and then its bytes.
namespace muster {

namespace proto {
class MessageHead;
class RequestIdentity;
}  // namespace proto

inline constexpr size_t kTensorAlignmentBytes = 64;
inline constexpr size_t kMessageHeadBytesMax = size_t{16} << 20;
// Maximum number of messages that wait to be sent on a stream.
inline constexpr size_t kQueuedMessageCountMax = 4096;

// A piece of a message. `owner` keeps the bytes alive. The bytes do not change
// as long as `owner` exists.
struct MessageSlice {
  const uint8_t* data = nullptr;
  size_t size_bytes = 0;
  std::shared_ptr<const void> owner;
};

// A message to send. Its tensors share the caller's memory until the transport
// has released them: do not write to them before the call is done.
struct Message {
  std::string body;  // A serialized protobuf.
  std::vector<Tensor> tensors;
};

// Encodes `message` as slices. Refers to tensors of more than a few kilobytes
// instead of copying them. All tensors must be valid.
std::vector<MessageSlice> EncodeMessage(const proto::RequestIdentity& identity,
                                        const Message& message);

// The bytes of one tensor as they arrived: in pieces that may be split anywhere
// and need not be aligned.
class ReceivedTensor {
 public:
  ReceivedTensor() = default;  // Has no type and no bytes.
  ReceivedTensor(TensorType type, absl::InlinedVector<MessageSlice, 1> pieces)
      : type_(std::move(type)), pieces_(std::move(pieces)) {}

  // Returns `tensor` as if it had arrived in one piece. Not for strings.
  static ReceivedTensor FromTensor(const Tensor& tensor);

  const TensorType& type() const { return type_; }
  size_t size_bytes() const;
  absl::Span<const MessageSlice> pieces() const { return pieces_; }

  // Not for strings. `destination` holds size_bytes().
  void CopyTo(void* destination) const;

  // Calls visit(offset, data, count) for consecutive runs of at most
  // `count_max` elements. `data` is aligned for the element and valid during
  // the call only. Runs that are split or unaligned in the message are copied
  // to `scratch`, which holds `count_max` elements and is aligned for them.
  void VisitRuns(
      int64_t begin, int64_t end, int64_t count_max, void* scratch,
      absl::FunctionRef<void(int64_t offset, const void* data, int64_t count)>
          visit) const;

  // Shares the message's memory if the tensor is one aligned piece of at least
  // a few kilobytes, and copies the bytes otherwise.
  //   kInvalidArgument  strings: lengths and bytes disagree
  absl::StatusOr<Tensor> ToTensor() const;

 private:
  TensorType type_;
  absl::InlinedVector<MessageSlice, 1> pieces_;
};

// A message that was received. Movable. Keeps the transport's memory alive.
class ReceivedMessage {
 public:
  // Decodes the bytes that EncodeMessage() encoded. They may be malformed:
  // extents, counts and sizes are compared with the number of bytes received
  // before memory is allocated.
  //   kInvalidArgument  the message is malformed; names the part
  static absl::StatusOr<ReceivedMessage> Parse(
      std::vector<MessageSlice> slices);
  ~ReceivedMessage();
  ReceivedMessage(ReceivedMessage&&) noexcept;
  ReceivedMessage& operator=(ReceivedMessage&&) noexcept;

  const proto::RequestIdentity& identity() const;
  absl::string_view body() const;
  absl::Span<const ReceivedTensor> tensors() const { return tensors_; }

  //   kInvalidArgument  the body is no `T`
  template <typename T>
  absl::StatusOr<T> ParseBody() const;

  // Returns all tensors, each as by ReceivedTensor::ToTensor().
  absl::StatusOr<std::vector<Tensor>> ToTensors() const;

 private:
  ReceivedMessage();

  std::unique_ptr<proto::MessageHead> head_;  // Null once moved from.
  std::vector<ReceivedTensor> tensors_;
};

template <typename T>
absl::StatusOr<T> ReceivedMessage::ParseBody() const {
  T message;
  if (!message.ParseFromArray(body().data(), static_cast<int>(body().size()))) {
    return absl::InvalidArgumentError("the message's body is no " +
                                      message.GetTypeName());
  }
  return message;
}

}  // namespace muster

#endif  // COMMON_NET_RPC_MESSAGE_H_
