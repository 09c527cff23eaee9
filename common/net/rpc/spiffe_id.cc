#include "common/net/rpc/spiffe_id.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

constexpr absl::string_view kTrustDomain = "spiffe://muster/";
constexpr size_t kJobBytesMax = 128;
constexpr size_t kQuotedBytesMax = 200;

bool IsRole(absl::string_view text) {
  return text == "chief" || text == "worker" || text == "ps" ||
         text == "evaluator" || text == "operator";
}

}  // namespace

std::string SpiffeId::ToString() const {
  return absl::StrCat(kTrustDomain, job, "/", role, "/", index);
}

std::string SpiffeId::TaskName() const {
  return absl::StrCat(role, " ", index);
}

bool IsJobName(absl::string_view name) {
  return !name.empty() && name.size() <= kJobBytesMax &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
         });
}

absl::StatusOr<SpiffeId> ParseSpiffeId(absl::string_view uri) {
  SpiffeId id;
  absl::string_view path = uri;
  if (absl::ConsumePrefix(&path, kTrustDomain)) {
    const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
    // "1" and "01" must not be two names of one task.
    if (parts.size() == 3 && IsJobName(parts[0]) && IsRole(parts[1]) &&
        absl::SimpleAtoi(parts[2], &id.index) && id.index >= 0 &&
        absl::StrCat(id.index) == parts[2]) {
      id.job = std::string(parts[0]);
      id.role = std::string(parts[1]);
      return id;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", absl::CHexEscape(uri.substr(0, kQuotedBytesMax)),
      "\" names no task; expected spiffe://muster/JOB/ROLE/INDEX, as in "
      "spiffe://muster/mnist/worker/1"));
}

}  // namespace muster
