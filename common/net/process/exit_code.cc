#include "common/net/process/exit_code.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr char kPayloadUrl[] = "type.muster/ExitCode";

}  // namespace

absl::Status WithExitCode(absl::Status status, ExitCode code) {
  if (status.ok()) return status;
  status.SetPayload(kPayloadUrl,
                    absl::Cord(absl::StrCat(static_cast<int>(code))));
  return status;
}

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return ExitCode::kOk;
  const auto payload = status.GetPayload(kPayloadUrl);
  int code = 0;
  if (payload.has_value() && absl::SimpleAtoi(std::string(*payload), &code)) {
    for (ExitCode known : {ExitCode::kUsage, ExitCode::kInterrupted,
                           ExitCode::kRestartMe, ExitCode::kTerminated}) {
      if (code == static_cast<int>(known)) return known;
    }
  }
  return ExitCode::kFailure;
}

}  // namespace muster
