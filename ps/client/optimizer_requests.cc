#include "ps/client/optimizer_requests.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "proto/parameter_server.pb.h"

namespace muster {
namespace {

// Removes from `request` what a newer request replaces: the optimizer of
// `variables`, and the default if `replaces_default`. Returns true if nothing
// is left of `request`.
bool RemoveReplaced(const absl::flat_hash_set<absl::string_view>& variables,
                    bool replaces_default,
                    proto::SetOptimizerRequest* request) {
  if (replaces_default) request->set_is_default(false);
  auto& names = *request->mutable_variables();
  names.erase(std::remove_if(names.begin(), names.end(),
                             [&](const std::string& name) {
                               return variables.contains(name);
                             }),
              names.end());
  return names.empty() && !request->is_default();
}

}  // namespace

OptimizerRequests::OptimizerRequests() = default;
OptimizerRequests::~OptimizerRequests() = default;
OptimizerRequests::OptimizerRequests(const OptimizerRequests&) = default;
OptimizerRequests::OptimizerRequests(OptimizerRequests&&) noexcept = default;
OptimizerRequests& OptimizerRequests::operator=(const OptimizerRequests&) =
    default;
OptimizerRequests& OptimizerRequests::operator=(OptimizerRequests&&) noexcept =
    default;

void OptimizerRequests::Add(const proto::SetOptimizerRequest& request) {
  const absl::flat_hash_set<absl::string_view> variables(
      request.variables().begin(), request.variables().end());
  std::erase_if(requests_, [&](proto::SetOptimizerRequest& earlier) {
    return RemoveReplaced(variables, request.is_default(), &earlier);
  });
  requests_.push_back(request);
}

void OptimizerRequests::Reset(const std::string& variable) {
  std::erase_if(requests_, [&](proto::SetOptimizerRequest& request) {
    return RemoveReplaced({variable}, /*replaces_default=*/false, &request);
  });
}

bool OptimizerRequests::Contains(
    const proto::SetOptimizerRequest& request) const {
  const std::string wanted = request.SerializeAsString();
  return std::any_of(requests_.begin(), requests_.end(),
                     [&](const proto::SetOptimizerRequest& earlier) {
                       return earlier.SerializeAsString() == wanted;
                     });
}

}  // namespace muster
