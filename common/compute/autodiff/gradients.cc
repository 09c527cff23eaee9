#include "common/compute/autodiff/gradients.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/ops/ops.h"

namespace muster {
namespace {

// The gradients of one value that the reverse pass has collected.
struct Arrived {
  Value dense;                         // The sum of the dense gradients.
  std::vector<IndexedSlices> lookups;  // Gradients of some of its rows.

  bool nothing() const { return !dense.ok() && lookups.empty(); }
};

// Reshapes rows and row numbers of any rank to [n, row...] and [n].
IndexedSlices FlatSlices(Value values, Value indices, const TensorType& dense) {
  if (indices.shape().rank() != 1) {
    std::vector<int64_t> dims = {-1};
    for (int axis = 1; axis < dense.shape.rank(); ++axis) {
      dims.push_back(dense.shape.dim(axis));
    }
    values = Reshape(values, std::move(dims));
    indices = Reshape(indices, {-1});
  }
  return {values, indices, dense};
}

// True if FlatSlices() can determine the shape of a row.
bool HasKnownRows(const TensorType& type) {
  const auto dims = type.shape.dims();
  return type.shape.rank() > 0 &&
         std::all_of(dims.begin() + 1, dims.end(),
                     [](int64_t dim) { return dim > 0; });
}

IndexedSlices Join(const std::vector<IndexedSlices>& lookups) {
  if (lookups.size() == 1) return lookups[0];
  std::vector<Value> values;
  std::vector<Value> indices;
  for (const IndexedSlices& lookup : lookups) {
    values.push_back(lookup.values);
    indices.push_back(Cast(lookup.indices, DType::kInt64));
  }
  return {Concat(values, 0), Concat(indices, 0), lookups[0].dense};
}

std::vector<Value> Differentiate(absl::Span<const Value> targets,
                                 absl::Span<const Value> target_gradients,
                                 absl::Span<const Value> sources);

// One reverse pass from targets to the start of the graph.
class ReversePass {
 public:
  ReversePass(Value target, const std::vector<NodeOutput>& sources)
      : ReversePass({&target, 1}, {}, sources) {}
  // `target_gradients` are the gradients of the targets; ones if it is empty.
  ReversePass(absl::Span<const Value> targets,
              absl::Span<const Value> target_gradients,
              const std::vector<NodeOutput>& sources);

  // False for values of nodes that follow all targets.
  bool Reaches(NodeOutput output) const { return output.node <= last_; }

  Arrived& ArrivedAt(NodeOutput output) {
    return arrived_[output.node][output.output];
  }
  // As ArrivedAt(), but returns one tensor.
  Value DenseAt(NodeOutput output);

 private:
  void MarkDependents(const std::vector<NodeOutput>& sources);
  void StepBack(int index);
  void Arrive(NodeOutput at, Value gradient);
  bool CollectByLookup(const GradientContext& context);

  GraphBuilder& builder_;
  int last_ = -1;  // The last node of the targets.
  // Nodes up to the last target that depend on a source.
  std::vector<bool> is_dependent_;
  std::vector<std::vector<Arrived>> arrived_;
};

ReversePass::ReversePass(absl::Span<const Value> targets,
                         absl::Span<const Value> target_gradients,
                         const std::vector<NodeOutput>& sources)
    : builder_(*targets[0].builder()) {
  const Graph& graph = builder_.graph();
  for (const Value& target : targets) {
    last_ = std::max(last_, target.output().node);
  }
  for (int i = 0; i <= last_; ++i) {
    arrived_.emplace_back(graph.nodes[i].outputs.size());
  }
  MarkDependents(sources);
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!is_dependent_[targets[i].output().node]) continue;
    Arrive(targets[i].output(), target_gradients.empty() ? OnesLike(targets[i])
                                                         : target_gradients[i]);
  }
  for (int i = last_; i >= 0 && builder_.status().ok(); --i) {
    if (is_dependent_[i]) StepBack(i);
  }
}

