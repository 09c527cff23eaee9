#include "coordinator/fatal_refusal.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/net/process/exit_code.h"
#include "common/net/rpc/identity.h"

namespace muster {

absl::Status FatalRefusal(const ReconnectingStream& stream,
                          absl::string_view role,
                          absl::StatusCode disagreement_code,
                          const absl::Status& why) {
  if (IsOfEarlierCoordinator(why)) return ReplacedByNewerCoordinator(why);
  std::string text;
  if (why.code() == disagreement_code) {
    text = std::string(why.message());
  } else if (absl::IsUnimplemented(why)) {
    text = absl::StrCat(stream.channel().peer(), " is no ", role, ": ",
                        stream.Reason(why),
                        "; its address is listed under the wrong role. Give "
                        "all tasks the same \"cluster\" in TF_CONFIG");
  } else {
    return absl::OkStatus();
  }
  return WithExitCode(absl::FailedPreconditionError(text), ExitCode::kUsage);
}

absl::Status ServesAnotherCoordinator(absl::string_view who) {
  return WithExitCode(
      absl::AlreadyExistsError(absl::StrCat(
          "another coordinator uses this cluster: ", who,
          "; stop that coordinator first, or use a different cluster")),
      ExitCode::kRestartMe);
}

absl::Status ReplacedByNewerCoordinator(const absl::Status& why) {
  return WithExitCode(
      absl::AbortedError(absl::StrCat(
          "a newer coordinator of this job has replaced this one: ",
          why.message())),
      ExitCode::kFailure);
}

}  // namespace muster
