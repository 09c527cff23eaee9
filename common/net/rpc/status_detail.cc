#include "common/net/rpc/status_detail.h"

#include <string>

#include "absl/strings/cord.h"

namespace muster {

absl::Status WithTaskFailure(absl::Status status,
                             const proto::TaskFailure& failure) {
  if (!status.ok() && !status.GetPayload(kTaskFailureTypeUrl).has_value()) {
    status.SetPayload(kTaskFailureTypeUrl,
                      absl::Cord(failure.SerializeAsString()));
  }
  return status;
}

std::optional<proto::TaskFailure> GetTaskFailure(const absl::Status& status) {
  const auto payload = status.GetPayload(kTaskFailureTypeUrl);
  proto::TaskFailure failure;
  if (!payload.has_value() || !failure.ParseFromString(std::string(*payload))) {
    return std::nullopt;
  }
  return failure;
}

proto::StatusDetail EncodeStatus(const absl::Status& status) {
  proto::StatusDetail detail;
  detail.set_code(static_cast<int>(status.code()));
  detail.set_message(std::string(status.message()));
  if (auto failure = GetTaskFailure(status)) {
    *detail.mutable_task_failure() = *std::move(failure);
  }
  return detail;
}

absl::Status DecodeStatus(const proto::StatusDetail& detail) {
  const int code = detail.code();
  const bool is_canonical =
      code >= 0 && code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  absl::Status status(is_canonical ? static_cast<absl::StatusCode>(code)
                                   : absl::StatusCode::kUnknown,
                      detail.message());
  if (detail.has_task_failure()) {
    status = WithTaskFailure(std::move(status), detail.task_failure());
  }
  return status;
}

}  // namespace muster
