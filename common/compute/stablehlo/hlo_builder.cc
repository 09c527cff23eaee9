#include "common/compute/stablehlo/hlo_builder.h"

#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

std::string TypeList(absl::Span<const HloType> types) {
  return absl::StrJoin(types, ", ", [](std::string* out, const HloType& type) {
    absl::StrAppend(out, type.ToString());
  });
}

struct NamesAndTypes {
  std::string names;
  std::string types;
};

NamesAndTypes ListOf(absl::Span<const HloValue> values) {
  std::vector<HloType> types;
  std::string names;
  for (const HloValue& value : values) {
    absl::StrAppend(&names, types.empty() ? "" : ", ", value.name);
    types.push_back(value.type);
  }
  return {std::move(names), TypeList(types)};
}

absl::string_view OperationOf(HloReduction reduction) {
  switch (reduction) {
    case HloReduction::kSum:
      return "stablehlo.add";
    case HloReduction::kProduct:
      return "stablehlo.multiply";
    case HloReduction::kMax:
      return "stablehlo.maximum";
    case HloReduction::kMin:
      return "stablehlo.minimum";
    case HloReduction::kAnd:
      return "stablehlo.and";
  }
  return "";
}

// Returns the dtype of tensors whose elements are `element`.
DType DTypeOfElement(absl::string_view element) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kBfloat16, DType::kFloat16,
        DType::kInt32, DType::kInt64, DType::kUint8, DType::kBool}) {
    if (HloElementOf(dtype) == element) return dtype;
  }
  return DType::kInvalid;
}

std::string HexOf(const uint8_t* data, size_t size) {
  return absl::StrCat("\"0x",
                      absl::BytesToHexString(absl::string_view(
                          reinterpret_cast<const char*>(data), size)),
                      "\"");
}

// Returns the smallest number of the type, or the largest one.
double Limit(absl::string_view element, bool is_lowest) {
  const double sign = is_lowest ? -1 : 1;
  if (element[0] == 'f' || element[0] == 'b') {
    return sign * std::numeric_limits<double>::infinity();
  }
  if (element == "ui8") return is_lowest ? 0 : 255;
  return is_lowest ? std::numeric_limits<int32_t>::lowest()
                   : std::numeric_limits<int32_t>::max();
}

}  // namespace

std::string HloType::ToString() const {
  std::string text = "tensor<";
  for (const int64_t dim : shape.dims()) absl::StrAppend(&text, dim, "x");
  return absl::StrCat(text, element, ">");
}

absl::string_view HloElementOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "f32";
    case DType::kFloat64:
      return "f64";
    case DType::kBfloat16:
      return "bf16";
    case DType::kFloat16:
      return "f16";
    case DType::kInt32:
      return "i32";
    case DType::kInt64:
      return "i64";
    case DType::kUint8:
      return "ui8";
    case DType::kBool:
      return "i1";
    default:
      return "";
  }
}

HloType HloTypeOf(const TensorType& type) {
  return {HloElementOf(type.dtype), type.shape};
}

std::string HloArray(absl::Span<const int64_t> values) {
  // An empty array has no colon.
  if (values.empty()) return "array<i64>";
  return absl::StrCat("array<i64: ", absl::StrJoin(values, ", "), ">");
}

std::string HloList(absl::Span<const int64_t> values) {
  return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
}

HloValue HloBuilder::AddParameter(const HloType& type, int donated_to) {
  const std::string name = absl::StrCat("%", prefix_, "arg", parameter_count_);
  absl::StrAppend(&parameters_, parameter_count_ == 0 ? "" : ", ", name, ": ",
                  type.ToString());
  if (donated_to != kNoResult) {
    absl::StrAppend(&parameters_, " {tf.aliasing_output = ", donated_to,
                    " : i32}");
  }
  ++parameter_count_;
  return {this, name, type};
}

std::string HloBuilder::NewName() {
  return absl::StrCat("%", prefix_, name_count_++);
}

HloValues HloBuilder::EmitMany(absl::string_view op,
                               absl::Span<const HloValue> operands,
                               absl::Span<const HloType> results,
                               absl::string_view attributes,
                               absl::string_view region) {
  const std::string name = NewName();
  const bool is_single = results.size() == 1;
  absl::StrAppend(&body_, "    ", name,
                  is_single ? "" : absl::StrCat(":", results.size()), " = \"",
                  op, "\"(");
  std::vector<HloType> types;
  for (const HloValue& operand : operands) {
    absl::StrAppend(&body_, types.empty() ? "" : ", ", operand.name);
    types.push_back(operand.type);
  }
  absl::StrAppend(&body_, ")");
  if (!region.empty()) absl::StrAppend(&body_, " (", region, ")");
  if (!attributes.empty()) absl::StrAppend(&body_, " {", attributes, "}");
  absl::StrAppend(&body_, " : (", TypeList(types), ") -> ",
                  is_single ? "" : "(", TypeList(results), is_single ? "" : ")",
                  "\n");
  HloValues values;
  for (size_t i = 0; i < results.size(); ++i) {
    values.push_back(
        {this, is_single ? name : absl::StrCat(name, "#", i), results[i]});
  }
  return values;
}

