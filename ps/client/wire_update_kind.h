#ifndef PS_CLIENT_WIRE_UPDATE_KIND_H_
#define PS_CLIENT_WIRE_UPDATE_KIND_H_

#include <optional>

#include "common/compute/variables/update_kind.h"

namespace muster {
namespace proto {
enum UpdateKind : int;
}  // namespace proto

// The kinds of updates as messages name them.
proto::UpdateKind WireKind(UpdateKind kind);

// Absent for a number that names no kind.
std::optional<UpdateKind> UpdateKindOf(proto::UpdateKind kind);

}  // namespace muster

#endif  // PS_CLIENT_WIRE_UPDATE_KIND_H_
