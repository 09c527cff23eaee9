#include "common/net/rpc/method_access.h"

#include <algorithm>
#include <iterator>
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

namespace {

constexpr int kChief = 1;
constexpr int kWorker = 2;
constexpr int kOperator = 4;
constexpr int kPs = 8;

struct MethodAccess {
  absl::string_view method;
  int callers;
  bool checks_each_message = true;
};

// Evaluators call no task, and parameter servers only those that hold their
// copies. Without parameter servers, the chief trains like the workers. An
// operator is not a task of the job, but a person or a script that uses
// musterctl.
constexpr MethodAccess kMethodAccess[] = {
    {"/muster.Collectives/OpenLane", kChief | kWorker},
    {"/muster.Job/Checkpoint", kChief | kOperator},
    {"/muster.Job/Drain", kChief | kOperator},
    {"/muster.Job/Stop", kChief | kOperator},
    {"/muster.Job/Trace", kChief | kOperator},
    {"/muster.ParameterServer/AssignAverages", kChief},
    {"/muster.ParameterServer/Copy", kPs, /*checks_each_message=*/false},
    {"/muster.ParameterServer/Create", kChief},
    {"/muster.ParameterServer/Describe", kChief | kWorker},
    {"/muster.ParameterServer/Exchange", kChief | kWorker},
    {"/muster.ParameterServer/Freeze", kChief},
    {"/muster.ParameterServer/KeepCopy", kChief},
    {"/muster.ParameterServer/Restore", kChief},
    {"/muster.ParameterServer/RollBack", kChief},
    {"/muster.ParameterServer/Save", kChief},
    {"/muster.ParameterServer/SetOptimizer", kChief},
    {"/muster.ParameterServer/Share", kChief | kWorker},
    {"/muster.ParameterServer/TakeOver", kChief},
    {"/muster.ParameterServer/Watch", kChief},
    {"/muster.PeerGroup/Converse", kChief | kWorker},
    {"/muster.PeerGroup/Identify", kChief | kWorker},
    {"/muster.Task/End", kChief},
    {"/muster.Task/OpenLocalConnection", kChief | kWorker | kOperator},
    {"/muster.Task/Trace", kChief | kWorker},
    {"/muster.Worker/FetchResult", kChief},
    {"/muster.Worker/Session", kChief},
};

int BitOf(absl::string_view role) {
  if (role == "chief") return kChief;
  if (role == "worker") return kWorker;
  if (role == "operator") return kOperator;
  if (role == "ps") return kPs;
  return 0;
}

// Returns null if the method is not in the table.
const MethodAccess* Find(absl::string_view method) {
  const auto* const found = std::find_if(
      std::begin(kMethodAccess), std::end(kMethodAccess),
      [&](const MethodAccess& access) { return access.method == method; });
  return found == std::end(kMethodAccess) ? nullptr : found;
}

}  // namespace

bool ChecksEachMessage(absl::string_view method) {
  const MethodAccess* const access = Find(method);
  return access == nullptr || access->checks_each_message;
}

bool MayCall(absl::string_view role, absl::string_view method) {
  const MethodAccess* const access = Find(method);
  return access != nullptr && (access->callers & BitOf(role)) != 0;
}

}  // namespace muster
