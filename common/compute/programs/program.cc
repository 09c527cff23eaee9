#include "common/compute/programs/program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/core/base/nesting_depth.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "nlohmann/json.hpp"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

// The fields of the encoded form.
constexpr char kName[] = "name";
constexpr char kInputs[] = "inputs";
constexpr char kOutputs[] = "outputs";
constexpr char kGradientInputs[] = "gradient_inputs";
constexpr char kGradientOutputs[] = "gradient_outputs";
constexpr char kGradientOfLoss[] = "gradient_of_loss";
constexpr char kVariants[] = "variants";
constexpr char kStableHlo[] = "stablehlo";
constexpr char kGradientStableHlo[] = "gradient_stablehlo";

std::string TypesToString(absl::Span<const TensorType> types) {
  return absl::StrCat(
      "(",
      absl::StrJoin(types, ", ",
                    [](std::string* out, const TensorType& type) {
                      absl::StrAppend(out, type.ToString());
                    }),
      ")");
}

bool IsCompatible(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && a.shape.IsCompatibleWith(b.shape);
}

bool AreCompatible(absl::Span<const TensorType> a,
                   absl::Span<const TensorType> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), IsCompatible);
}

bool AreFullyKnown(absl::Span<const TensorType> types) {
  return std::all_of(types.begin(), types.end(), [](const TensorType& type) {
    return type.shape.IsFullyKnown();
  });
}

// Reads the fields of one JSON object. Errors name `place` and the field.
class FieldReader {
 public:
  FieldReader(const Json& object, std::string place)
      : object_(object), place_(std::move(place)) {}

  absl::StatusOr<std::string> Text(const char* field) const {
    ASSIGN_OR_RETURN(const Json* const value, Find(field));
    if (!value->is_string()) return Error(field, "expected a string");
    return value->get<std::string>();
  }

  absl::StatusOr<std::string> Bytes(const char* field) const {
    ASSIGN_OR_RETURN(const std::string text, Text(field));
    std::string bytes;
    if (absl::Base64Unescape(text, &bytes)) return bytes;
    return Error(field, "expected base64");
  }

  absl::StatusOr<std::vector<TensorType>> Types(const char* field) const {
    ASSIGN_OR_RETURN(const Json* const list, List(field));
    std::vector<TensorType> types;
    for (const Json& one : *list) {
      if (!one.is_string()) return Error(field, "expected types as strings");
      const auto type = ParseTensorType(one.get<std::string>());
      if (!type.ok()) return Error(field, type.status().message());
      types.push_back(*type);
    }
    return types;
  }

  absl::StatusOr<ProgramTypes> InputsAndOutputs() const {
    ProgramTypes types;
    ASSIGN_OR_RETURN(types.inputs, Types(kInputs));
    ASSIGN_OR_RETURN(types.outputs, Types(kOutputs));
    return types;
  }

  absl::StatusOr<const Json*> List(const char* field) const {
    ASSIGN_OR_RETURN(const Json* const value, Find(field));
    if (!value->is_array()) return Error(field, "expected a list");
    return value;
  }

  // Returns a number from `low` to `high`.
  absl::StatusOr<int> Number(const char* field, const Json& value, int64_t low,
                             int64_t high) const {
    if (value.is_number_integer() && value.get<int64_t>() >= low &&
        value.get<int64_t>() <= high) {
      return static_cast<int>(value.get<int64_t>());
    }
    return Error(field, absl::StrCat("expected a number from ", low, " to ",
                                     high, ", got ", value.dump()));
  }

  bool Has(const char* field) const { return object_.contains(field); }

  absl::StatusOr<const Json*> Find(const char* field) const {
    if (!object_.is_object() || !object_.contains(field)) {
      return Error(field, "is absent");
    }
    return &object_[field];
  }

  absl::Status Error(const char* field, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(place_, ": ", field, ": ", what));
  }

 private:
  const Json& object_;
  const std::string place_;
};

