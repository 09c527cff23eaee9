#ifndef COMMON_NET_RPC_STATUS_DETAIL_H_
#define COMMON_NET_RPC_STATUS_DETAIL_H_

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// Errors between processes. Programs read the code and the payloads of an
// error, never its message. The types of Muster's payloads begin with
// kStatusPayloadPrefix. There are payloads for the task that failed
// (kTaskFailureTypeUrl), for the way a process ends because of the error, for
// the reason why a group has ended, and for the device that is lost.
namespace muster {

namespace proto {
class StatusDetail;
class TaskFailure;
}  // namespace proto

inline constexpr absl::string_view kStatusPayloadPrefix = "type.muster/";

// The payload's name in an absl::Status.
inline constexpr absl::string_view kTaskFailureTypeUrl =
    "type.muster/TaskFailure";

// Returns `status` with `failure` attached. Keeps a failure that is already
// attached, because the place where an error is first seen describes it best.
// An OK status is returned unchanged.
absl::Status WithTaskFailure(absl::Status status,
                             const proto::TaskFailure& failure);

// Returns the failure attached to `status`, if any.
std::optional<proto::TaskFailure> GetTaskFailure(const absl::Status& status);

// Limits of both functions below. They ensure that a status fits into HTTP/2
// headers, even if another process has sent it.
inline constexpr int kStatusPayloadCountMax = 8;
// Type and value of one payload. A TaskFailure is not limited.
inline constexpr size_t kStatusPayloadBytesMax = 256;

// Encodes the code, the message and the payloads of Muster. Larger payloads,
// further ones and those of other types are dropped.
proto::StatusDetail EncodeStatus(const absl::Status& status);
// Decodes a status, and drops the same payloads as EncodeStatus(). A code that
// is not canonical becomes kUnknown.
absl::Status DecodeStatus(const proto::StatusDetail& detail);

}  // namespace muster

#endif  // COMMON_NET_RPC_STATUS_DETAIL_H_
