#include "common/compute/ops/string_ops.h"

#include <algorithm>
#include <utility>

#include "common/compute/ops/apply.h"
#include "common/compute/ops/register_ops.h"
#include "common/compute/ops/type_rules.h"

namespace muster {
namespace {

using internal::DTypeClass;
using internal::TypeError;
using internal::TypesOr;

// Large enough for all uses, and small enough that sums of indices do not
// overflow.
constexpr int64_t kIndexMax = int64_t{1} << 48;

// Returns the integer attribute `name`, which must be in [low, kIndexMax].
absl::StatusOr<int64_t> IndexAttribute(const TypeRuleArguments& arguments,
                                       absl::string_view name, int64_t low) {
  ASSIGN_OR_RETURN(const int64_t value,
                   arguments.attributes.Get<int64_t>(name));
  if (value >= low && value <= kIndexMax) return value;
  return TypeError("attribute \"", name, "\" must be ", low, " to 2^48, not ",
                   value);
}

// Checks that the attribute is absent, or a tensor of the type.
absl::Status ExpectScalar(const TypeRuleArguments& arguments,
                          absl::string_view name, DType dtype) {
  if (!arguments.attributes.Has(name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor value, arguments.attributes.Get<Tensor>(name));
  if (value.IsValid() && value.type() == TensorType{dtype, Shape()}) {
    return absl::OkStatus();
  }
  return TypeError("attribute \"", name, "\" must be one ", DTypeName(dtype));
}

absl::Status ExpectSalt(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> salt,
                   internal::OptionalAttribute<std::vector<int64_t>>(
                       arguments.attributes, "salt", {}));
  if (salt.empty() || salt.size() == 2) return absl::OkStatus();
  return TypeError("attribute \"salt\" must hold 2 numbers, not ", salt.size());
}

// Checks the attributes of a LookupTable of categories of the dtype.
absl::Status ExpectTable(const TypeRuleArguments& arguments, DType dtype) {
  ASSIGN_OR_RETURN(const Tensor vocabulary,
                   arguments.attributes.Get<Tensor>("vocabulary"));
  if (!vocabulary.IsValid() || vocabulary.dtype() != dtype ||
      vocabulary.shape().rank() != 1) {
    return TypeError("attribute \"vocabulary\" must be a list of ",
                     DTypeName(dtype));
  }
  RETURN_IF_ERROR(IndexAttribute(arguments, "oov_index", 0).status());
  RETURN_IF_ERROR(IndexAttribute(arguments, "oov_count", 0).status());
  RETURN_IF_ERROR(IndexAttribute(arguments, "mask_index", -1).status());
  RETURN_IF_ERROR(internal::OptionalAttribute<bool>(arguments.attributes,
                                                    "hashes_integers", false)
                      .status());
  RETURN_IF_ERROR(ExpectScalar(arguments, "mask", dtype));
  return ExpectSalt(arguments);
}

absl::Status ExpectCategories(const TypeRuleArguments& arguments) {
  const DType dtype = arguments.inputs[0].dtype;
  if (dtype == DType::kString || dtype == DType::kInt64) {
    return absl::OkStatus();
  }
  return TypeError("input 0 must hold string or int64, not ", DTypeName(dtype));
}

TypesOr LookupIndexRule(const TypeRuleArguments& arguments) {
  RETURN_IF_ERROR(ExpectCategories(arguments));
  RETURN_IF_ERROR(ExpectTable(arguments, arguments.inputs[0].dtype));
  return internal::OneOutput(DType::kInt64, arguments.inputs[0].shape);
}

TypesOr LookupCategoryRule(const TypeRuleArguments& arguments) {
  if (arguments.inputs[0].dtype != DType::kInt64) {
    return TypeError("input 0 must hold int64, not ",
                     DTypeName(arguments.inputs[0].dtype));
  }
  ASSIGN_OR_RETURN(const Tensor other,
                   arguments.attributes.Get<Tensor>("other"));
  if (!other.IsValid() ||
      (other.dtype() != DType::kString && other.dtype() != DType::kInt64)) {
    return TypeError("attribute \"other\" must be one string or int64");
  }
  RETURN_IF_ERROR(ExpectScalar(arguments, "other", other.dtype()));
  RETURN_IF_ERROR(ExpectTable(arguments, other.dtype()));
  return internal::OneOutput(other.dtype(), arguments.inputs[0].shape);
}

TypesOr HashBucketRule(const TypeRuleArguments& arguments) {
  const DType dtype = arguments.inputs[0].dtype;
  if (dtype != DType::kString && dtype != DType::kInt64 &&
      dtype != DType::kInt32) {
    return TypeError("input 0 must hold string, int32 or int64, not ",
                     DTypeName(dtype));
  }
  const bool has_mask = arguments.attributes.Has("mask");
  RETURN_IF_ERROR(
      IndexAttribute(arguments, "bucket_count", has_mask ? 2 : 1).status());
  RETURN_IF_ERROR(ExpectScalar(arguments, "mask", dtype));
  RETURN_IF_ERROR(ExpectSalt(arguments));
  return internal::OneOutput(DType::kInt64, arguments.inputs[0].shape);
}

TypesOr CrossHashRule(const TypeRuleArguments& arguments) {
  const Shape& shape = arguments.inputs[0].shape;
  for (size_t i = 0; i < arguments.inputs.size(); ++i) {
    const auto& [dtype, input_shape] = arguments.inputs[i];
    if (dtype != DType::kString && dtype != DType::kInt64 &&
        dtype != DType::kInt32) {
      return TypeError("input ", i, " must hold string, int32 or int64, not ",
                       DTypeName(dtype));
    }
    if (input_shape != shape) {
      return TypeError("input ", i, " must have the shape of input 0, ",
                       shape.ToString(), ", not ", input_shape.ToString());
    }
  }
  RETURN_IF_ERROR(IndexAttribute(arguments, "bucket_count", 1).status());
  return internal::OneOutput(DType::kInt64, shape);
}

// Checks that the attribute is one of `names`.
template <size_t count>
absl::Status ExpectName(const TypeRuleArguments& arguments,
                        absl::string_view attribute,
                        const absl::string_view (&names)[count]) {
  ASSIGN_OR_RETURN(const std::string name,
                   arguments.attributes.Get<std::string>(attribute));
  if (std::find(std::begin(names), std::end(names), name) != std::end(names)) {
    return absl::OkStatus();
  }
  return TypeError("attribute \"", attribute, "\" is unknown: ", name);
}

// Checks the input and the attributes of TokenOptions. Returns the extent of
// the batch.
absl::StatusOr<int64_t> ExpectTexts(const TypeRuleArguments& arguments) {
  const TensorType& input = arguments.inputs[0];
  if (input.dtype != DType::kString) {
    return TypeError("input 0 must hold string, not ", DTypeName(input.dtype));
  }
  RETURN_IF_ERROR(internal::ExpectRank(arguments, 0, 2, 2));
  RETURN_IF_ERROR(ExpectName(arguments, "standardize", kStandardizeNames));
  RETURN_IF_ERROR(ExpectName(arguments, "split", kSplitNames));
  const bool splits =
      arguments.attributes.GetOr<std::string>("split", "") != kSplitNames[0];
  const int64_t text_count = input.shape.dim(1);
  if (splits && text_count != 1 && text_count != Shape::kUnknown) {
    return TypeError("input 0 must have one text in each row, not ",
                     text_count);
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> ngrams,
                   arguments.attributes.Get<std::vector<int64_t>>("ngrams"));
  for (const int64_t length : ngrams) {
    if (length >= 1 && length <= kIndexMax) continue;
    return TypeError("attribute \"ngrams\" has a length of ", length,
                     "; expected 1 or more");
  }
  return input.shape.dim(0);
}

TypesOr TokensRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t batch, ExpectTexts(arguments));
  ASSIGN_OR_RETURN(const int64_t length,
                   IndexAttribute(arguments, "length", 0));
  ASSIGN_OR_RETURN(const Shape shape,
                   Shape::Create({batch, length}, /*allow_unknown=*/true));
  return internal::OneOutput(DType::kString, shape);
}