// Checks the outputs of a program whose last ones are gradients of a loss.
absl::Status CheckGradientOfLoss(const FieldReader& reader,
                                 const ProgramTypes& types,
                                 absl::Span<const int> inputs) {
  const size_t count = inputs.size();
  if (types.outputs.size() <= count || types.outputs[0].shape.rank() < 2 ||
      !IsFloating(types.outputs[0].dtype)) {
    return reader.Error(
        kGradientOfLoss,
        absl::StrCat("expected an output with rows of a loss, then ", count,
                     " gradients, got ", TypesToString(types.outputs)));
  }
  for (size_t i = 0; i < count; ++i) {
    const TensorType& type = types.outputs[types.outputs.size() - count + i];
    if (type == types.inputs[inputs[i]]) continue;
    return reader.Error(kGradientOfLoss,
                        absl::StrCat("the gradient of input ", inputs[i],
                                     " is ", type.ToString(), "; expected ",
                                     types.inputs[inputs[i]].ToString()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Program::Gradient> DecodeGradient(const FieldReader& reader,
                                                 const ProgramTypes& types) {
  Program::Gradient gradient;
  ASSIGN_OR_RETURN(const Json* const indices, reader.List(kGradientInputs));
  for (const Json& value : *indices) {
    ASSIGN_OR_RETURN(
        const int index,
        reader.Number(kGradientInputs, value, 0,
                      static_cast<int64_t>(types.inputs.size()) - 1));
    if (!IsFloating(types.inputs[index].dtype)) {
      return reader.Error(
          kGradientInputs,
          absl::StrCat("input ", index, " is ", types.inputs[index].ToString(),
                       "; expected a floating dtype"));
    }
    gradient.inputs.push_back(index);
  }
  if (reader.Has(kGradientOfLoss)) {
    ASSIGN_OR_RETURN(const Json* const of_loss, reader.Find(kGradientOfLoss));
    gradient.is_of_loss = *of_loss == true;
  }
  if (gradient.is_of_loss) {
    RETURN_IF_ERROR(CheckGradientOfLoss(reader, types, gradient.inputs));
    return gradient;
  }
  ASSIGN_OR_RETURN(const Json* const count, reader.Find(kGradientOutputs));
  ASSIGN_OR_RETURN(gradient.output_count,
                   reader.Number(kGradientOutputs, *count, 0,
                                 static_cast<int64_t>(types.outputs.size())));
  for (int i = 0; i < gradient.output_count; ++i) {
    if (IsFloating(types.outputs[i].dtype)) continue;
    return reader.Error(
        kGradientOutputs,
        absl::StrCat("output ", i, " is ", types.outputs[i].ToString(),
                     "; expected a floating dtype"));
  }
  return gradient;
}

bool HasGradientModule(const Program& program) {
  return program.gradient.has_value() && !program.gradient->is_of_loss;
}

absl::StatusOr<Program::Variant> DecodeVariant(const Program& program,
                                               const Json& json, int index) {
  const FieldReader reader(
      json, absl::StrCat("program ", program.name, ", variant ", index));
  Program::Variant variant;
  ASSIGN_OR_RETURN(variant.types, reader.InputsAndOutputs());
  const auto check = [&](const char* field, absl::Span<const TensorType> found,
                         absl::Span<const TensorType> expected) {
    if (AreFullyKnown(found) && AreCompatible(found, expected)) {
      return absl::OkStatus();
    }
    return reader.Error(field, absl::StrCat("expected known extents of ",
                                            TypesToString(expected), ", got ",
                                            TypesToString(found)));
  };
  RETURN_IF_ERROR(check(kInputs, variant.types.inputs, program.types.inputs));
  RETURN_IF_ERROR(
      check(kOutputs, variant.types.outputs, program.types.outputs));
  ASSIGN_OR_RETURN(variant.stablehlo, reader.Bytes(kStableHlo));
  if (HasGradientModule(program)) {
    ASSIGN_OR_RETURN(variant.gradient_stablehlo,
                     reader.Bytes(kGradientStableHlo));
  }
  return variant;
}

Json EncodeTypes(absl::Span<const TensorType> types) {
  Json list = Json::array();
  for (const TensorType& type : types) list.push_back(type.ToString());
  return list;
}

// Returns the extent that all unknown extents of `of` have in `inputs`; unset
// if there are several.
std::optional<int64_t> CommonExtent(absl::Span<const TensorType> of,
                                    absl::Span<const TensorType> inputs) {
  std::optional<int64_t> common;
  for (size_t i = 0; i < of.size(); ++i) {
    for (int axis = 0; axis < of[i].shape.rank(); ++axis) {
      if (of[i].shape.dim(axis) != Shape::kUnknown) continue;
      const int64_t extent = inputs[i].shape.dim(axis);
      if (common.value_or(extent) != extent) return std::nullopt;
      common = extent;
    }
  }
  return common;
}

TensorType WithExtent(TensorType type, int64_t extent) {
  for (int axis = 0; axis < type.shape.rank(); ++axis) {
    if (type.shape.dim(axis) == Shape::kUnknown) {
      type.shape.set_dim(axis, extent);
    }
  }
  return type;
}

}  // namespace

ProgramTypes Program::GradientTypes(const ProgramTypes& of) const {
  ProgramTypes result = {of.inputs, {}};
  for (int i = 0; i < gradient->output_count; ++i) {
    result.inputs.push_back(of.outputs[i]);
  }
  for (const int index : gradient->inputs) {
    result.outputs.push_back(of.inputs[index]);
  }
  return result;
}

absl::StatusOr<int> Program::FindVariant(absl::Span<const TensorType> inputs,
                                         bool is_gradient) const {
  // The inputs of a gradient begin with those of the program.
  const size_t count = types.inputs.size();
  if (inputs.size() >= count) {
    const auto own = inputs.first(count);
    for (size_t i = 0; i < variants.size(); ++i) {
      const ProgramTypes& of = variants[i].types;
      if (own == absl::MakeConstSpan(of.inputs) &&
          (!is_gradient ||
           inputs == absl::MakeConstSpan(GradientTypes(of).inputs))) {
        return static_cast<int>(i);
      }
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "program ", name, " was not exported for ", TypesToString(inputs),
      ", but for ",
      absl::StrJoin(variants, ", ",
                    [](std::string* out, const Variant& variant) {
                      absl::StrAppend(out, TypesToString(variant.types.inputs));
                    })));
}

absl::StatusOr<std::vector<TensorType>> Program::InferOutputs(
    absl::Span<const TensorType> inputs, bool is_gradient) const {
  if (is_gradient && !HasGradientModule(*this)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "program ", name, " was exported without a separate gradient"));
  }
  const ProgramTypes expected = is_gradient ? GradientTypes(types) : types;
  if (!AreCompatible(inputs, expected.inputs)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "program ", name, " takes ", TypesToString(expected.inputs), ", not ",
        TypesToString(inputs)));
  }
  if (!AreFullyKnown(inputs)) return expected.outputs;
  const auto variant = FindVariant(inputs, is_gradient);
  if (variant.ok()) {
    const ProgramTypes& found = variants[*variant].types;
    return is_gradient ? GradientTypes(found).outputs : found.outputs;
  }
  const std::optional<int64_t> extent = CommonExtent(expected.inputs, inputs);
  if (!extent.has_value()) return variant.status();
  std::vector<TensorType> outputs;
  for (const TensorType& type : expected.outputs) {
    outputs.push_back(WithExtent(type, *extent));
  }
  return outputs;
}

