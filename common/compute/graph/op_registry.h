#ifndef COMMON_COMPUTE_GRAPH_OP_REGISTRY_H_
#define COMMON_COMPUTE_GRAPH_OP_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

namespace muster {

struct GradientContext;  // common/compute/graph/graph_builder.h

// The side effect of a node.
enum class OpEffect {
  kNone,
  kReadVariable,    // Reads the variable named by kVariableAttribute.
  kUpdateVariable,  // Updates that variable.
  // Sets a property of the step on which later updates of any variable depend.
  kDescribeStep,
  // Takes part in a collective. All replicas run all of these nodes in the
  // order in which they were traced.
  kCommunicate,
};

// The input of a type rule. Extents may be unknown while tracing. When a plan
// is made, every input extent is known, and the rule must return known output
// extents.
struct TypeRuleArguments {
  absl::Span<const TensorType> inputs;
  const Attributes& attributes;
  // The types of these inputs in every replica, in replica order, including
  // this one. Empty while tracing, when they are not known.
  absl::Span<const std::vector<TensorType>> replica_inputs;
  // The subgraphs of the node. InferTypes() checks that their number is that of
  // the schema, and sets the registry.
  absl::Span<const std::shared_ptr<const Graph>> subgraphs;
  const class OpRegistry* registry = nullptr;
};

// The state, besides its inputs, on which the outputs of an op depend.
enum class OpReads {
  kInputsOnly,  // Nothing: equal inputs give equal outputs.
  kGraph,       // The graph or its caller. No kernel computes the op.
  kStep,        // The seed of the step.
  // The positions of the rows of input 1 in the global batch; nothing if there
  // is no input 1. Used for random numbers only.
  kBatchRows,
  kReplicas,  // The other replicas, or this replica's index.
  kPlugin,    // The compiler of programs (common/core/pjrt) that is installed.
};

// How kernels compute an op on bfloat16 and float16.
enum class LowPrecisionPolicy {
  // Inputs are converted to float32, the float32 kernel runs, and outputs are
  // rounded.
  kThroughFloat32,
  // The kernel works on elements of 16 bits: the op moves, converts or draws
  // elements, or communicates them.
  kDirect,
};

// Why no golden case compares an op with TensorFlow's. Ops that depend on more
// than their inputs need no exemption, because they have no reference results.
enum class GoldenExemption {
  kNone,
  // Only gradient rules use the op, and TensorFlow has no equivalent. Finite
  // differences check it, directly or through the gradients that use it.
  kGradientHelper,
  // Part of a random number generator that TensorFlow does not have.
  kOwnGenerator,
  // Part of layers of Keras, whose golden cases compare what it computes.
  kLayer,
};

// The inputs that generic tests use for this op.
struct OpSamples {
  struct Range {
    double low = -8;
    double high = 8;
  };
  // The range of the elements of each input: low <= x < high. Inputs beyond the
  // list have the default range.
  std::vector<Range> ranges;
  // The lists of attributes to test. Empty: one test without attributes.
  std::vector<Attributes> attributes;
};

// The definition of an op: its inputs and outputs, its gradient, and the
// properties that rewrites, plans, kernels and tests depend on.
struct OpSchema {
  static constexpr int kAnyCount = -1;
  static constexpr int kNoInput = -1;

  // Returns the types of the outputs. Errors are kInvalidArgument and name the
  // input and what was expected; the registry adds the op and all input types.
  using TypeRule =
      absl::StatusOr<std::vector<TensorType>> (*)(const TypeRuleArguments&);

  // Adds nodes that compute the gradients of the inputs and stores them in the
  // context. Null if the op has no gradient: then no gradient flows through it,
  // or `gradient_refusal` is reported.
  using GradientRule = void (*)(GradientContext&);

  // Returns the types of the parameters of each subgraph. Errors as TypeRule.
  using SubgraphRule =
      absl::StatusOr<std::vector<TensorType>> (*)(const TypeRuleArguments&);

  std::string name;
  int input_count_min = 0;
  int input_count_max = 0;  // kAnyCount for no limit.
  TypeRule type_rule = nullptr;
  GradientRule gradient_rule = nullptr;
  // Why the op cannot be differentiated. Gradients() reports it as
  // kUnimplemented if a gradient reaches the op.
  std::string gradient_refusal;
  OpEffect effect = OpEffect::kNone;
  OpReads reads = OpReads::kInputsOnly;

  // The number of subgraphs. All of them have the same parameters.
  int subgraph_count = 0;
  SubgraphRule subgraph_rule = nullptr;  // Null if there are none.

  // True if element i of the only output depends only on element i of each
  // input, after broadcasting.
  bool is_elementwise = false;
  // True if the only output is input 0, possibly with another shape. Plans
  // share its memory and run no kernel.
  bool is_view = false;
  // True if the only output equals input 0 whenever their types are equal.
  bool keeps_unchanged_type = false;
  // The index of the last input if only its type matters. It is not passed to
  // kernels.
  int type_input = kNoInput;
  // The input whose total number of rows over all replicas determines the
  // output types.
  int replica_rows_input = kNoInput;
  LowPrecisionPolicy low_precision = LowPrecisionPolicy::kThroughFloat32;

  // Returns the name of the op with these attributes as an activation, which
  // kernels apply to the results of a matrix product before they write them:
  // the attribute "activation" of fused ops. Null if kernels cannot apply it.
  using ActivationName = std::string (*)(const Attributes&);
  ActivationName activation_name = nullptr;
  // The op that computes the gradient from dy and x, if it may read the output
  // of this op in place of x, because it only tests where this op has limited
  // x. Kernels apply such ops to convolutions and normalizations, too.
  std::string gradient_by_either;

  OpSamples samples;
  GoldenExemption golden_exemption = GoldenExemption::kNone;

  // True if a kernel computes the op. The runtime implements the others.
  bool has_kernel() const {
    return reads != OpReads::kGraph &&
           (effect == OpEffect::kNone || effect == OpEffect::kCommunicate);
  }
  // True if a subgraph may contain the op. The data determine how often
  // branches and loops run, so they have no effects and do not wait for other
  // replicas.
  bool may_be_in_subgraph() const {
    return effect == OpEffect::kNone && reads != OpReads::kStep &&
           reads != OpReads::kReplicas;
  }
  bool uses_variable() const {
    return effect == OpEffect::kReadVariable ||
           effect == OpEffect::kUpdateVariable;
  }
};

// The ops that graphs may use. Filled once, then constant and therefore
// thread-safe.
class OpRegistry {
 public:
  // Registers Parameter and Constant.
  OpRegistry();

  // Aborts if the name is already registered.
  void Register(OpSchema schema);

  // Returns null if there is no such op.
  const OpSchema* Find(absl::string_view op) const;

  // As Find(), but returns a schema without effects and properties for ops that
  // only kernels define. For graphs whose types are already known.
  const OpSchema& FindOrPlain(absl::string_view op) const;

  // Applies the type rule of `op`.
  //   kInvalidArgument  no such op, wrong number of inputs, or an error of the
  //                     rule; the message names op, node, inputs and types
  absl::StatusOr<std::vector<TensorType>> InferTypes(
      absl::string_view op, absl::string_view node_name,
      const TypeRuleArguments& arguments) const;

  // Returns all schemas, sorted by name.
  std::vector<const OpSchema*> AllSchemas() const;

 private:
  absl::flat_hash_map<std::string, OpSchema> schemas_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_GRAPH_OP_REGISTRY_H_
