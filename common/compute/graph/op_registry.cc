#include "common/compute/graph/op_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/check.h"

namespace muster {
namespace {

absl::StatusOr<std::vector<TensorType>> ParameterType(
    const TypeRuleArguments& arguments) {
  const auto dtype = arguments.attributes.Get<DType>("dtype");
  if (!dtype.ok()) return dtype.status();
  const auto shape = arguments.attributes.Get<Shape>("shape");
  if (!shape.ok()) return shape.status();
  return std::vector<TensorType>{{*dtype, *shape}};
}

absl::StatusOr<std::vector<TensorType>> ConstantType(
    const TypeRuleArguments& arguments) {
  const auto value = arguments.attributes.Get<Tensor>("value");
  if (!value.ok()) return value.status();
  if (!value->IsValid()) {
    return absl::InvalidArgumentError("attribute \"value\" holds no tensor");
  }
  return std::vector<TensorType>{value->type()};
}

std::string DescribeInputs(absl::Span<const TensorType> inputs) {
  return absl::StrJoin(inputs, ", ",
                       [](std::string* out, const TensorType& type) {
                         out->append(type.ToString());
                       });
}

}  // namespace

OpRegistry::OpRegistry() {
  Register({.name = "Parameter",
            .type_rule = ParameterType,
            .reads = OpReads::kGraph});
  Register({.name = "Constant",
            .type_rule = ConstantType,
            .reads = OpReads::kGraph});
}

void OpRegistry::Register(OpSchema schema) {
  MUSTER_CHECK(schema.type_rule != nullptr);
  std::string name = schema.name;
  const bool inserted =
      schemas_.try_emplace(std::move(name), std::move(schema)).second;
  MUSTER_CHECK(inserted);
}

const OpSchema* OpRegistry::Find(absl::string_view op) const {
  const auto found = schemas_.find(op);
  return found == schemas_.end() ? nullptr : &found->second;
}

const OpSchema& OpRegistry::FindOrPlain(absl::string_view op) const {
  static const OpSchema* const kPlain = new OpSchema;
  const OpSchema* const schema = Find(op);
  return schema == nullptr ? *kPlain : *schema;
}

absl::StatusOr<std::vector<TensorType>> OpRegistry::InferTypes(
    absl::string_view op, absl::string_view node_name,
    const TypeRuleArguments& arguments) const {
  const OpSchema* schema = Find(op);
  if (schema == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("node \"", node_name, "\": there is no op \"", op, "\""));
  }
  const int input_count = static_cast<int>(arguments.inputs.size());
  const bool too_many = schema->input_count_max != OpSchema::kAnyCount &&
                        input_count > schema->input_count_max;
  if (input_count < schema->input_count_min || too_many) {
    return absl::InvalidArgumentError(
        absl::StrCat(op, " \"", node_name, "\" takes ", schema->input_count_min,
                     schema->input_count_max == schema->input_count_min ? ""
                     : schema->input_count_max == OpSchema::kAnyCount
                         ? " or more"
                         : absl::StrCat(" to ", schema->input_count_max),
                     " inputs, not ", input_count));
  }
  if (static_cast<int>(arguments.subgraphs.size()) != schema->subgraph_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        op, " \"", node_name, "\" (", DescribeInputs(arguments.inputs),
        ") has ", schema->subgraph_count, " subgraphs, not ",
        arguments.subgraphs.size()));
  }
  TypeRuleArguments with_registry = arguments;
  with_registry.registry = this;
  auto types = schema->type_rule(with_registry);
  if (!types.ok()) {
    return absl::Status(types.status().code(),
                        absl::StrCat(op, " \"", node_name, "\" (",
                                     DescribeInputs(arguments.inputs),
                                     "): ", types.status().message()));
  }
  return types;
}

std::vector<const OpSchema*> OpRegistry::AllSchemas() const {
  std::vector<const OpSchema*> all;
  for (const auto& [name, schema] : schemas_) all.push_back(&schema);
  std::sort(all.begin(), all.end(), [](const OpSchema* a, const OpSchema* b) {
    return a->name < b->name;
  });
  return all;
}

}  // namespace muster
