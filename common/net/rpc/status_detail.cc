#include "common/net/rpc/status_detail.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

// A TaskFailure is no payload here: StatusDetail has a separate field for it.
bool IsPayload(absl::string_view type_url, size_t value_bytes) {
  return absl::StartsWith(type_url, kStatusPayloadPrefix) &&
         type_url != kTaskFailureTypeUrl &&
         type_url.size() + value_bytes <= kStatusPayloadBytesMax;
}

}  // namespace

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
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    if (!IsPayload(url, value.size()) ||
        detail.payloads_size() == kStatusPayloadCountMax) {
      return;
    }
    proto::StatusPayload* const payload = detail.add_payloads();
    payload->set_type_url(std::string(url));
    payload->set_value(std::string(value));
  });
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
  int count = 0;
  for (const proto::StatusPayload& payload : detail.payloads()) {
    if (!IsPayload(payload.type_url(), payload.value().size())) continue;
    if (++count > kStatusPayloadCountMax) break;
    status.SetPayload(payload.type_url(), absl::Cord(payload.value()));
  }
  return status;
}

}  // namespace muster
