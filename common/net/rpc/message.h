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

// The one form of every message between tasks: a small protobuf, and tensors
// beside it that no layer copies or parses.
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
// The most messages that wait to be sent on a stream.
inline constexpr size_t kQueuedMessageCountMax = 4096;

// A piece of a message. `owner` keeps the bytes alive; the bytes do not change
// while it does.
struct MessageSlice {
  const uint8_t* data = nullptr;
  size_t size_bytes = 0;
  std::shared_ptr<const void> owner;
};

// A request. Tensors share the caller's memory until the transport
// has released it: do not write to them before the call is done.
struct Message {
  std::string body;  // A serialized protobuf.
  std::vector<Tensor> tensors;
};

// `message` as slices. Tensors of more than a few kilobytes are referred to,
// not copied. No tensor is invalid.
std::vector<MessageSlice> EncodeMessage(const proto::RequestIdentity& identity,
                                        const Message& message);

// The bytes of one tensor as they arrived: in pieces split anywhere, aligned to
// nothing.
class ReceivedTensor {
 public:
  ReceivedTensor() = default;  // Of no type and without bytes.
  ReceivedTensor(TensorType type, absl::InlinedVector<MessageSlice, 1> pieces)
      : type_(std::move(type)), pieces_(std::move(pieces)) {}

  // As if `tensor`, which is not of strings, had arrived in one piece.
  static ReceivedTensor FromTensor(const Tensor& tensor);

  const TensorType& type() const { return type_; }
  size_t size_bytes() const;
  absl::Span<const MessageSlice> pieces() const { return pieces_; }

  // Not for strings. `destination` holds size_bytes().
  void CopyTo(void* destination) const;

  // Calls visit(offset, data, count) for consecutive runs of at most
  // `count_max` elements. `data` is aligned for the element and valid during
  // the call only; runs that lie badly in the message are copied to `scratch`,
  // which holds count_max elements and is aligned for them.
  void VisitRuns(
      int64_t begin, int64_t end, int64_t count_max, void* scratch,
      absl::FunctionRef<void(int64_t offset, const void* data, int64_t count)>
          visit) const;

  // Shares the message's memory where that is one aligned piece of some size,
  // and copies otherwise.
  //   kInvalidArgument  strings: lengths and bytes disagree
  absl::StatusOr<Tensor> ToTensor() const;

 private:
  TensorType type_;
  absl::InlinedVector<MessageSlice, 1> pieces_;
};

// A message that arrived. Movable; keeps the transport's memory alive.
class ReceivedMessage {
 public:
  // Takes apart what EncodeMessage() made. Trusts nothing: extents, counts and
  // sizes are checked against the bytes that came before memory is taken.
  //   kInvalidArgument  says what was expected and what came
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

  // All tensors, assembled.
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