TypesOr CountTokensRule(const TypeRuleArguments& arguments) {
  ASSIGN_OR_RETURN(const int64_t batch, ExpectTexts(arguments));
  RETURN_IF_ERROR(ExpectTable(arguments, DType::kString));
  ASSIGN_OR_RETURN(const int64_t depth, IndexAttribute(arguments, "depth", 0));
  ASSIGN_OR_RETURN(const Shape shape,
                   Shape::Create({batch, depth}, /*allow_unknown=*/true));
  return internal::OneOutput(DType::kFloat32, shape);
}

void AddTokenOptions(const TokenOptions& options, Attributes* attributes) {
  attributes->Set(
      "standardize",
      std::string(kStandardizeNames[static_cast<int>(options.standardize)]));
  attributes->Set("split",
                  std::string(kSplitNames[static_cast<int>(options.split)]));
  attributes->Set("ngrams", options.ngrams);
}

}  // namespace

Attributes LookupTable::ToAttributes() const {
  Attributes attributes = {{"vocabulary", vocabulary},
                           {"oov_index", oov_index},
                           {"oov_count", oov_count},
                           {"mask_index", mask_index}};
  if (mask.has_value()) attributes.Set("mask", *mask);
  if (hashes_integers) attributes.Set("hashes_integers", true);
  if (!salt.empty()) attributes.Set("salt", salt);
  return attributes;
}

