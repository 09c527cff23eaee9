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

// What decides the outputs of an op besides its inputs.
enum class OpReads {
  kInputsOnly,  // Nothing: equal inputs give equal outputs.
  kGraph,       // The graph or its caller; no kernel computes the op.
  kStep,        // The seed of the step.
  // Where the rows of input 1 stand in the global batch; nothing where there is
  // no input 1. Only random numbers are like this.
  kBatchRows,
  kReplicas,  // The other replicas, or which of them this is.
};

// How kernels compute an op on bfloat16.
enum class Bfloat16Policy {
  // Inputs are widened, the float32 kernel runs, and outputs are rounded.
  kThroughFloat32,
  // In bfloat16: the op moves or converts elements, draws them, or leaves them
  // to other replicas.
  kDirect,
};

// Why no golden case compares an op with TensorFlow's. An op that reads more
// than its inputs needs no exemption: there is nothing to compare it with.
enum class GoldenExemption {
  kNone,
  // Only gradient rules use the op, and TensorFlow has none that computes the
  // same. Finite differences check it, alone or in the gradients it is part of.
  kGradientHelper,
  // Part of a random number generator that TensorFlow does not have.
  kOwnGenerator,
};

// What the tests that try every op feed this one with.
struct OpSamples {
  struct Range {
    double low = -8;
    double high = 8;
  };
  // Between which numbers the elements of each input lie: low <= x < high.
  // Inputs beyond the list have the default range.
  std::vector<Range> ranges;
  // Attributes to try; one attempt without any where there are none.
  std::vector<Attributes> attributes;
};

// One kind of node: how many inputs, what types come out, how it is
// differentiated, and everything else that rewrites, plans, kernels and tests
// ask about an op.
struct OpSchema {
  static constexpr int kAnyCount = -1;
  static constexpr int kNoInput = -1;

  // The types of the outputs. Errors are kInvalidArgument and say what is
  // expected of which input; the registry adds the op and all input types.
  using TypeRule =
      absl::StatusOr<std::vector<TensorType>> (*)(const TypeRuleArguments&);

  // Adds nodes that compute the gradients of the inputs and hands them to the
  // context. Null when an op has no gradient: nothing flows through it, or
  // `gradient_refusal` is reported.
  using GradientRule = void (*)(GradientContext&);

  std::string name;
  int input_count_min = 0;
  int input_count_max = 0;  // kAnyCount for no bound.
  TypeRule type_rule = nullptr;
  GradientRule gradient_rule = nullptr;
  // Why the op cannot be differentiated; Gradients() reports it as
  // kUnimplemented when a gradient reaches the op.
  std::string gradient_refusal;
  OpEffect effect = OpEffect::kNone;
  OpReads reads = OpReads::kInputsOnly;

  // Element i of the only output is a function of element i of each input,
  // where inputs may be broadcast.
  bool is_elementwise = false;
  // The only output is input 0 under another shape, or itself: plans share its
  // memory and run no kernel.
  bool is_view = false;
  // The only output is input 0 wherever their types are the same.
  bool keeps_unchanged_type = false;
  // The last input, where only its type matters and kernels do without it.
  int type_input = kNoInput;
  // The input whose number of rows in all replicas decides the output types.
  int replica_rows_input = kNoInput;
  Bfloat16Policy bfloat16 = Bfloat16Policy::kThroughFloat32;

  OpSamples samples;
  GoldenExemption golden_exemption = GoldenExemption::kNone;

  // Whether kernels compute the op. The runtime does the others itself.
  bool has_kernel() const {
    return reads != OpReads::kGraph &&
           (effect == OpEffect::kNone || effect == OpEffect::kCommunicate);
  }
  bool uses_variable() const {
    return effect == OpEffect::kReadVariable ||
           effect == OpEffect::kUpdateVariable;
  }
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

  // For typed graphs, which may hold ops that only kernels know: these have a
  // schema without effects and traits.
  const OpSchema& FindOrPlain(absl::string_view op) const;

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
