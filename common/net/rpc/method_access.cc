#include "common/net/rpc/method_access.h"

#include <algorithm>
#include <iterator>

namespace muster {
namespace {

constexpr int kChief = 1;
constexpr int kWorker = 2;
constexpr int kOperator = 4;

struct MethodAccess {
  absl::string_view method;
  int callers;
};

// Parameter servers and evaluators call no task. Without parameter servers, the
// chief trains like the workers. An operator is not a task of the job, but a
// person or a script that uses musterctl.
constexpr MethodAccess kMethodAccess[] = {
    {"/muster.Collectives/OpenLane", kChief | kWorker},
    {"/muster.Job/Checkpoint", kChief | kOperator},
    {"/muster.Job/Drain", kChief | kOperator},
    {"/muster.Job/Stop", kChief | kOperator},
    {"/muster.Job/Trace", kChief | kOperator},
    {"/muster.ParameterServer/AssignAverages", kChief},
    {"/muster.ParameterServer/Create", kChief},
    {"/muster.ParameterServer/Describe", kChief | kWorker},
    {"/muster.ParameterServer/Exchange", kChief | kWorker},
    {"/muster.ParameterServer/Freeze", kChief},
    {"/muster.ParameterServer/Restore", kChief},
    {"/muster.ParameterServer/RollBack", kChief},
    {"/muster.ParameterServer/Save", kChief},
    {"/muster.ParameterServer/SetOptimizer", kChief},
    {"/muster.ParameterServer/Share", kChief | kWorker},
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
  return 0;
}

}  // namespace

bool MayCall(absl::string_view role, absl::string_view method) {
  const auto* const found = std::find_if(
      std::begin(kMethodAccess), std::end(kMethodAccess),
      [&](const MethodAccess& access) { return access.method == method; });
  return found != std::end(kMethodAccess) &&
         (found->callers & BitOf(role)) != 0;
}

}  // namespace muster
