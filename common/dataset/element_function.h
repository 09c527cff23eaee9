#ifndef COMMON_DATASET_ELEMENT_FUNCTION_H_
#define COMMON_DATASET_ELEMENT_FUNCTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/components.h"
#include "common/dataset/dataset.h"

namespace muster {

namespace proto {
class DatasetStage_Map;
}  // namespace proto

// An executable function of elements. Not thread-safe: each thread needs its
// own.
class ElementFunction {
 public:
  virtual ~ElementFunction() = default;

  // May move the tensors out of `*argument`, or leave them for reuse of their
  // memory. Reuses the memory of `*result` if possible. `seed` is the only
  // source of randomness.
  virtual absl::Status Run(uint64_t seed, Element* argument,
                           Element* result) = 0;
};

// Creates ElementFunctions. Thread-safe: immutable.
class ElementFunctionFactory {
 public:
  virtual ~ElementFunctionFactory() = default;
  virtual absl::StatusOr<std::unique_ptr<ElementFunction>> Create() const = 0;
  // The name of the stage in error messages.
  virtual const char* name() const { return "Map"; }
  // Null if this is not a built-in function.
  virtual const Graph* graph() const = 0;
  // Sets the function of `map`. Returns false if this is C++ code, which cannot
  // be serialized.
  virtual bool Encode(proto::DatasetStage_Map* map) const = 0;
  // Types of the results.
  virtual const std::vector<TensorType>& result_types() const = 0;
  // The names of the results: none, or one for each.
  virtual std::vector<std::string> ResultNames(
      const std::vector<std::string>& argument_names) const {
    (void)argument_names;
    return {};
  }
};

// Traces `function` over elements of types `argument_types`.
//   kInvalidArgument  the function contains an error or returned nothing
absl::StatusOr<Graph> TraceElementFunction(
    const Dataset::TracedFunction& function,
    const std::vector<TensorType>& argument_types);

// The same for a function of names. `*names` get those of the results.
absl::StatusOr<Graph> TraceElementFunction(
    const Dataset::NamedFunction& function, const ElementSpec& arguments,
    std::vector<std::string>* names);

// Runs `graph` on the CPU.
//   kInvalidArgument  the graph is invalid, its parameters are not
//                     `argument_types`, or it reads or updates variables
absl::StatusOr<std::shared_ptr<const ElementFunctionFactory>> MakeGraphFunction(
    Graph graph, const std::vector<TensorType>& argument_types);

// Calls `function` and checks that the result has the types of `results`.
std::shared_ptr<const ElementFunctionFactory> MakeHostFunction(
    Dataset::ElementFunction function, ElementSpec results);

}  // namespace muster

#endif  // COMMON_DATASET_ELEMENT_FUNCTION_H_
