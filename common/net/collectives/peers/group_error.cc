#include "common/net/collectives/peers/group_error.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/net/rpc/status_detail.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

constexpr absl::string_view kKindUrl = "type.muster/GroupErrorKind";

}  // namespace

absl::Status WithGroupErrorKind(absl::Status status, GroupErrorKind kind) {
  if (!status.ok() && !status.GetPayload(kKindUrl).has_value()) {
    status.SetPayload(kKindUrl,
                      absl::Cord(absl::StrCat(static_cast<int>(kind))));
  }
  return status;
}

std::optional<GroupErrorKind> GroupErrorKindOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kKindUrl);
  int kind = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &kind) ||
      kind < static_cast<int>(GroupErrorKind::kPeerLost) ||
      kind > static_cast<int>(GroupErrorKind::kDuplicateTask)) {
    return std::nullopt;
  }
  return static_cast<GroupErrorKind>(kind);
}

proto::FailureNotice EncodeFailure(const absl::Status& status, bool is_own) {
  proto::FailureNotice notice;
  *notice.mutable_error() = EncodeStatus(status);
  notice.set_is_own(is_own);
  return notice;
}

absl::Status DecodeFailure(const proto::FailureNotice& notice) {
  absl::Status status = DecodeStatus(notice.error());
  if (status.ok()) status = absl::UnknownError("no error was given");
  return status;
}

}  // namespace muster
