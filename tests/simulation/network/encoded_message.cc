#include "tests/simulation/network/encoded_message.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/core/base/check.h"
#include "common/net/rpc/status_detail.h"
#include "proto/rpc.pb.h"

namespace muster::sim {

std::string ToBytes(const proto::RequestIdentity& identity,
                    const Message& message) {
  std::string bytes;
  for (const MessageSlice& slice : EncodeMessage(identity, message)) {
    bytes.append(reinterpret_cast<const char*>(slice.data), slice.size_bytes);
  }
  return bytes;
}

absl::StatusOr<ReceivedMessage> FromBytes(std::string bytes,
                                          size_t first_piece_bytes) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  const auto* const data = reinterpret_cast<const uint8_t*>(owner->data());
  const size_t first = std::min(first_piece_bytes, owner->size());
  std::vector<MessageSlice> slices;
  if (first > 0) slices.push_back({data, first, owner});
  if (first < owner->size()) {
    slices.push_back({data + first, owner->size() - first, owner});
  }
  return ReceivedMessage::Parse(std::move(slices));
}

std::string StatusToBytes(const absl::Status& status) {
  return EncodeStatus(status).SerializeAsString();
}

absl::Status StatusFromBytes(const std::string& bytes) {
  proto::StatusDetail detail;
  MUSTER_CHECK(detail.ParseFromString(bytes));
  return DecodeStatus(detail);
}

}  // namespace muster::sim
