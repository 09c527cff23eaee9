#ifndef COMMON_DATASET_ELEMENT_FUNCTION_H_
#define COMMON_DATASET_ELEMENT_FUNCTION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "proto/dataset.pb.h"

namespace muster {

// A function of elements, ready to run. Not thread-safe: every thread has its
// own.
class ElementFunction {
 public:
  virtual ~ElementFunction() = default;

  // May take the tensors of `*argument` away or leave them there for their
  // memory; uses the memory of `*result` again where it can. `seed` is the only
  // source of randomness.
  virtual absl::Status Run(uint64_t seed, Element* argument,
                           Element* result) = 0;
};

// What makes ElementFunctions. Thread-safe: immutable.
class ElementFunctionFactory {
 public:
  virtual ~ElementFunctionFactory() = default;
  virtual absl::StatusOr<std::unique_ptr<ElementFunction>> Create() const = 0;
  // What errors call the stage that runs it.
  virtual const char* name() const { return "Map"; }
  // Null when it is none.
  virtual const Graph* graph() const = 0;
  // Sets the function of `map`; false when this is C++ and cannot be sent.
  virtual bool Encode(proto::DatasetStage::Map* map) const = 0;
  // Types of the results.
  virtual const std::vector<TensorType>& result_types() const = 0;
};

// Traces `function` over elements of types `argument_types`.
//   kInvalidArgument  the function made a mistake or returned nothing
absl::StatusOr<Graph> TraceElementFunction(
    const Dataset::TracedFunction& function,
    const std::vector<TensorType>& argument_types);

// Runs `graph` on the CPU.
//   kInvalidArgument  the graph does not verify, its parameters are not
//                     `argument_types`, or it reads or updates variables
absl::StatusOr<std::shared_ptr<const ElementFunctionFactory>> MakeGraphFunction(
    Graph graph, const std::vector<TensorType>& argument_types);

// Calls `function` and checks that what comes back has `result_types`.
std::shared_ptr<const ElementFunctionFactory> MakeHostFunction(
    Dataset::ElementFunction function, std::vector<TensorType> result_types);

}  // namespace muster

#endif  // COMMON_DATASET_ELEMENT_FUNCTION_H_
