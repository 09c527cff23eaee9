#include "common/compute/ops/cumulative_ops.h"

#include <cstdint>
#include <vector>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypesOr;

// CumSum(x){axis, exclusive, reverse}
TypesOr CumSumRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectClass(arguments, DTypeClass::kNumber, 0, 1));
  const TensorType& x = arguments.inputs[0];
  RETURN_IF_ERROR(
      internal::AxisAttribute(arguments, "axis", x.shape.rank()).status());
  for (const char* name : {"exclusive", "reverse"}) {
    RETURN_IF_ERROR(arguments.attributes.Get<bool>(name).status());
  }
  return std::vector<TensorType>{x};
}

// Element i is part of the sums from i on.
void CumSumGradient(GradientContext& context) {
  const Attributes& attributes = context.node.attributes;
  context.input_gradients[0] =
      CumSum(context.output_gradients[0],
             {.axis = attributes.GetOr<int64_t>("axis", 0),
              .exclusive = attributes.GetOr<bool>("exclusive", false),
              .reverse = !attributes.GetOr<bool>("reverse", false)});
}

}  // namespace

Value CumSum(Value x, const CumSumOptions& options) {
  return internal::Apply("CumSum", {x},
                         {{"axis", options.axis},
                          {"exclusive", options.exclusive},
                          {"reverse", options.reverse}});
}

namespace internal {

void RegisterCumulativeOps(OpRegistry* registry) {
  registry->Register({.name = "CumSum",
                      .input_count_min = 1,
                      .input_count_max = 1,
                      .type_rule = CumSumRule,
                      .gradient_rule = CumSumGradient});
}

}  // namespace internal
}  // namespace muster
