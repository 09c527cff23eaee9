#include "ps/client/wire_update_kind.h"

#include <cstdlib>
#include <utility>

#include "common/core/base/check.h"
#include "proto/parameter_server.pb.h"

namespace muster {
namespace {

constexpr std::pair<UpdateKind, proto::UpdateKind> kKinds[] = {
    {UpdateKind::kAssign, proto::ASSIGN},
    {UpdateKind::kAssignAdd, proto::ASSIGN_ADD},
    {UpdateKind::kAssignSub, proto::ASSIGN_SUB},
    {UpdateKind::kScatterUpdate, proto::SCATTER_UPDATE},
    {UpdateKind::kScatterAdd, proto::SCATTER_ADD},
    {UpdateKind::kScatterSub, proto::SCATTER_SUB},
    {UpdateKind::kApplyGradient, proto::APPLY_GRADIENT},
    {UpdateKind::kApplySparseGradient, proto::APPLY_SPARSE_GRADIENT},
};

}  // namespace

proto::UpdateKind WireKind(UpdateKind kind) {
  for (const auto& [update, wire] : kKinds) {
    if (update == kind) return wire;
  }
  MUSTER_CHECK(false && "no such kind");
  std::abort();
}

std::optional<UpdateKind> UpdateKindOf(proto::UpdateKind kind) {
  for (const auto& [update, wire] : kKinds) {
    if (wire == kind) return update;
  }
  return std::nullopt;
}

}  // namespace muster
