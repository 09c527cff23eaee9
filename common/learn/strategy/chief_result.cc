#include "common/learn/strategy/chief_result.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/net/collectives/peers/group_error.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

// The first byte.
constexpr char kBytes = 'b';
constexpr char kError = 'e';

}  // namespace

std::string EncodeResult(const absl::StatusOr<std::string>& result) {
  if (result.ok()) return absl::StrCat(std::string(1, kBytes), *result);
  return absl::StrCat(
      std::string(1, kError),
      EncodeFailure(result.status(), /*is_own=*/true).SerializeAsString());
}

absl::StatusOr<std::string> DecodeResult(absl::string_view encoded) {
  const char kind = encoded.empty() ? '\0' : encoded.front();
  if (kind == kBytes) return std::string(encoded.substr(1));
  proto::FailureNotice notice;
  if (kind == kError &&
      notice.ParseFromString(std::string(encoded.substr(1)))) {
    return DecodeFailure(notice);
  }
  return absl::InternalError(absl::StrCat(
      "the chief's result is damaged: ", encoded.size(), " bytes"));
}

absl::StatusOr<std::string> ResultFromChief(
    const WorkerAgreement& agreement, absl::string_view what,
    const absl::StatusOr<std::string>& result) {
  ASSIGN_OR_RETURN(const std::string encoded,
                   agreement.FromChief(what, EncodeResult(result)));
  if (agreement.is_chief()) return result;
  return DecodeResult(encoded);
}

}  // namespace muster
