#ifndef COMMON_COMPUTE_OPS_APPLY_H_
#define COMMON_COMPUTE_OPS_APPLY_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/attributes.h"

// Helpers that add nodes to the graph of their inputs.
namespace muster::internal {

// Returns the builder of the first input that has one, or null.
GraphBuilder* BuilderOf(absl::Span<const Value> inputs);

// Adds a node with one output. If no input belongs to a graph, returns a Value
// without a graph, which the next builder reports.
Value Apply(absl::string_view op, absl::Span<const Value> inputs,
            Attributes attributes = {});

// Adds a node with `output_count` outputs. Returns as many poisoned values on
// an error, so that callers can index the result.
std::vector<Value> ApplyWithOutputs(absl::string_view op,
                                    absl::Span<const Value> inputs,
                                    Attributes attributes, int output_count);

// Reports an invalid argument that no op would detect.
Value ReportInvalidArgument(absl::Span<const Value> inputs,
                            absl::string_view what);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_OPS_APPLY_H_
