#ifndef COMMON_IO_EVENTS_SUMMARIES_H_
#define COMMON_IO_EVENTS_SUMMARIES_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/event.pb.h"

namespace muster {

// Values of event files as TensorFlow 2's summary functions make them, each
// with the metadata that tells TensorBoard which of its pages shows it.

// Equivalent to: tf.summary.scalar.
proto::Summary::Value ScalarSummary(absl::string_view tag, double value);

// `bucket_count` buckets of one width from the least value to the greatest,
// fewer only where there are no values. NaNs and infinities are counted in
// none. Equivalent to: tf.summary.histogram.
inline constexpr int kHistogramBucketCount = 30;
proto::Summary::Value HistogramSummary(
    absl::string_view tag, absl::Span<const double> values,
    int bucket_count = kHistogramBucketCount);

// Markdown. Equivalent to: tf.summary.text.
proto::Summary::Value TextSummary(absl::string_view tag,
                                  absl::string_view text);

// 8-bit pixels, `channel_count` of 1 (grey), 3 or 4 (with opacity), by rows.
// Equivalent to: tf.summary.image, of one image.
struct ImageView {
  int width = 0;
  int height = 0;
  int channel_count = 1;
  absl::Span<const uint8_t> pixels;  // height * width * channel_count.
};
proto::Summary::Value ImageSummary(absl::string_view tag,
                                   absl::Span<const ImageView> images);

// What the graph page draws: a model as keras.Model.to_json() has it.
proto::Summary::Value KerasModelSummary(absl::string_view tag,
                                        absl::string_view model_json);

}  // namespace muster

#endif  // COMMON_IO_EVENTS_SUMMARIES_H_