void ReversePass::MarkDependents(const std::vector<NodeOutput>& sources) {
  is_dependent_.assign(last_ + 1, false);
  for (const NodeOutput& source : sources) {
    if (Reaches(source)) is_dependent_[source.node] = true;
  }
  for (int i = 0; i <= last_; ++i) {
    for (const NodeOutput& input : builder_.graph().nodes[i].inputs) {
      if (is_dependent_[input.node]) is_dependent_[i] = true;
    }
  }
}

void ReversePass::Arrive(NodeOutput at, Value gradient) {
  Arrived& arrived = ArrivedAt(at);
  arrived.dense = arrived.dense.ok() ? Add(arrived.dense, gradient) : gradient;
}

Value ReversePass::DenseAt(NodeOutput at) {
  const Arrived& arrived = ArrivedAt(at);
  if (arrived.lookups.empty()) return arrived.dense;
  const IndexedSlices rows = Join(arrived.lookups);
  const Value scattered =
      ScatterRowsLike(rows.values, rows.indices, builder_.ValueOf(at));
  return arrived.dense.ok() ? Add(arrived.dense, scattered) : scattered;
}

// Keeps gradients of lookups along axis 0 as rows, so that only consumers of
// the whole table pay for its size.
bool ReversePass::CollectByLookup(const GradientContext& context) {
  const Node& node = context.node;
  if (node.op != "Gather" || node.attributes.GetOr<int64_t>("axis", 0) != 0) {
    return false;
  }
  const TensorType type = context.inputs[0].type();
  if (!HasKnownRows(type)) return false;
  if (!is_dependent_[node.inputs[0].node]) return true;
  ArrivedAt(node.inputs[0])
      .lookups.push_back(
          FlatSlices(context.output_gradients[0], context.inputs[1], type));
  return true;
}

void ReversePass::StepBack(int index) {
  const Node node = builder_.graph().nodes[index];
  const OpSchema* schema = builder_.registry().Find(node.op);
  const bool has_dependent_input = std::any_of(
      node.inputs.begin(), node.inputs.end(),
      [this](const NodeOutput& input) { return is_dependent_[input.node]; });
  const bool refuses = !schema->gradient_refusal.empty();
  if (schema->gradient_rule == nullptr && !refuses) return;
  if (!has_dependent_input) return;
  GradientContext context{
      .builder = builder_, .node = node, .differentiate = Differentiate};
  bool any_arrived = false;
  for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) {
    const NodeOutput output = {index, i};
    any_arrived |= !ArrivedAt(output).nothing();
    context.outputs.push_back(builder_.ValueOf(output));
    context.output_gradients.push_back(DenseAt(output));
  }
  if (!any_arrived) return;
  if (refuses) {
    builder_.ReportError(absl::UnimplementedError(schema->gradient_refusal));
    return;
  }
  for (const NodeOutput& input : node.inputs) {
    context.inputs.push_back(builder_.ValueOf(input));
    context.needs_gradient.push_back(is_dependent_[input.node]);
  }
  context.input_gradients.resize(node.inputs.size());
  if (CollectByLookup(context)) return;
  schema->gradient_rule(context);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value gradient = context.input_gradients[i];
    const NodeOutput input = node.inputs[i];
    if (gradient.ok() && is_dependent_[input.node] &&
        IsFloating(builder_.graph().TypeOf(input).dtype)) {
      Arrive(input, gradient);
    }
  }
}

// See DifferentiateFunction.
std::vector<Value> Differentiate(absl::Span<const Value> targets,
                                 absl::Span<const Value> target_gradients,
                                 absl::Span<const Value> sources) {
  std::vector<NodeOutput> outputs;
  for (const Value& source : sources) outputs.push_back(source.output());
  std::vector<Value> gradients(sources.size());
  if (!targets.empty()) {
    ReversePass pass(targets, target_gradients, outputs);
    for (size_t i = 0; i < sources.size(); ++i) {
      if (pass.Reaches(outputs[i])) gradients[i] = pass.DenseAt(outputs[i]);
    }
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!gradients[i].ok()) gradients[i] = ZerosLike(sources[i]);
  }
  return gradients;
}

// Returns false and reports an error if the target cannot be differentiated.
bool IsDifferentiable(Value target) {
  if (!target.ok()) return false;
  if (IsFloating(target.dtype())) return true;
  target.builder()->ReportError(absl::InvalidArgumentError(
      absl::StrCat("the target of Gradients must be floating, not ",
                   target.type().ToString())));
  return false;
}

