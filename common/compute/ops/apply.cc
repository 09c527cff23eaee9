#include "common/compute/ops/apply.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace muster::internal {

GraphBuilder* BuilderOf(absl::Span<const Value> inputs) {
  for (const Value& input : inputs) {
    if (input.builder() != nullptr) return input.builder();
  }
  return nullptr;
}

Value Apply(absl::string_view op, absl::Span<const Value> inputs,
            Attributes attributes) {
  GraphBuilder* builder = BuilderOf(inputs);
  if (builder == nullptr) return Value();
  return builder->Op(op, inputs, std::move(attributes));
}

std::vector<Value> ApplyWithOutputs(absl::string_view op,
                                    absl::Span<const Value> inputs,
                                    Attributes attributes, int output_count) {
  GraphBuilder* builder = BuilderOf(inputs);
  if (builder == nullptr) return std::vector<Value>(std::max(output_count, 0));
  std::vector<Value> outputs =
      builder->OpWithOutputs(op, inputs, std::move(attributes));
  if (outputs.empty() && output_count > 0) {
    outputs.assign(output_count, builder->ValueOf(NodeOutput()));
  }
  return outputs;
}

Value ReportInvalidArgument(absl::Span<const Value> inputs,
                            absl::string_view what) {
  GraphBuilder* builder = BuilderOf(inputs);
  if (builder == nullptr) return Value();
  builder->ReportError(absl::InvalidArgumentError(what));
  return builder->ValueOf(NodeOutput());
}

}  // namespace muster::internal
