#include "common/net/process/version.h"

#include "absl/strings/str_cat.h"

namespace muster {

absl::Status CheckVersionsAgree(absl::string_view peer,
                                absl::string_view there) {
  if (there == kVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      peer, " runs Muster ", there.empty() ? "of an unknown version" : there,
      " and this task Muster ", kVersion,
      "; start all tasks of a job with the same version"));
}

}  // namespace muster
