#include "common/core/tensor/attributes.h"

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/tensor_codec.h"
#include "proto/graph.pb.h"

namespace muster {
namespace {

absl::Status AttributeError(absl::string_view name, bool present) {
  return absl::InvalidArgumentError(
      absl::StrCat("attribute \"", name, "\" is ",
                   present ? "of another kind than expected" : "missing"));
}

struct Printer {
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const { return absl::StrCat(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const {
    return absl::StrCat("\"", absl::CEscape(value), "\"");
  }
  std::string operator()(const std::vector<int64_t>& values) const {
    return absl::StrCat("[", absl::StrJoin(values, ","), "]");
  }
  std::string operator()(DType value) const { return DTypeString(value); }
  std::string operator()(const Shape& value) const { return value.ToString(); }
  std::string operator()(const Tensor& value) const {
    return value.DebugString();
  }
};

struct Encoder {
  proto::AttributeValue* encoded;

  void operator()(int64_t value) const { encoded->set_int_value(value); }
  void operator()(double value) const { encoded->set_float_value(value); }
  void operator()(bool value) const { encoded->set_bool_value(value); }
  void operator()(const std::string& value) const {
    encoded->set_string_value(value);
  }
  void operator()(const std::vector<int64_t>& values) const {
    auto* list = encoded->mutable_int_list();
    for (const int64_t value : values) list->add_values(value);
  }
  void operator()(DType value) const { encoded->set_dtype(EncodeDType(value)); }
  void operator()(const Shape& value) const {
    *encoded->mutable_shape() = EncodeShape(value);
  }
  void operator()(const Tensor& value) const {
    *encoded->mutable_tensor() = EncodeTensor(value);
  }
};

}  // namespace

Attributes::Attributes() = default;
Attributes::Attributes(const Attributes& other) = default;
Attributes::Attributes(Attributes&& other) noexcept = default;
Attributes& Attributes::operator=(const Attributes& other) = default;
Attributes& Attributes::operator=(Attributes&& other) noexcept = default;
Attributes::~Attributes() = default;

Attributes::Attributes(
    std::initializer_list<std::pair<const std::string, Attribute>> values)
    : values_(values.begin(), values.end()) {}

void Attributes::Set(absl::string_view name, Attribute value) {
  values_[std::string(name)] = std::move(value);
}

bool Attributes::Has(absl::string_view name) const {
  return Find(name) != nullptr;
}

const Attribute* Attributes::Find(absl::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

template <typename T>
absl::StatusOr<T> Attributes::Get(absl::string_view name) const {
  const Attribute* attribute = Find(name);
  const T* value = std::get_if<T>(attribute);
  if (value == nullptr) return AttributeError(name, attribute != nullptr);
  return *value;
}

template <typename T>
T Attributes::GetOr(absl::string_view name, T fallback) const {
  const T* value = std::get_if<T>(Find(name));
  return value == nullptr ? fallback : *value;
}

#define MUSTER_INSTANTIATE_READERS(T)                                     \
  template absl::StatusOr<T> Attributes::Get<T>(absl::string_view) const; \
  template T Attributes::GetOr<T>(absl::string_view, T) const
MUSTER_INSTANTIATE_READERS(int64_t);
MUSTER_INSTANTIATE_READERS(double);
MUSTER_INSTANTIATE_READERS(bool);
MUSTER_INSTANTIATE_READERS(std::string);
MUSTER_INSTANTIATE_READERS(std::vector<int64_t>);
MUSTER_INSTANTIATE_READERS(DType);
MUSTER_INSTANTIATE_READERS(Shape);
MUSTER_INSTANTIATE_READERS(Tensor);
#undef MUSTER_INSTANTIATE_READERS

std::string AttributeToString(const Attribute& attribute) {
  return std::visit(Printer(), attribute);
}

proto::AttributeValue EncodeAttribute(const Attribute& attribute) {
  proto::AttributeValue encoded;
  std::visit(Encoder{&encoded}, attribute);
  return encoded;
}

absl::StatusOr<Attribute> DecodeAttribute(const proto::AttributeValue& value) {
  switch (value.kind_case()) {
    case proto::AttributeValue::kIntValue:
      return Attribute(int64_t{value.int_value()});
    case proto::AttributeValue::kFloatValue:
      return Attribute(value.float_value());
    case proto::AttributeValue::kBoolValue:
      return Attribute(value.bool_value());
    case proto::AttributeValue::kStringValue:
      return Attribute(value.string_value());
    case proto::AttributeValue::kIntList:
      return Attribute(std::vector<int64_t>(value.int_list().values().begin(),
                                            value.int_list().values().end()));
    case proto::AttributeValue::kDtype: {
      ASSIGN_OR_RETURN(const DType dtype, DecodeDType(value.dtype()));
      return Attribute(dtype);
    }
    case proto::AttributeValue::kShape: {
      ASSIGN_OR_RETURN(Shape shape, DecodeShape(value.shape(), true));
      return Attribute(std::move(shape));
    }
    case proto::AttributeValue::kTensor: {
      ASSIGN_OR_RETURN(Tensor tensor, DecodeTensor(value.tensor()));
      return Attribute(std::move(tensor));
    }
    case proto::AttributeValue::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("an attribute has no value");
}

}  // namespace muster
