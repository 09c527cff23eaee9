#ifndef TESTS_SIMULATION_NETWORK_ENCODED_MESSAGE_H_
#define TESTS_SIMULATION_NETWORK_ENCODED_MESSAGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/rpc/message.h"

namespace muster::sim {

// Returns the bytes of `message` as they go over a connection.
std::string ToBytes(const proto::RequestIdentity& identity,
                    const Message& message);

// Decodes the bytes of a message that has arrived in two pieces, the first of
// `first_piece_bytes`.
//   as ReceivedMessage::Parse()
absl::StatusOr<ReceivedMessage> FromBytes(std::string bytes,
                                          size_t first_piece_bytes);

// A status as gRPC transports it: payloads of other programs are dropped.
std::string StatusToBytes(const absl::Status& status);
absl::Status StatusFromBytes(const std::string& bytes);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_NETWORK_ENCODED_MESSAGE_H_