Value LookupIndex(Value x, const LookupTable& table) {
  return internal::Apply("LookupIndex", {x}, table.ToAttributes());
}

Value LookupCategory(Value x, const LookupTable& table, const Tensor& other) {
  Attributes attributes = table.ToAttributes();
  attributes.Set("other", other);
  return internal::Apply("LookupCategory", {x}, std::move(attributes));
}

Value HashBucket(Value x, int64_t bucket_count,
                 const HashBucketOptions& options) {
  Attributes attributes = {{"bucket_count", bucket_count}};
  if (options.mask.has_value()) attributes.Set("mask", *options.mask);
  if (!options.salt.empty()) attributes.Set("salt", options.salt);
  return internal::Apply("HashBucket", {x}, std::move(attributes));
}

Value CrossHash(absl::Span<const Value> x, int64_t bucket_count) {
  return internal::Apply("CrossHash", x, {{"bucket_count", bucket_count}});
}

Value Tokens(Value x, const TokenOptions& options, int64_t length) {
  Attributes attributes = {{"length", length}};
  AddTokenOptions(options, &attributes);
  return internal::Apply("Tokens", {x}, std::move(attributes));
}

Value CountTokens(Value x, const TokenOptions& options,
                  const LookupTable& table, int64_t depth) {
  Attributes attributes = table.ToAttributes();
  attributes.Set("depth", depth);
  AddTokenOptions(options, &attributes);
  return internal::Apply("CountTokens", {x}, std::move(attributes));
}

namespace internal {

void RegisterStringOps(OpRegistry* registry) {
  const auto add = [registry](absl::string_view name,
                              OpSchema::TypeRule type_rule) {
    registry->Register({.name = std::string(name),
                        .input_count_min = 1,
                        .input_count_max = 1,
                        .type_rule = type_rule,
                        .golden_exemption = GoldenExemption::kLayer});
  };
  add("LookupIndex", LookupIndexRule);
  add("LookupCategory", LookupCategoryRule);
  add("HashBucket", HashBucketRule);
  add("Tokens", TokensRule);
  add("CountTokens", CountTokensRule);
  registry->Register({.name = "CrossHash",
                      .input_count_min = 2,
                      .input_count_max = OpSchema::kAnyCount,
                      .type_rule = CrossHashRule,
                      .golden_exemption = GoldenExemption::kLayer});
}

}  // namespace internal
}  // namespace muster
