#ifndef COMMON_COMPUTE_GRAPH_GRAPH_BUILDER_H_
#define COMMON_COMPUTE_GRAPH_GRAPH_BUILDER_H_

#include <string>
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

// A tensor that a graph will compute: what traced code adds, multiplies and
// passes on. Cheap to copy; lives no longer than its builder.
//
// The first mistake while tracing is kept by the builder and every Value that
// depends on it is poisoned, so model code reads like math and Build() tells.
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
  NodeOutput output_;  // node == -1 when poisoned.
};

// Rows `indices` of a larger tensor of type `dense`; the rest is zero. The
// gradient of a lookup. Indices may repeat: then the rows add up.
struct IndexedSlices {
  Value values;   // [n, ...]
  Value indices;  // [n], int32 or int64
  TensorType dense;
};

// Traces one graph. Not thread-safe.
//
// Reads and updates of one variable run in the order in which they were traced,
// and so do collectives, and an update runs after what was said about the step
// before it: the builder adds the control inputs that say so.
class GraphBuilder {
 public:
  // `registry` is borrowed and must outlive this object.
  GraphBuilder(const OpRegistry* registry, absl::string_view name);

  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  // The next argument of the graph. `attributes` may say more about where the
  // value comes from.
  Value Parameter(absl::string_view name, const TensorType& type,
                  Attributes attributes = {});

  Value Constant(Tensor value);

  // Adds a node. A mistake is kept in status(); poisoned inputs give poisoned
  // outputs. Op() is for ops with one output.
  Value Op(absl::string_view op, absl::Span<const Value> inputs,
           Attributes attributes = {});
  std::vector<Value> OpWithOutputs(absl::string_view op,
                                   absl::Span<const Value> inputs,
                                   Attributes attributes = {});

  // Makes every node added from now on run after `value`'s node.
  void RunAfter(Value value);

  // Appends to the results of the graph.
  void AddResult(Value value);

  // Keeps `status` if it is the first error.
  void ReportError(absl::Status status);
  const absl::Status& status() const { return status_; }

  // The graph so far, for code that walks what was traced (autodiff).
  const Graph& graph() const { return graph_; }
  const OpRegistry& registry() const { return *registry_; }
  Value ValueOf(NodeOutput output) { return Value(this, output); }

  // Hands over the graph, or the first error.
  absl::StatusOr<Graph> Build() &&;

  // Nodes added while this lives are named "<scope>/...".
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
  // The nodes that the next access of a variable has to wait for.
  struct VariableOrder {
    int last_update = -1;
    std::vector<int> reads_since;
  };

  Value Poisoned() { return Value(this, NodeOutput()); }
  std::string UniqueName(absl::string_view base);
  void OrderEffect(OpEffect effect, Node* node);
  void OrderVariableEffect(OpEffect effect, Node* node);

  const OpRegistry* const registry_;
  Graph graph_;
  absl::Status status_;
  std::string scope_;  // "" or ends in '/'.
  absl::flat_hash_map<std::string, int> name_counts_;
  absl::flat_hash_map<std::string, VariableOrder> variable_orders_;
  int last_description_ = -1;    // Of the step; -1: there is none.
  int last_communication_ = -1;  // -1: there is none.
  std::vector<int> run_after_;
};

// What a gradient rule sees: one forward node, and the gradients that have
// reached its outputs.
struct GradientContext {
  GraphBuilder& builder;
  const Node& node;  // A copy: adding nodes does not move it.
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  // One for each output; a default-constructed Value where none arrived.
  std::vector<Value> output_gradients;

  // Filled by the rule, one for each input; left default for no gradient.
  std::vector<Value> input_gradients;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_GRAPH_GRAPH_BUILDER_H_
