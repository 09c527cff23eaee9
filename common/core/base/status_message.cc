#include "common/core/base/status_message.h"

#include "absl/strings/cord.h"

namespace muster {

absl::Status WithMessage(const absl::Status& status,
                         absl::string_view message) {
  absl::Status changed(status.code(), message);
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    changed.SetPayload(url, value);
  });
  return changed;
}

}  // namespace muster
