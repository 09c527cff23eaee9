#ifndef PS_CLIENT_SNAPSHOT_ID_NAME_H_
#define PS_CLIENT_SNAPSHOT_ID_NAME_H_

#include "absl/strings/string_view.h"

namespace muster {

// The tensor of a checkpoint that says which moment of which job it holds: an
// int64 scalar, random. Two checkpoints that were written under one name, one
// after the other, differ in it.
inline constexpr absl::string_view kSnapshotIdName =
    "parameter_server_cut/.ATTRIBUTES/VARIABLE_VALUE";

}  // namespace muster

#endif  // PS_CLIENT_SNAPSHOT_ID_NAME_H_