std::string Program::Encode() const {
  Json json = {{kName, name},
               {kInputs, EncodeTypes(types.inputs)},
               {kOutputs, EncodeTypes(types.outputs)}};
  if (gradient.has_value()) {
    json[kGradientInputs] = gradient->inputs;
    if (gradient->is_of_loss) {
      json[kGradientOfLoss] = true;
    } else {
      json[kGradientOutputs] = gradient->output_count;
    }
  }
  json[kVariants] = Json::array();
  for (const Variant& variant : variants) {
    Json one = {{kInputs, EncodeTypes(variant.types.inputs)},
                {kOutputs, EncodeTypes(variant.types.outputs)},
                {kStableHlo, absl::Base64Escape(variant.stablehlo)}};
    if (HasGradientModule(*this)) {
      one[kGradientStableHlo] = absl::Base64Escape(variant.gradient_stablehlo);
    }
    json[kVariants].push_back(std::move(one));
  }
  return json.dump();
}

absl::StatusOr<Program> Program::Decode(absl::string_view encoded) {
  if (encoded.size() > kBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a program of ", encoded.size(),
                     " bytes; expected at most ", kBytesMax));
  }
  if (JsonNestingDepth(encoded) > kNestingDepthMax) {
    return absl::InvalidArgumentError("a program is nested too deeply");
  }
  const Json json = Json::parse(encoded, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return absl::InvalidArgumentError("a program is no JSON");
  }
  Program program;
  ASSIGN_OR_RETURN(program.name, FieldReader(json, "a program").Text(kName));
  const FieldReader reader(json, absl::StrCat("program ", program.name));
  ASSIGN_OR_RETURN(program.types, reader.InputsAndOutputs());
  if (reader.Has(kGradientInputs)) {
    ASSIGN_OR_RETURN(program.gradient, DecodeGradient(reader, program.types));
  }
  ASSIGN_OR_RETURN(const Json* const variants, reader.List(kVariants));
  if (variants->empty()) {
    return reader.Error(kVariants, "expected at least one");
  }
  for (const Json& one : *variants) {
    ASSIGN_OR_RETURN(
        Variant variant,
        DecodeVariant(program, one, static_cast<int>(program.variants.size())));
    program.variants.push_back(std::move(variant));
  }
  return program;
}

