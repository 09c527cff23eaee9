#ifndef COMMON_COMPUTE_OPS_APPLY_H_
#define COMMON_COMPUTE_OPS_APPLY_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/attributes.h"

// How the functions of this room add nodes: to the graph of their inputs.
namespace muster::internal {

// The builder of the first input that has one; null when none has.
GraphBuilder* BuilderOf(absl::Span<const Value> inputs);

// Adds a node with one output. Values that belong to no graph give a value
// that belongs to no graph, which the next builder to see it reports.
Value Apply(absl::string_view op, absl::Span<const Value> inputs,
            Attributes attributes = {});

// Adds a node with `output_count` outputs; as many poisoned values when that
// was a mistake, so that callers may index what they get.
std::vector<Value> ApplyWithOutputs(absl::string_view op,
                                    absl::Span<const Value> inputs,
                                    Attributes attributes, int output_count);

// Reports a mistake in the arguments of a function that no op would see.
Value ReportMistake(absl::Span<const Value> inputs, absl::string_view what);

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_OPS_APPLY_H_
