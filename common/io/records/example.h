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

namespace muster {
namespace proto {
class Example;
class Feature;
class SequenceExample;
}  // namespace proto

// To build one: (*example.mutable_features()->mutable_feature())["label"] =
// Int64Feature({7}).
proto::Feature BytesFeature(absl::Span<const std::string> values);
proto::Feature FloatFeature(absl::Span<const float> values);
proto::Feature Int64Feature(absl::Span<const int64_t> values);

// Serializes to the same bytes on every machine: features are sorted by name.
std::string SerializeExample(const proto::Example& example);
std::string SerializeSequenceExample(const proto::SequenceExample& example);

//   kDataLoss  `bytes` are not such a message
absl::StatusOr<proto::Example> ParseExampleMessage(absl::string_view bytes);
absl::StatusOr<proto::SequenceExample> ParseSequenceExampleMessage(
    absl::string_view bytes);

// How a feature is converted to a tensor.
struct FeatureSpec {
  std::string key;
  DType dtype = DType::kFloat32;  // kFloat32, kInt64 or kString.
  // The shape of the tensor, whose values are row-major. If the outermost
  // extent is unknown, the example determines it: any number of complete rows.
  Shape shape = {};
  // The value of a missing feature: a tensor of `shape`, or a scalar for each
  // element. If unset, a missing feature is an error. Must be unset if the
  // outermost extent is unknown: a missing feature then has no rows. If
  // `padded`, a scalar: the padding, by default zero or "".
  std::optional<Tensor> default_value = std::nullopt;
  // If true, the feature may have fewer values, any number of complete rows:
  // `shape` is the maximum. A missing feature has none.
  bool padded = false;
};

// The maximum size of a feature's tensor, strings counted without their
// content. Specifications are received over the network, and a few bytes of one
// can request any size.
inline constexpr int64_t kFeatureBytesMax = int64_t{1} << 30;

//   kInvalidArgument  the fields of `spec` contradict each other, or its shape
//                     needs more than kFeatureBytesMax; names the key
absl::Status CheckFeatureSpec(const FeatureSpec& spec);

// Converts the values of a feature; null if it is missing. `spec` must pass
// CheckFeatureSpec(). Reuses the memory of `tensor` if possible.
//   kInvalidArgument  the feature is missing, or has another kind or number of
//                     values; names the key, what was expected and what was
//                     found
//
// Equivalent to: tf.io.FixedLenFeature, FixedLenSequenceFeature, and
// VarLenFeature as a dense tensor.
absl::Status FeatureToTensor(const proto::Feature* feature,
                             const FeatureSpec& spec, Tensor* tensor);

}  // namespace muster

#endif  // COMMON_IO_RECORDS_EXAMPLE_H_
