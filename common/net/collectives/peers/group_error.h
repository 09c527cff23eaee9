#ifndef COMMON_NET_COLLECTIVES_PEERS_GROUP_ERROR_H_
#define COMMON_NET_COLLECTIVES_PEERS_GROUP_ERROR_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

namespace proto {
class FailureNotice;
}  // namespace proto

// Why a group could not be formed, or is over. The code that ends a process
// turns this into its exit status.
enum class GroupErrorKind {
  // A process of the group is gone, has gone silent, or has not come in time. A
  // new start of all, or of the one lost, may continue.
  kPeerLost = 1,
  // The others have formed, or are ending, a group without this process: it was
  // taken for lost, or came late. The same remedy.
  kLeftBehind = 2,
  // Another task ended with an error of its own. Its payloads are kept.
  kPeerFailed = 3,
  // Tasks were told different things; a new start would fail again.
  kDisagreement = 4,
  // Two processes call themselves the same task.
  kDuplicateTask = 5,
};

// An OK status stays as it is; the first kind given counts.
absl::Status WithGroupErrorKind(absl::Status status, GroupErrorKind kind);
std::optional<GroupErrorKind> GroupErrorKindOf(const absl::Status& status);

// An error as EncodeStatus() encodes it, and whose it is. Its payloads tell
// those that end because of it what the failed task knows of its end, such as
// whether to start again.
proto::FailureNotice EncodeFailure(const absl::Status& status, bool is_own);
// Never OK, whatever came.
absl::Status DecodeFailure(const proto::FailureNotice& notice);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_PEERS_GROUP_ERROR_H_
