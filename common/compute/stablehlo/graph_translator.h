#ifndef COMMON_COMPUTE_STABLEHLO_GRAPH_TRANSLATOR_H_
#define COMMON_COMPUTE_STABLEHLO_GRAPH_TRANSLATOR_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/stablehlo/hlo_builder.h"

namespace muster {

// What the nodes of a step depend on besides their inputs.
struct HloStepContext {
  HloBuilder* builder = nullptr;
  // i64 scalars: the seed of the step, and the position of the first row of the
  // replica's batch in the global batch.
  HloValue step_seed = {};
  HloValue example_offset = {};
  // Over how many replicas collectives go.
  int replica_count = 1;
};

// One node during the translation of its graph. Operands and results have the
// types in which the op is computed: for bfloat16 and float16 float32, unless
// the op has LowPrecisionPolicy::kDirect.
class HloNode {
 public:
  HloNode(const HloStepContext* step, const KernelSpec* spec, HloValues inputs,
          std::vector<HloType> outputs)
      : step_(*step),
        spec_(*spec),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}

  const std::string& op() const { return spec_.op; }
  const KernelSpec& spec() const { return spec_; }
  const HloStepContext& step() const { return step_; }
  HloBuilder& builder() const { return *step_.builder; }

  int input_count() const { return static_cast<int>(inputs_.size()); }
  const HloValues& inputs() const { return inputs_; }
  const HloValue& input(int index) const { return inputs_[index]; }
  int output_count() const { return static_cast<int>(outputs_.size()); }
  const HloType& output(int index = 0) const { return outputs_[index]; }

  template <typename T>
  T Attribute(absl::string_view name, T fallback) const {
    return spec_.attributes.GetOr<T>(name, fallback);
  }
  // The attribute "axis", and a list of axes, as indices from 0 on.
  int AxisOf(int rank, int64_t fallback = 0) const;
  std::vector<int64_t> AxesOf(int rank, absl::string_view name = "axes") const;

 private:
  const HloStepContext& step_;
  const KernelSpec& spec_;
  const HloValues inputs_;
  const std::vector<HloType> outputs_;
};

// Reads and updates the variables of a graph that is translated.
class HloVariables {
 public:
  virtual ~HloVariables() = default;

  // Translates a node whose schema uses variables or describes the step, and
  // returns its outputs.
  virtual absl::StatusOr<HloValues> Translate(const Graph& graph,
                                              const Node& node,
                                              const HloValues& inputs) = 0;
};

// Translates all nodes of a typed graph of BuiltinOps() (WithTypes() of
// common/compute/runtime/typed_graph.h) and returns the results of the graph.
// `parameters` are those of the graph, in order. `variables` may be null if the
// graph has none.
//
// Indices and labels that are out of range are not errors: Gather reads the
// nearest row, and scatters drop them, as programs on TPUs do.
//   kUnimplemented  an op has no translation (translations.h), a value is a
//                   string, or as `variables`; names the op and the node
absl::StatusOr<HloValues> TranslateGraph(const HloStepContext& step,
                                         const Graph& typed,
                                         const HloValues& parameters,
                                         HloVariables* variables);

// Returns the module of a typed graph without variables, whose "main" takes the
// graph's parameters and returns its results. The seed of its steps is
// `step_seed`.
//   kUnimplemented  as TranslateGraph()
absl::StatusOr<std::string> GraphToStableHlo(const Graph& typed,
                                             uint64_t step_seed = 0,
                                             int64_t example_offset = 0);

// Returns OK if all nodes of a graph, typed or not, have a translation.
//   kUnimplemented  as TranslateGraph()
absl::Status CheckTranslatable(const Graph& graph);

}  // namespace muster

#endif  // COMMON_COMPUTE_STABLEHLO_GRAPH_TRANSLATOR_H_
