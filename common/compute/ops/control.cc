#include "common/compute/ops/control.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/ops/apply.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

void IdentityGradient(GradientContext& context) {
  context.input_gradients[0] = context.output_gradients[0];
}

// True if `dtype` represents `value`. Floats may round, integers may not.
bool Holds(DType dtype, double value) {
  if (IsFloating(dtype)) return true;
  if (std::trunc(value) != value) return false;
  switch (dtype) {
    case DType::kInt32:
      return std::abs(value) < 0x1p31;
    case DType::kInt64:
      return std::abs(value) < 0x1p63;
    case DType::kUint8:
      return value >= 0 && value < 256;
    default:
      return false;
  }
}

}  // namespace

Value Identity(Value x) { return internal::Apply("Identity", {x}); }

Value StopGradient(Value x) { return internal::Apply("StopGradient", {x}); }

Value ZerosLike(Value x) { return internal::Apply("ZerosLike", {x}); }

Value OnesLike(Value x) { return internal::Apply("OnesLike", {x}); }

Value ScalarLike(Value like, double value) {
  if (!like.ok()) return like;
  if (!Holds(like.dtype(), value)) {
    return internal::ReportInvalidArgument(
        {like}, absl::StrCat("the number ", value, " does not fit in ",
                             DTypeName(like.dtype()),
                             "; convert the tensor with Cast()"));
  }
  return like.builder()->Constant(Tensor::Full(like.dtype(), {}, value));
}

namespace internal {

void RegisterControlOps(OpRegistry* registry) {
  const auto add_view = [registry](absl::string_view name,
                                   OpSchema::GradientRule gradient_rule) {
    OpSchema schema = ElementwiseOp(name, 1, SameTypeRule, gradient_rule);
    schema.is_view = true;
    schema.low_precision = LowPrecisionPolicy::kDirect;
    registry->Register(std::move(schema));
  };
  add_view("Identity", IdentityGradient);
  add_view("StopGradient", nullptr);
  registry->Register(ElementwiseOp("ZerosLike", 1, SameNumberOrBoolRule));
  registry->Register(ElementwiseOp("OnesLike", 1, SameNumberOrBoolRule));
}

}  // namespace internal
}  // namespace muster
