#ifndef WORKER_CLIENT_STEP_SIGNATURE_H_
#define WORKER_CLIENT_STEP_SIGNATURE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// How the parameters of a step's graph are fed from the arguments of a closure.
// An argument is a tensor, or an iterator: then the step takes one or more
// elements from it, and each component of each element is a parameter.
//
// The graph itself says so, by attributes of its Parameter nodes, so whoever
// has the graph knows how to feed it.
struct ParameterSource {
  // Position among the closure's arguments.
  int argument = 0;
  // -1: the argument is a tensor. Otherwise it is an iterator, and this is the
  // `element`-th that the step takes from it...
  int element = -1;
  // ...and the parameter is this component of it.
  int component = 0;
};

// The attributes that say so.
Attributes ToAttributes(const ParameterSource& source);

class StepSignature {
 public:
  //   kInvalidArgument  a parameter does not say where it comes from, or two
  //                     contradict each other; names the parameter
  static absl::StatusOr<StepSignature> Create(const Graph& graph);

  // One for each parameter of the graph.
  const std::vector<ParameterSource>& parameters() const { return parameters_; }

  struct Argument {
    // Elements a run takes from it; 0 for a tensor.
    int element_count = 0;
    // Components of such an element that are used, counted from the first; at
    // least this many it must have.
    int component_count = 0;
  };
  const std::vector<Argument>& arguments() const { return arguments_; }

 private:
  std::vector<ParameterSource> parameters_;
  std::vector<Argument> arguments_;
};

// Makes `graph`, whose parameters are the components of one element of a
// dataset, a step with one argument: an iterator over that dataset.
Graph FeedFromIterator(Graph graph);

// Makes `graph` a step with as many arguments as parameters: tensors.
Graph FeedFromTensors(Graph graph);

}  // namespace muster

#endif  // WORKER_CLIENT_STEP_SIGNATURE_H_
