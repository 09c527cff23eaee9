#include "common/compute/ops/random_ops.h"

#include <utility>
#include <vector>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/comparison.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::TypeError;
using internal::TypesOr;

const TensorType& SeedType() {
  static const TensorType* const kType =
      new TensorType{DType::kInt64, Shape({2})};
  return *kType;
}

absl::Status ExpectSeed(const TypeRuleArguments& arguments) {
  const TensorType& seed = arguments.inputs[0];
  if (seed.dtype == SeedType().dtype &&
      seed.shape.IsCompatibleWith(SeedType().shape)) {
    return absl::OkStatus();
  }
  return TypeError("input 0 must be a seed, ", SeedType().ToString(), ", not ",
                   seed.ToString());
}

TypesOr StepSeedRule(const TypeRuleArguments&) {
  return std::vector<TensorType>{SeedType()};
}

TypesOr FoldInSeedRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectSeed(arguments));
  RETURN_IF_ERROR(arguments.attributes.Get<int64_t>("data").status());
  return std::vector<TensorType>{SeedType()};
}

TypesOr RandomRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectSeed(arguments));
  ASSIGN_OR_RETURN(const DType dtype, arguments.attributes.Get<DType>("dtype"));
  if (!IsFloating(dtype)) {
    return TypeError("attribute \"dtype\" must be a floating dtype, not ",
                     DTypeName(dtype));
  }
  const bool has_shape = arguments.attributes.Has("shape");
  if (has_shape == (arguments.inputs.size() == 2)) {
    return TypeError(
        "either attribute \"shape\" or a second input must be given, not both");
  }
  if (!has_shape) {
    return internal::OneOutput(dtype, arguments.inputs[1].shape);
  }
  ASSIGN_OR_RETURN(const Shape shape, arguments.attributes.Get<Shape>("shape"));
  ASSIGN_OR_RETURN(const Shape checked,
                   Shape::Create(shape.dims(), /*allow_unknown=*/false));
  return internal::OneOutput(dtype, checked);
}

Value Draw(absl::string_view op, Value seed, const Shape& shape, DType dtype) {
  return internal::Apply(op, {seed}, {{"dtype", dtype}, {"shape", shape}});
}

Value DrawLike(absl::string_view op, Value seed, Value like, DType dtype) {
  return internal::Apply(op, {seed, like}, {{"dtype", dtype}});
}

}  // namespace

Value StepSeed(GraphBuilder& builder) { return builder.Op("StepSeed", {}); }

Value ConstantSeed(GraphBuilder& builder, int64_t first, int64_t second) {
  return builder.Constant(Tensor::FromValues<int64_t>({2}, {first, second}));
}

Value FoldInSeed(Value seed, int64_t data) {
  return internal::Apply("FoldInSeed", {seed}, {{"data", data}});
}

Value RandomUniform(Value seed, const Shape& shape, DType dtype) {
  return Draw("RandomUniform", seed, shape, dtype);
}
Value RandomUniformLike(Value seed, Value like, DType dtype) {
  return DrawLike("RandomUniform", seed, like, dtype);
}

Value RandomNormal(Value seed, const Shape& shape, DType dtype) {
  return Draw("RandomNormal", seed, shape, dtype);
}
Value RandomNormalLike(Value seed, Value like, DType dtype) {
  return DrawLike("RandomNormal", seed, like, dtype);
}

Value TruncatedNormal(Value seed, const Shape& shape, DType dtype) {
  return Draw("TruncatedNormal", seed, shape, dtype);
}
Value TruncatedNormalLike(Value seed, Value like, DType dtype) {
  return DrawLike("TruncatedNormal", seed, like, dtype);
}

Value DropoutMask(Value seed, Value like, double keep_probability) {
  return RandomUniformLike(seed, like) < keep_probability;
}

namespace internal {

void RegisterRandomOps(OpRegistry* registry) {
  registry->Register(
      {.name = "StepSeed", .type_rule = StepSeedRule, .reads = OpReads::kStep});
  registry->Register({.name = "FoldInSeed",
                      .input_count_min = 1,
                      .input_count_max = 1,
                      .type_rule = FoldInSeedRule,
                      .golden_exemption = GoldenExemption::kOwnGenerator});
  for (const char* name :
       {"RandomUniform", "RandomNormal", "TruncatedNormal"}) {
    registry->Register({.name = name,
                        .input_count_min = 1,
                        .input_count_max = 2,
                        .type_rule = RandomRule,
                        .reads = OpReads::kBatchRows,
                        .low_precision = LowPrecisionPolicy::kDirect});
  }
}

}  // namespace internal
}  // namespace muster
