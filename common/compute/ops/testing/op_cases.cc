#include "common/compute/ops/testing/op_cases.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

bool Accepts(const OpSchema& schema, const OpCase& one) {
  std::vector<TensorType> types;
  for (const OpInput& input : one.inputs) {
    types.push_back({input.dtype, input.shape});
  }
  return schema.type_rule({.inputs = types, .attributes = one.attributes}).ok();
}

}  // namespace

std::string Describe(const OpCase& one) {
  std::string text = absl::StrCat(one.op, "(");
  for (const OpInput& input : one.inputs) {
    absl::StrAppend(&text, DTypeName(input.dtype), input.shape.ToString(), " ");
  }
  for (const auto& [name, attribute] : one.attributes.values()) {
    absl::StrAppend(&text, name, "=", AttributeToString(attribute), " ");
  }
  return text + ")";
}

std::vector<OpCase> ElementwiseCases(const OpSchema& schema, DType dtype,
                                     absl::Span<const Shape> shapes) {
  const int input_count = static_cast<int>(shapes.size());
  if (input_count < schema.input_count_min ||
      input_count > schema.input_count_max) {
    return {};
  }
  OpCase one = {.op = schema.name};
  for (int i = 0; i < input_count; ++i) {
    const auto& ranges = schema.samples.ranges;
    const OpSamples::Range range =
        i < static_cast<int>(ranges.size()) ? ranges[i] : OpSamples::Range();
    const double low =
        dtype == DType::kUint8 ? std::max(range.low, 0.0) : range.low;
    one.inputs.push_back({dtype, shapes[i], low, range.high});
  }
  std::vector<Attributes> attribute_lists = schema.samples.attributes;
  if (attribute_lists.empty()) attribute_lists.emplace_back();
  std::vector<OpCase> cases;
  for (const Attributes& attributes : attribute_lists) {
    one.attributes = attributes;
    if (Accepts(schema, one)) cases.push_back(one);
  }
  return cases;
}

}  // namespace muster
