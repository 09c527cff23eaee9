#ifndef COMMON_COMPUTE_GRAPH_OP_REGISTRY_H_
#define COMMON_COMPUTE_GRAPH_OP_REGISTRY_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

namespace muster {

struct GradientContext;  // common/compute/graph/graph_builder.h

// What a node does besides computing its outputs from its inputs.
enum class OpEffect {
  kNone,
  kReadVariable,    // Reads the variable named by kVariableAttribute.
  kUpdateVariable,  // Changes it.
  // Says something about the step that later updates of any variable depend on.
  kDescribeStep,
  // Takes part in a collective: all replicas run these nodes, all of them, in
  // the order in which they were traced.
  kCommunicate,
};

// What a type rule may look at. While tracing, extents may be unknown; when a
// plan is made every input extent is known, and then every output extent must
// come out known.
struct TypeRuleArguments {
  absl::Span<const TensorType> inputs;
  const Attributes& attributes;
  // The types of the same inputs in every replica, in replica order, this one's
  // among them. Empty while tracing, when nobody knows them.
  absl::Span<const std::vector<TensorType>> replica_inputs;
};

// One kind of node: how many inputs, what types come out, how it is
// differentiated.
struct OpSchema {
  static constexpr int kAnyCount = -1;

  // The types of the outputs. Errors are kInvalidArgument and say what is
  // expected of which input; the registry adds the op and all input types.
  using TypeRule =
      absl::StatusOr<std::vector<TensorType>> (*)(const TypeRuleArguments&);

  // Adds nodes that compute the gradients of the inputs and hands them to the
  // context. Null when an op has no gradient: nothing flows through it.
  using GradientRule = void (*)(GradientContext&);

  std::string name;
  int input_count_min = 0;
  int input_count_max = 0;  // kAnyCount for no bound.
  TypeRule type_rule = nullptr;
  GradientRule gradient_rule = nullptr;
  OpEffect effect = OpEffect::kNone;
};

// The operations a graph may consist of. Filled once, then constant and so
// thread-safe.
class OpRegistry {
 public:
  // Knows Parameter and Constant.
  OpRegistry();

  // Registering a name twice is a bug and aborts.
  void Register(OpSchema schema);

  // Null when there is no such op.
  const OpSchema* Find(absl::string_view op) const;

  // Applies the type rule of `op`.
  //   kInvalidArgument  no such op, wrong number of inputs, or the rule
  //                     refuses; the message names op, node, inputs and types
  absl::StatusOr<std::vector<TensorType>> InferTypes(
      absl::string_view op, absl::string_view node_name,
      const TypeRuleArguments& arguments) const;

  // In the order of their names.
  std::vector<const OpSchema*> AllSchemas() const;

 private:
  absl::flat_hash_map<std::string, OpSchema> schemas_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_GRAPH_OP_REGISTRY_H_
