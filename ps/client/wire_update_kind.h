#ifndef PS_CLIENT_WIRE_UPDATE_KIND_H_
#define PS_CLIENT_WIRE_UPDATE_KIND_H_

#include <optional>

#include "common/compute/variables/update_kind.h"

namespace muster {
namespace proto {
enum UpdateKind : int;
}  // namespace proto

// Converts a kind of update to its number in messages.
proto::UpdateKind WireKind(UpdateKind kind);

// Converts a number in a message to a kind of update; absent if the number is
// unknown.
std::optional<UpdateKind> UpdateKindOf(proto::UpdateKind kind);

}  // namespace muster

#endif  // PS_CLIENT_WIRE_UPDATE_KIND_H_
