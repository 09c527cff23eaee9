#ifndef COMMON_NET_RPC_STATUS_DETAIL_H_
#define COMMON_NET_RPC_STATUS_DETAIL_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/rpc.pb.h"

// Errors between processes. A status that is about another task carries a
// proto::TaskFailure as a payload, so that no caller has to parse its message
// to learn which task failed.
namespace muster {

// The payload's name in an absl::Status.
inline constexpr absl::string_view kTaskFailureTypeUrl =
    "type.muster/TaskFailure";

// `status` with `failure` attached; one already attached is kept, because the
// first to see an error knows most. An OK status stays as it is.
absl::Status WithTaskFailure(absl::Status status,
                             const proto::TaskFailure& failure);

// The failure attached to `status`, if any.
std::optional<proto::TaskFailure> GetTaskFailure(const absl::Status& status);

proto::StatusDetail EncodeStatus(const absl::Status& status);
// A code that is no canonical one becomes kUnknown.
absl::Status DecodeStatus(const proto::StatusDetail& detail);

}  // namespace muster

#endif  // COMMON_NET_RPC_STATUS_DETAIL_H_
