#ifndef COMMON_COMPUTE_RUNTIME_VARIABLE_USES_H_
#define COMMON_COMPUTE_RUNTIME_VARIABLE_USES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/variables/variable_session.h"

namespace muster {

// Ops that a VariableSession executes instead of a kernel.
inline constexpr absl::string_view kReadVariableOp = "ReadVariable";
inline constexpr absl::string_view kGatherVariableOp = "GatherVariable";

struct VariableUpdateOp {
  UpdateKind kind;
  int value_input = 0;
  int indices_input = -1;  // -1 if it takes none.
};

// Returns nothing if `op` does not update a variable.
std::optional<VariableUpdateOp> FindVariableUpdateOp(absl::string_view op);

// Returns the name of the variable that a variable op uses.
std::string VariableOf(const Node& node);

// Returns how the graph uses each variable, in the order of first use.
std::vector<VariableUse> FindVariableUses(const Graph& graph,
                                          const OpRegistry& ops);

}  // namespace muster

#endif  // COMMON_COMPUTE_RUNTIME_VARIABLE_USES_H_
