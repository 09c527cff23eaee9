#include "common/io/records/example.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/message_lite.h"
#include "proto/example.pb.h"

namespace muster {
namespace {

std::string SerializeInOrder(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

template <typename Message>
absl::StatusOr<Message> Parse(absl::string_view bytes, const char* name) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError(absl::StrCat("a record of ", bytes.size(),
                                            " bytes is not a tf.train.", name));
  }
  return message;
}

absl::Status FeatureError(const FeatureSpec& spec, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("feature \"", spec.key, "\" ", what));
}

absl::string_view KindName(const proto::Feature& feature) {
  switch (feature.kind_case()) {
    case proto::Feature::kBytesList:
      return "bytes_list";
    case proto::Feature::kFloatList:
      return "float_list";
    case proto::Feature::kInt64List:
      return "int64_list";
    default:
      return "nothing";
  }
}

// Copies `values` and pads the rest.
template <typename T, typename Values>
absl::Status CopyValues(const Values& values, const FeatureSpec& spec,
                        Tensor* tensor) {
  const absl::Span<T> out = tensor->mutable_flat<T>();
  const size_t count = static_cast<size_t>(values.size());
  const size_t row_size =
      spec.padded && spec.shape.dim(0) > 0
          ? out.size() / static_cast<size_t>(spec.shape.dim(0))
          : 1;
  if (spec.padded ? count > out.size() || count % std::max<size_t>(row_size, 1)
                  : count != out.size()) {
    return FeatureError(spec, absl::StrCat("has ", count, " values; expected ",
                                           spec.padded ? "whole rows of " : "",
                                           spec.shape.ToString()));
  }
  std::copy(values.begin(), values.end(), out.begin());
  const T fill = spec.padded && spec.default_value.has_value()
                     ? spec.default_value->flat<T>()[0]
                     : T();
  std::fill(out.begin() + count, out.end(), fill);
  return absl::OkStatus();
}

bool HasVaryingLength(const FeatureSpec& spec) {
  return spec.shape.rank() > 0 && spec.shape.dim(0) == Shape::kUnknown;
}

// Returns the number of values of a feature; 0 if there is none.
int64_t ValueCount(const proto::Feature* feature) {
  if (feature == nullptr) return 0;
  switch (feature->kind_case()) {
    case proto::Feature::kBytesList:
      return feature->bytes_list().value_size();
    case proto::Feature::kFloatList:
      return feature->float_list().value_size();
    case proto::Feature::kInt64List:
      return feature->int64_list().value_size();
    default:
      return 0;
  }
}

// Returns the shape of the tensor of `feature`. Values after the last complete
// row do not count.
Shape TensorShape(const proto::Feature* feature, const FeatureSpec& spec) {
  if (!HasVaryingLength(spec)) return spec.shape;
  Shape shape = spec.shape;
  const int64_t row_size = shape.ElementCountInRange(1, shape.rank());
  shape.set_dim(0, row_size == 0 ? 0 : ValueCount(feature) / row_size);
  return shape;
}

template <typename T>
absl::Status CopyDefault(const FeatureSpec& spec, Tensor* tensor) {
  const absl::Span<T> out = tensor->mutable_flat<T>();
  if (spec.padded) return CopyValues<T>(absl::Span<const T>(), spec, tensor);
  if (HasVaryingLength(spec)) return absl::OkStatus();
  if (!spec.default_value.has_value()) {
    return FeatureError(spec, "is missing, and has no default");
  }
  const absl::Span<const T> values = spec.default_value->flat<T>();
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = values[values.size() == 1 ? 0 : i];
  }
  return absl::OkStatus();
}

}  // namespace

proto::Feature BytesFeature(absl::Span<const std::string> values) {
  proto::Feature feature;
  *feature.mutable_bytes_list()->mutable_value() = {values.begin(),
                                                    values.end()};
  return feature;
}

proto::Feature FloatFeature(absl::Span<const float> values) {
  proto::Feature feature;
  *feature.mutable_float_list()->mutable_value() = {values.begin(),
                                                    values.end()};
  return feature;
}

