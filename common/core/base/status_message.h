#ifndef COMMON_CORE_BASE_STATUS_MESSAGE_H_
#define COMMON_CORE_BASE_STATUS_MESSAGE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace muster {

// Returns `status` with another message. It keeps its code and all its
// payloads, which `absl::Status(status.code(), message)` loses. OK stays OK.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

}  // namespace muster

#endif  // COMMON_CORE_BASE_STATUS_MESSAGE_H_
