#ifndef WORKER_CLIENT_STEP_SIGNATURE_H_
#define WORKER_CLIENT_STEP_SIGNATURE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// Maps the parameters of a step's graph to the arguments of a closure. An
// argument is a tensor or an iterator. From an iterator the step takes one or
// more elements, and each component of each element is a parameter.
//
// The mapping is stored in attributes of the graph's Parameter nodes, so a
// serialized graph includes it.
struct ParameterSource {
  // Index of the closure's argument.
  int argument = 0;
  // -1 if the argument is a tensor. Otherwise the index of the element that the
  // step takes from the iterator.
  int element = -1;
  // The component of that element.
  int component = 0;
};

// Returns the attributes of a Parameter node with this source.
Attributes ToAttributes(const ParameterSource& source);

class StepSignature {
 public:
  // Reads the signature of a graph.
  //   kInvalidArgument  a parameter has no source, or two are inconsistent; the
  //                     message names the parameter
  static absl::StatusOr<StepSignature> Create(const Graph& graph);

  // One entry for each parameter of the graph.
  const std::vector<ParameterSource>& parameters() const { return parameters_; }

  struct Argument {
    // The number of elements that a run takes; 0 for a tensor.
    int element_count = 0;
    // The minimum number of components of an element.
    int component_count = 0;
  };
  const std::vector<Argument>& arguments() const { return arguments_; }

 private:
  std::vector<ParameterSource> parameters_;
  std::vector<Argument> arguments_;
};

// Turns `graph`, whose parameters are the components of one dataset element,
// into a step with one argument: an iterator over that dataset.
Graph FeedFromIterator(Graph graph);

// Turns `graph` into a step with one tensor argument for each parameter.
Graph FeedFromTensors(Graph graph);

}  // namespace muster

#endif  // WORKER_CLIENT_STEP_SIGNATURE_H_
