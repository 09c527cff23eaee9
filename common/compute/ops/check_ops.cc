#include "common/compute/ops/check_ops.h"

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/compute/ops/apply.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypesOr;

TypesOr PrintRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(arguments.attributes.Get<std::string>("label").status());
  ASSIGN_OR_RETURN(const int64_t summarize,
                   arguments.attributes.Get<int64_t>("summarize"));
  if (summarize < 0) {
    return internal::TypeError("attribute \"summarize\" is ", summarize,
                               "; expected 0 or more");
  }
  return internal::SameNumberOrBoolRule(arguments);
}

// Assert(x, condition) -> x
TypesOr AssertRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(arguments.attributes.Get<std::string>("message").status());
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumberOrBool, 0, 1));
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kBool, 1, 2));
  return internal::OneOutput(arguments.inputs[0].dtype,
                             arguments.inputs[0].shape);
}

void PassOn(GradientContext& context) {
  context.input_gradients[0] = context.output_gradients[0];
}

OpSchema PassesOn(absl::string_view name, int input_count,
                  OpSchema::TypeRule type_rule) {
  return {.name = std::string(name),
          .input_count_min = input_count,
          .input_count_max = input_count,
          .type_rule = type_rule,
          .gradient_rule = PassOn,
          .low_precision = LowPrecisionPolicy::kDirect,
          .golden_exemption = GoldenExemption::kLayer};
}

}  // namespace

Value Print(Value x, absl::string_view label, PrintOptions options) {
  return internal::Apply("Print", {x},
                         {{"label", std::string(label)},
                          {"summarize", int64_t{options.summarize}}});
}

Value Assert(Value x, Value condition, absl::string_view message) {
  return internal::Apply("Assert", {x, condition},
                         {{"message", std::string(message)}});
}

namespace internal {

void RegisterCheckOps(OpRegistry* registry) {
  registry->Register(PassesOn("Print", 1, PrintRule));
  registry->Register(PassesOn("Assert", 2, AssertRule));
}

}  // namespace internal
}  // namespace muster