bool HasNoExamples(absl::Span<const TensorType> program_inputs,
                   absl::Span<const TensorType> inputs) {
  for (size_t i = 0; i < program_inputs.size(); ++i) {
    for (int axis = 0; axis < program_inputs[i].shape.rank(); ++axis) {
      if (program_inputs[i].shape.dim(axis) == Shape::kUnknown &&
          inputs[i].shape.dim(axis) == 0) {
        return true;
      }
    }
  }
  return false;
}

absl::StatusOr<TensorType> ParseTensorType(absl::string_view text) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text.substr(0, 100),
                                                   "\" is no type such as "
                                                   "float32[?,16]: ",
                                                   what));
  };
  const size_t bracket = text.find('[');
  absl::string_view extents = text;
  if (bracket == absl::string_view::npos) return error("it has no shape");
  extents.remove_prefix(bracket + 1);
  if (!absl::ConsumeSuffix(&extents, "]")) return error("it has no ']'");
  const auto dtype = ParseDType(text.substr(0, bracket));
  if (!dtype.ok()) return error(dtype.status().message());
  std::vector<int64_t> dims;
  if (!extents.empty()) {
    for (const absl::string_view extent : absl::StrSplit(extents, ',')) {
      int64_t value = Shape::kUnknown;
      if (extent != "?" && (!absl::SimpleAtoi(extent, &value) || value < 0)) {
        return error(absl::StrCat("\"", extent, "\" is no extent"));
      }
      dims.push_back(value);
    }
  }
  const auto shape = Shape::Create(dims, /*allow_unknown=*/true);
  if (!shape.ok()) return error(shape.status().message());
  return TensorType{*dtype, *shape};
}

}  // namespace muster
