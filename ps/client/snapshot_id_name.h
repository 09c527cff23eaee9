#ifndef PS_CLIENT_SNAPSHOT_ID_NAME_H_
#define PS_CLIENT_SNAPSHOT_ID_NAME_H_

#include "absl/strings/string_view.h"

namespace muster {

// The name of the tensor that identifies the snapshot in a checkpoint: a random
// int64 scalar. Its values differ in two checkpoints that were written to the
// same path one after the other.
inline constexpr absl::string_view kSnapshotIdName =
    "parameter_server_cut/.ATTRIBUTES/VARIABLE_VALUE";

}  // namespace muster

#endif  // PS_CLIENT_SNAPSHOT_ID_NAME_H_