proto::Feature Int64Feature(absl::Span<const int64_t> values) {
  proto::Feature feature;
  *feature.mutable_int64_list()->mutable_value() = {values.begin(),
                                                    values.end()};
  return feature;
}

std::string SerializeExample(const proto::Example& example) {
  return SerializeInOrder(example);
}

std::string SerializeSequenceExample(const proto::SequenceExample& example) {
  return SerializeInOrder(example);
}

absl::StatusOr<proto::Example> ParseExampleMessage(absl::string_view bytes) {
  return Parse<proto::Example>(bytes, "Example");
}

absl::StatusOr<proto::SequenceExample> ParseSequenceExampleMessage(
    absl::string_view bytes) {
  return Parse<proto::SequenceExample>(bytes, "SequenceExample");
}

absl::Status CheckFeatureSpec(const FeatureSpec& spec) {
  if (spec.dtype != DType::kFloat32 && spec.dtype != DType::kInt64 &&
      spec.dtype != DType::kString) {
    return FeatureError(spec,
                        absl::StrCat("must be ", DTypeName(spec.dtype),
                                     "; expected float32, int64 or string"));
  }
  Shape row = spec.shape;
  if (HasVaryingLength(spec)) {
    row.RemoveDim(0);
    if (spec.padded || spec.default_value.has_value()) {
      return FeatureError(
          spec,
          "is of unknown length and has a default or is padded; expected "
          "neither, because batches pad it");
    }
  }
  if (!row.IsFullyKnown() || (spec.padded && spec.shape.rank() == 0)) {
    return FeatureError(
        spec,
        absl::StrCat(
            "must have the shape ", spec.shape.ToString(), "; expected ",
            spec.padded ? "at least one extent, and all known"
                        : "known extents; only the outermost may be unknown"));
  }
  const int64_t value_bytes = static_cast<int64_t>(SizeOf(spec.dtype));
  if (row.element_count() > kFeatureBytesMax / value_bytes) {
    return FeatureError(
        spec, absl::StrCat("must have the shape ", spec.shape.ToString(),
                           "; expected at most ", kFeatureBytesMax, " bytes"));
  }
  if (!spec.default_value.has_value()) return absl::OkStatus();
  const Tensor& value = *spec.default_value;
  if (value.dtype() == spec.dtype &&
      (value.element_count() == 1 ||
       (!spec.padded && value.shape() == spec.shape))) {
    return absl::OkStatus();
  }
  return FeatureError(spec,
                      absl::StrCat("has the default ", value.type().ToString(),
                                   "; expected ", DTypeName(spec.dtype), "[]",
                                   spec.padded ? "" : " or its shape"));
}

absl::Status FeatureToTensor(const proto::Feature* feature,
                             const FeatureSpec& spec, Tensor* tensor) {
  const Shape shape = TensorShape(feature, spec);
  if (!tensor->IsValid() || tensor->dtype() != spec.dtype ||
      tensor->shape() != shape || !tensor->IsSoleOwner()) {
    *tensor = Tensor(spec.dtype, shape);
  }
  const bool is_missing = feature == nullptr ||
                          feature->kind_case() == proto::Feature::KIND_NOT_SET;
  switch (spec.dtype) {
    case DType::kFloat32:
      if (is_missing) return CopyDefault<float>(spec, tensor);
      if (!feature->has_float_list()) break;
      return CopyValues<float>(feature->float_list().value(), spec, tensor);
    case DType::kInt64:
      if (is_missing) return CopyDefault<int64_t>(spec, tensor);
      if (!feature->has_int64_list()) break;
      return CopyValues<int64_t>(feature->int64_list().value(), spec, tensor);
    default:
      if (is_missing) return CopyDefault<std::string>(spec, tensor);
      if (!feature->has_bytes_list()) break;
      return CopyValues<std::string>(feature->bytes_list().value(), spec,
                                     tensor);
  }
  return FeatureError(spec, absl::StrCat("holds ", KindName(*feature),
                                         "; expected ", DTypeName(spec.dtype)));
}

}  // namespace muster
