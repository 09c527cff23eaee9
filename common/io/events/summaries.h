#ifndef COMMON_IO_EVENTS_SUMMARIES_H_
#define COMMON_IO_EVENTS_SUMMARIES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/io/image/image.h"

namespace muster {

namespace proto {
class Summary_Value;
}  // namespace proto

// Values of event files as TensorFlow 2's summary functions create them, with
// the metadata that tells TensorBoard on which page to show them.

// Equivalent to: tf.summary.scalar.
proto::Summary_Value ScalarSummary(absl::string_view tag, double value);

// `bucket_count` buckets of equal width from the smallest value to the largest;
// no buckets if there are no values. NaNs and infinities are not counted.
// Equivalent to: tf.summary.histogram.
inline constexpr int kHistogramBucketCount = 30;
proto::Summary_Value HistogramSummary(absl::string_view tag,
                                      absl::Span<const double> values,
                                      int bucket_count = kHistogramBucketCount);

// Markdown. Equivalent to: tf.summary.text.
proto::Summary_Value TextSummary(absl::string_view tag, absl::string_view text);

// Images of one size, as PNG. Equivalent to: tf.summary.image.
//   kInvalidArgument  an image has no pixels, or not as many as its size
//                     requires
absl::StatusOr<proto::Summary_Value> ImageSummary(
    absl::string_view tag, absl::Span<const Image> images);

// The model shown on the graph page, as keras.Model.to_json() writes it.
proto::Summary_Value KerasModelSummary(absl::string_view tag,
                                       absl::string_view model_json);

}  // namespace muster

#endif  // COMMON_IO_EVENTS_SUMMARIES_H_
