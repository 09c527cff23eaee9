#include "common/net/collectives/peers/group_error.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/net/rpc/status_detail.h"

namespace muster {
namespace {

constexpr absl::string_view kKindUrl = "type.muster/GroupErrorKind";
// An error goes to every task; what hangs on it must not flood them.
constexpr int kPayloadCountMax = 8;
constexpr size_t kPayloadBytesMax = 4096;

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
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    if (url == kTaskFailureTypeUrl || value.size() > kPayloadBytesMax ||
        notice.payloads_size() == kPayloadCountMax) {
      return;
    }
    proto::FailureNotice::Payload* const payload = notice.add_payloads();
    payload->set_type_url(std::string(url));
    payload->set_value(std::string(value));
  });
  return notice;
}

absl::Status DecodeFailure(const proto::FailureNotice& notice) {
  absl::Status status = DecodeStatus(notice.error());
  if (status.ok()) status = absl::UnknownError("no error was given");
  for (const proto::FailureNotice::Payload& payload : notice.payloads()) {
    if (payload.type_url() == kTaskFailureTypeUrl) continue;
    status.SetPayload(payload.type_url(), absl::Cord(payload.value()));
  }
  return status;
}

absl::Status WithMessage(const absl::Status& status,
                         absl::string_view message) {
  absl::Status changed(status.code(), message);
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    changed.SetPayload(url, value);
  });
  return changed;
}

}  // namespace muster
