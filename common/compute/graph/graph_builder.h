#ifndef COMMON_COMPUTE_GRAPH_GRAPH_BUILDER_H_
#define COMMON_COMPUTE_GRAPH_GRAPH_BUILDER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/op_registry.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

namespace muster {

class GraphBuilder;

// A tensor that the graph will compute. Traced code operates on Values. Cheap
// to copy; must not outlive its builder.
//
// The builder keeps the first error of the tracing. Values that depend on an
// error are poisoned: they can be used, and Build() returns the error. So model
// code needs no error checks.
class Value {
 public:
  Value() = default;  // Belongs to no graph.

  // False for poisoned and default-constructed values; then type() is invalid.
  bool ok() const { return builder_ != nullptr && output_.node >= 0; }
  GraphBuilder* builder() const { return builder_; }
  NodeOutput output() const { return output_; }

  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }

 private:
  friend class GraphBuilder;
  Value(GraphBuilder* builder, NodeOutput output)
      : builder_(builder), output_(output) {}

  GraphBuilder* builder_ = nullptr;
  NodeOutput output_;  // node == -1 if poisoned.
};

// The gradient of a lookup: rows `indices` of a tensor of type `dense` whose
// other rows are zero. Rows with equal indices are summed.
//
// Equivalent to: tf.IndexedSlices.
struct IndexedSlices {
  Value values;   // [n, ...]
  Value indices;  // [n], int32 or int64
  TensorType dense;
};

// Traces one graph. Not thread-safe.
//
// Adds control inputs so that reads and updates of one variable, and
// collectives, run in the order in which they were traced, and so that updates
// run after earlier ops with OpEffect::kDescribeStep.
class GraphBuilder {
 public:
  // `registry` is borrowed and must outlive this object.
  GraphBuilder(const OpRegistry* registry, absl::string_view name);

  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  // Adds the next parameter of the graph. `attributes` may describe the source
  // of its value.
  Value Parameter(absl::string_view name, const TensorType& type,
                  Attributes attributes = {});

  Value Constant(Tensor value);

  // Adds a node. Errors are kept in status(); poisoned inputs give poisoned
  // outputs. Op() is for ops with one output.
  Value Op(absl::string_view op, absl::Span<const Value> inputs,
           Attributes attributes = {});
  std::vector<Value> OpWithOutputs(absl::string_view op,
                                   absl::Span<const Value> inputs,
                                   Attributes attributes = {},
                                   Subgraphs subgraphs = {});

  // Begins to trace a subgraph, and returns its builder, which this builder
  // owns. Until EndSubgraph(), nodes that are added to either builder go to the
  // subgraph, so traced code may use the values of both. The values of this
  // graph that the subgraph uses become its parameters, after those that are
  // added with Parameter(). State that it reads without inputs, such as
  // variables and the seed of the step, is read in this graph, and becomes a
  // parameter, too.
  GraphBuilder& BeginSubgraph(absl::string_view name);

  struct Subgraph {
    Graph graph;
    // The values of this graph that the captured parameters stand for.
    std::vector<Value> captured;
    bool ok = false;  // False if a result depends on an error.
  };
  // Ends the subgraph that BeginSubgraph() began. `results` are values of
  // either graph. Reports the errors of the subgraph.
  Subgraph EndSubgraph(absl::Span<const Value> results);

  // Adds the nodes of `graph`, a subgraph, with `arguments` for its parameters.
  // Returns its results.
  std::vector<Value> Inline(const Graph& graph,
                            absl::Span<const Value> arguments);

  // Makes every node that is added from now on run after `value`'s node.
  void RunAfter(Value value);

  // Adds `value` to the results of the graph.
  void AddResult(Value value);

  // Keeps `status` if it is the first error.
  void ReportError(absl::Status status);
  const absl::Status& status() const { return status_; }

  // The nodes traced so far, for code that analyzes them, such as autodiff.
  const Graph& graph() const { return graph_; }
  const OpRegistry& registry() const { return *registry_; }
  Value ValueOf(NodeOutput output) { return Value(this, output); }

  // Returns the graph, or the first error.
  absl::StatusOr<Graph> Build() &&;

  // Nodes added during the lifetime of this object are named "<scope>/...".
  class NameScope {
   public:
    NameScope(GraphBuilder* builder, absl::string_view scope);
    ~NameScope();
    NameScope(const NameScope&) = delete;
    NameScope& operator=(const NameScope&) = delete;

   private:
    GraphBuilder* const builder_;
    const std::string outer_;
  };

 private:
  // The nodes that the next access of a variable must run after.
  struct VariableOrder {
    int last_update = -1;
    std::vector<int> reads_since;
  };

  Value Poisoned() { return Value(this, NodeOutput()); }
  // The builder of the innermost subgraph that is being traced.
  GraphBuilder& Innermost();
  // As OpWithOutputs(), but adds the node to this graph.
  std::vector<Value> AddNode(absl::string_view op,
                             absl::Span<const Value> inputs,
                             Attributes attributes, Subgraphs subgraphs);
  // Adds the node of an op that cannot be part of a subgraph to the enclosing
  // graph.
  std::vector<Value> AddNodeOutside(absl::string_view op,
                                    absl::Span<const Value> inputs,
                                    Attributes attributes);
  // Returns `value` as a value of this graph; without a builder if it belongs
  // to none of the enclosing graphs.
  Value Capture(Value value);
  std::string UniqueName(absl::string_view base);
  void OrderEffect(OpEffect effect, Node* node);
  void OrderVariableEffect(OpEffect effect, Node* node);

  const OpRegistry* const registry_;
  Graph graph_;
  absl::Status status_;
  std::string scope_;  // "" or ends in '/'.
  absl::flat_hash_map<std::string, int> name_counts_;
  absl::flat_hash_map<std::string, VariableOrder> variable_orders_;
  int last_description_ = -1;    // The last kDescribeStep node; -1 if none.
  int last_communication_ = -1;  // -1 if none.
  std::vector<int> run_after_;

  GraphBuilder* outer_ = nullptr;  // The enclosing builder, for a subgraph.
  GraphBuilder* inner_ = nullptr;  // While a subgraph is being traced.
  bool has_ended_ = false;         // True after EndSubgraph(), for a subgraph.
  std::vector<std::unique_ptr<GraphBuilder>> subgraphs_;
  std::vector<Value> captured_;                       // Values of `outer_`.
  std::map<std::pair<int, int>, Value> captured_as_;  // By node and output.
};

// Returns the gradient of sum_i targets[i] * target_gradients[i] by each
// source, of the type of the source; zeros if there is none.
using DifferentiateFunction = std::vector<Value> (*)(
    absl::Span<const Value> targets, absl::Span<const Value> target_gradients,
    absl::Span<const Value> sources);

// The input of a gradient rule: one forward node and the gradients of its
// outputs.
struct GradientContext {
  GraphBuilder& builder;
  const Node& node;  // A copy, which stays valid while nodes are added.
  // For ops with subgraphs.
  DifferentiateFunction differentiate = nullptr;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  // One for each output; a default-constructed Value stands for no gradient.
  std::vector<Value> output_gradients;
  std::vector<bool> needs_gradient;  // By input.

  // Set by the rule, one for each input; a default-constructed Value stands for
  // no gradient.
  std::vector<Value> input_gradients;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_GRAPH_GRAPH_BUILDER_H_
