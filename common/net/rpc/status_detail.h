#ifndef COMMON_NET_RPC_STATUS_DETAIL_H_
#define COMMON_NET_RPC_STATUS_DETAIL_H_

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// Errors between processes. What programs read of an error is in its code and
// its payloads, never in its message. The payloads of Muster are those whose
// type begins with kStatusPayloadPrefix: which task failed
// (kTaskFailureTypeUrl), how a process ends because of it, why a group is over,
// which device is lost.
namespace muster {

namespace proto {
class StatusDetail;
class TaskFailure;
}  // namespace proto

inline constexpr absl::string_view kStatusPayloadPrefix = "type.muster/";

// The payload's name in an absl::Status.
inline constexpr absl::string_view kTaskFailureTypeUrl =
    "type.muster/TaskFailure";

// `status` with `failure` attached; one already attached is kept, because the
// first to see an error knows most. An OK status stays as it is.
absl::Status WithTaskFailure(absl::Status status,
                             const proto::TaskFailure& failure);

// The failure attached to `status`, if any.
std::optional<proto::TaskFailure> GetTaskFailure(const absl::Status& status);

// Limits of both functions below, so that a status fits into HTTP/2 headers,
// whichever process has sent it.
inline constexpr int kStatusPayloadCountMax = 8;
// Type and value of one payload. A TaskFailure is not limited.
inline constexpr size_t kStatusPayloadBytesMax = 256;

// Encodes the code, the message and the payloads of Muster. Larger payloads,
// further ones and those of other types are dropped.
proto::StatusDetail EncodeStatus(const absl::Status& status);
// Drops the same. A code that is no canonical one becomes kUnknown.
absl::Status DecodeStatus(const proto::StatusDetail& detail);

}  // namespace muster

#endif  // COMMON_NET_RPC_STATUS_DETAIL_H_
