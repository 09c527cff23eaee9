#include "common/net/process/exit_code.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr char kPayloadUrl[] = "type.muster/ExitCode";

ExitCode KnownFailure(int code) {
  for (ExitCode known : {ExitCode::kUsage, ExitCode::kInterrupted,
                         ExitCode::kRestartMe, ExitCode::kTerminated}) {
    if (code == static_cast<int>(known)) return known;
  }
  return ExitCode::kFailure;
}

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
    return KnownFailure(code);
  }
  return ExitCode::kFailure;
}

ExitCode ExitCodeOfOthers(ExitCode code) {
  switch (code) {
    case ExitCode::kRestartMe:
    case ExitCode::kInterrupted:
    case ExitCode::kTerminated:
      return ExitCode::kRestartMe;
    case ExitCode::kOk:
    case ExitCode::kFailure:
    case ExitCode::kUsage:
      break;
  }
  return code;
}

absl::Status JobEndStatus(int exit_code, absl::string_view reason) {
  if (exit_code == 0) return absl::OkStatus();
  return WithExitCode(absl::AbortedError(absl::StrCat(
                          "the coordinator has ended the job",
                          reason.empty() ? "" : absl::StrCat(": ", reason))),
                      KnownFailure(exit_code));
}

}  // namespace muster
