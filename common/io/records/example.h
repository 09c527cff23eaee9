#ifndef COMMON_IO_RECORDS_EXAMPLE_H_
#define COMMON_IO_RECORDS_EXAMPLE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "proto/example.pb.h"

namespace muster {

// Building: (*example.mutable_features()->mutable_feature())["label"] =
// Int64Feature({7}).
proto::Feature BytesFeature(absl::Span<const std::string> values);
proto::Feature FloatFeature(absl::Span<const float> values);
proto::Feature Int64Feature(absl::Span<const int64_t> values);

// The same bytes for the same message on every machine: features sorted by
// name.
std::string SerializeExample(const proto::Example& example);
std::string SerializeSequenceExample(const proto::SequenceExample& example);

//   kDataLoss  `bytes` are no such message
absl::StatusOr<proto::Example> ParseExampleMessage(absl::string_view bytes);
absl::StatusOr<proto::SequenceExample> ParseSequenceExampleMessage(
    absl::string_view bytes);

// How a feature becomes a tensor.
struct FeatureSpec {
  std::string key;
  DType dtype = DType::kFloat32;  // kFloat32, kInt64 or kString.
  // As many values as this holds, row-major.
  Shape shape = {};
  // What a missing feature means, of `shape` or a scalar for each element;
  // without it a missing feature is an error. When `padded`, a scalar: what
  // fills up, otherwise zero or "".
  std::optional<Tensor> default_value = std::nullopt;
  // The feature may have fewer values, any number of whole rows: `shape` has
  // the most there may be. A missing one has none.
  bool padded = false;
};

//   kInvalidArgument  the parts of `spec` do not fit each other; names the key
absl::Status CheckFeatureSpec(const FeatureSpec& spec);

// The values of a feature; null: there is none. `spec` passes
// CheckFeatureSpec(). Uses the memory of `tensor` again where it can.
//   kInvalidArgument  missing, or of another kind or number of values; names
//                     the key, what was expected and what came
//
// Equivalent to: tf.io.FixedLenFeature, FixedLenSequenceFeature.
absl::Status FeatureToTensor(const proto::Feature* feature,
                             const FeatureSpec& spec, Tensor* tensor);

}  // namespace muster

#endif  // COMMON_IO_RECORDS_EXAMPLE_H_