// Returns the gradient of a lookup in a variable as rows of that variable.
Arrived RowsOfVariable(GraphBuilder& builder, ReversePass& pass,
                       NodeOutput lookup) {
  const Node node = builder.graph().nodes[lookup.node];
  const Value rows = pass.DenseAt(lookup);
  if (!rows.ok()) return {};
  const TensorType variable = {node.attributes.GetOr("dtype", DType::kInvalid),
                               node.attributes.GetOr("shape", Shape())};
  return {
      .lookups = {FlatSlices(rows, builder.ValueOf(node.inputs[0]), variable)}};
}

// Combines the gradients of all uses of one source.
Gradient Combine(const std::vector<Arrived>& uses) {
  std::vector<IndexedSlices> lookups;
  Value dense;
  for (const Arrived& use : uses) {
    lookups.insert(lookups.end(), use.lookups.begin(), use.lookups.end());
    if (use.dense.ok()) dense = dense.ok() ? Add(dense, use.dense) : use.dense;
  }
  if (lookups.empty()) return {.dense = dense};
  const IndexedSlices rows = Join(lookups);
  if (!dense.ok()) return {.sparse = rows};
  return {.dense =
              Add(dense, ScatterRowsLike(rows.values, rows.indices, dense))};
}

}  // namespace

std::vector<Gradient> Gradients(Value target, absl::Span<const Value> sources) {
  std::vector<Gradient> gradients(sources.size());
  if (!IsDifferentiable(target)) return gradients;
  GraphBuilder& builder = *target.builder();
  std::vector<NodeOutput> outputs;
  for (const Value& source : sources) {
    if (source.builder() != &builder) {
      builder.ReportError(absl::InvalidArgumentError(
          absl::StrCat("source ", outputs.size(),
                       " of Gradients belongs to another graph")));
    }
    if (!source.ok() || source.builder() != &builder) return gradients;
    outputs.push_back(source.output());
  }
  const GraphBuilder::NameScope scope(&builder, "gradients");
  ReversePass pass(target, outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].node > target.output().node) continue;
    gradients[i] = Combine({pass.ArrivedAt(outputs[i])});
  }
  return gradients;
}

std::vector<Gradient> VariableGradients(
    Value target, absl::Span<const std::string> variables) {
  std::vector<Gradient> gradients(variables.size());
  if (!IsDifferentiable(target)) return gradients;
  GraphBuilder& builder = *target.builder();
  std::vector<std::vector<NodeOutput>> reads(variables.size());
  std::vector<NodeOutput> sources;
  for (int i = 0; i <= target.output().node; ++i) {
    const Node& node = builder.graph().nodes[i];
    if (builder.registry().Find(node.op)->effect != OpEffect::kReadVariable) {
      continue;
    }
    const std::string name =
        node.attributes.GetOr<std::string>(kVariableAttribute, "");
    for (size_t v = 0; v < variables.size(); ++v) {
      if (variables[v] != name) continue;
      reads[v].push_back({i, 0});
      sources.push_back({i, 0});
    }
  }
  const GraphBuilder::NameScope scope(&builder, "gradients");
  ReversePass pass(target, sources);
  for (size_t v = 0; v < variables.size(); ++v) {
    std::vector<Arrived> uses;
    for (const NodeOutput read : reads[v]) {
      // A lookup has indices; a read of the whole variable has no inputs.
      const bool is_lookup = !builder.graph().nodes[read.node].inputs.empty();
      uses.push_back(is_lookup ? RowsOfVariable(builder, pass, read)
                               : pass.ArrivedAt(read));
    }
    gradients[v] = Combine(uses);
  }
  return gradients;
}

Value DenseGradient(const Gradient& gradient, Value source) {
  if (gradient.sparse.has_value()) {
    return ScatterRowsLike(gradient.sparse->values, gradient.sparse->indices,
                           source);
  }
  return gradient.dense.ok() ? gradient.dense : ZerosLike(source);
}

}  // namespace muster
