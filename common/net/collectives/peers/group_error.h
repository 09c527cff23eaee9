#ifndef COMMON_NET_COLLECTIVES_PEERS_GROUP_ERROR_H_
#define COMMON_NET_COLLECTIVES_PEERS_GROUP_ERROR_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

namespace proto {
class FailureNotice;
}  // namespace proto

// Why a group could not be formed, or has ended. Determines the exit status of
// the process.
enum class GroupErrorKind {
  // A process of the group has ended, does not respond, or has not connected in
  // time. Restarting the lost task, or all tasks, may help.
  kPeerLost = 1,
  // The others have formed, or are ending, a group without this process,
  // because it was considered lost or started late. The remedy is the same.
  kLeftBehind = 2,
  // Another task ended with an error of its own. The error's payloads are kept.
  kPeerFailed = 3,
  // Tasks have different configurations. A restart would fail again.
  kDisagreement = 4,
  // Two processes run as the same task.
  kDuplicateTask = 5,
};

// Adds `kind` to an error. Returns OK unchanged, and keeps a kind that `status`
// already has.
absl::Status WithGroupErrorKind(absl::Status status, GroupErrorKind kind);
std::optional<GroupErrorKind> GroupErrorKindOf(const absl::Status& status);

// Encodes an error with EncodeStatus(). `is_own` is true if it is the sender's
// own error, not one that the sender received. The payloads carry information
// for the tasks that end because of this error, such as whether to restart.
proto::FailureNotice EncodeFailure(const absl::Status& status, bool is_own);
// Never returns OK, even if `notice` has no error.
absl::Status DecodeFailure(const proto::FailureNotice& notice);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_GROUP_ERROR_H_