HloValue HloBuilder::Emit(absl::string_view op,
                          absl::Span<const HloValue> operands,
                          const HloType& result, absl::string_view attributes,
                          absl::string_view region) {
  return EmitMany(op, operands, {result}, attributes, region)[0];
}

HloValue HloBuilder::Constant(const Tensor& tensor) {
  const HloType type = HloTypeOf(tensor.type());
  if (tensor.dtype() == DType::kBool) {
    // The bits of an i1 constant are packed, the elements of a tensor are not.
    Tensor bytes(DType::kUint8, tensor.shape());
    const auto flags = tensor.flat<bool>();
    const auto out = bytes.mutable_flat<uint8_t>();
    for (size_t i = 0; i < flags.size(); ++i) out[i] = flags[i] ? 1 : 0;
    return Emit("stablehlo.convert", {Constant(bytes)}, type);
  }
  const std::string data = tensor.element_count() == 0
                               ? ""
                               : HexOf(tensor.raw_data(), tensor.size_bytes());
  return Emit("stablehlo.constant", {}, type,
              absl::StrCat("value = dense<", data, "> : ", type.ToString()));
}

HloValue HloBuilder::Constant(const HloType& type, double value) {
  const DType dtype = DTypeOfElement(type.element);
  if (dtype == DType::kBool) {
    return Emit("stablehlo.constant", {}, type,
                absl::StrCat("value = dense<", value != 0 ? "true" : "false",
                             "> : ", type.ToString()));
  }
  if (dtype == DType::kInvalid) {
    return Emit("stablehlo.constant", {}, type,
                absl::StrCat("value = dense<", static_cast<uint64_t>(value),
                             "> : ", type.ToString()));
  }
  const HloValue scalar = Constant(Tensor::Full(dtype, Shape(), value));
  if (type.shape.rank() == 0) return scalar;
  return Emit("stablehlo.broadcast_in_dim", {scalar}, type,
              "broadcast_dimensions = array<i64>");
}

HloValue HloBuilder::Constant64(absl::string_view element, uint64_t value) {
  const HloType type = {element, Shape()};
  return Emit("stablehlo.constant", {}, type,
              absl::StrCat("value = dense<", value, "> : ", type.ToString()));
}

HloValue HloBuilder::Iota(const HloType& type, int axis) {
  return Emit("stablehlo.iota", {}, type,
              absl::StrCat("iota_dimension = ", axis, " : i64"));
}

std::string HloBuilder::ReductionRegion(HloReduction reduction,
                                        absl::string_view element) {
  const std::string a = NewName();
  const std::string b = NewName();
  const std::string y = NewName();
  const std::string type = HloType{element, Shape()}.ToString();
  return absl::StrCat("{ ^bb0(", a, ": ", type, ", ", b, ": ", type, "): ", y,
                      " = \"", OperationOf(reduction), "\"(", a, ", ", b,
                      ") : (", type, ", ", type, ") -> ", type,
                      " \"stablehlo.return\"(", y, ") : (", type, ") -> () }");
}

HloValue HloBuilder::InitialValue(HloReduction reduction,
                                  absl::string_view element) {
  const HloType type = {element, Shape()};
  switch (reduction) {
    case HloReduction::kSum:
      return Constant(type, 0);
    case HloReduction::kProduct:
    case HloReduction::kAnd:
      return Constant(type, 1);
    case HloReduction::kMax:
    case HloReduction::kMin:
      break;
  }
  const bool is_max = reduction == HloReduction::kMax;
  if (element == "i64") {
    return Constant(
        Tensor::Scalar<int64_t>(is_max ? std::numeric_limits<int64_t>::lowest()
                                       : std::numeric_limits<int64_t>::max()));
  }
  return Constant(type, Limit(element, is_max));
}

std::string HloBuilder::Build(absl::string_view name, int replica_count,
                              absl::Span<const HloValue> results) const {
  const NamesAndTypes listed = ListOf(results);
  return absl::StrCat(
      "module @", name, " attributes {mhlo.num_replicas = ", replica_count,
      " : i32, mhlo.num_partitions = 1 : i32} {\n  func.func public @main(",
      parameters_, ") -> (", listed.types, ") {\n", body_,
      "    \"func.return\"(", listed.names, ") : (", listed.types,
      ") -> ()\n  }\n}\n");
}

std::string HloBuilder::BuildRegion(absl::Span<const HloValue> results) const {
  const NamesAndTypes listed = ListOf(results);
  return absl::StrCat("{\n  ^bb0(", parameters_, "):\n", body_,
                      "    \"stablehlo.return\"(", listed.names, ") : (",
                      listed.types, ") -> ()\n  }");
}

}  // namespace muster
