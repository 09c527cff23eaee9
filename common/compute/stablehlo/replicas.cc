#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/stablehlo/hlo_operators.h"
#include "common/compute/stablehlo/translations.h"

namespace muster {

HloValue ReplicaCountToHlo(const HloNode& node) {
  return node.builder().Constant(node.output(), node.step().replica_count);
}

HloValue ReplicaIdToHlo(const HloNode& node) {
  if (node.step().replica_count == 1) {
    return node.builder().Constant(node.output(), 0);
  }
  return Convert(
      node.builder().Emit("stablehlo.replica_id", {}, {"ui32", Shape()}),
      node.output().element);
}

absl::StatusOr<HloValues> AllReduceToHlo(const HloNode& node) {
  const std::string reduction = node.Attribute<std::string>("reduction", "sum");
  const int replica_count = node.step().replica_count;
  const HloValue& x = node.input(0);
  if (reduction == "max") {
    return HloValues{AllReduce(HloReduction::kMax, x, replica_count)};
  }
  if (reduction == "min") {
    return HloValues{AllReduce(HloReduction::kMin, x, replica_count)};
  }
  if (reduction == "prod") {
    return HloValues{AllReduce(HloReduction::kProduct, x, replica_count)};
  }
  const HloValue sum = AllReduce(HloReduction::kSum, x, replica_count);
  return HloValues{
      reduction == "mean" && replica_count > 1 ? sum / replica_count : sum};
}

}  // namespace muster
