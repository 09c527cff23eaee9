#ifndef COMMON_COMPUTE_OPS_TESTING_CONTROL_FLOW_SAMPLES_H_
#define COMMON_COMPUTE_OPS_TESTING_CONTROL_FLOW_SAMPLES_H_

#include <memory>
#include <string>
#include <vector>

#include "common/compute/graph/graph.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

// Nodes of branches and loops, for the tests that go through the registry.
namespace muster {

using Values = std::vector<Value>;

// Traces `function` with parameters of these types. Aborts after an error.
std::shared_ptr<const Graph> TracedSubgraph(
    const std::vector<TensorType>& parameters, const TracedFunction& function);

struct ControlFlowSample {
  std::string op;
  Attributes attributes;
  // Bool inputs are predicates, int64 ones counters that begin below 3.
  std::vector<TensorType> inputs;
  Subgraphs subgraphs;
};

// Samples that compute with `dtype`, a floating one. Subgraphs are traced with
// unknown extents.
std::vector<ControlFlowSample> ControlFlowSamples(DType dtype);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_TESTING_CONTROL_FLOW_SAMPLES_H_
