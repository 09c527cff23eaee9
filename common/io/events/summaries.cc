#include "common/io/events/summaries.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/io/image/png.h"
#include "proto/event.pb.h"
#include "proto/tensor.pb.h"

namespace muster {
namespace {

using proto::Summary;

Summary::Value MakeValue(absl::string_view tag, absl::string_view plugin,
                         proto::DataType dtype) {
  Summary::Value value;
  value.set_tag(std::string(tag));
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name(
      std::string(plugin));
  value.mutable_tensor()->set_dtype(dtype);
  value.mutable_tensor()->mutable_tensor_shape();
  return value;
}

void AddDim(int64_t size, Summary::Value* value) {
  value->mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(size);
}

template <typename T>
void SetContent(absl::Span<const T> numbers, Summary::Value* value) {
  value->mutable_tensor()->set_tensor_content(numbers.data(),
                                              numbers.size() * sizeof(T));
}

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
};

Range FiniteRange(absl::Span<const double> values) {
  Range range;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    range.least = std::min(range.least, value);
    range.greatest = std::max(range.greatest, value);
  }
  return range;
}

// Rows of {left edge, right edge, count}.
std::vector<double> Buckets(absl::Span<const double> values, int count) {
  std::vector<double> rows(3 * static_cast<size_t>(count), 0.0);
  const Range range = FiniteRange(values);
  if (range.least > range.greatest) return rows;
  const double width = (range.greatest - range.least) / count;
  for (int bucket = 0; bucket < count; ++bucket) {
    rows[3 * bucket] = range.least + width * bucket;
    rows[3 * bucket + 1] = bucket + 1 == count
                               ? range.greatest
                               : range.least + width * (bucket + 1);
  }
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    // If all values are equal, they are in the last bucket.
    const double position = width > 0 ? (value - range.least) / width : count;
    const int bucket =
        static_cast<int>(std::min<double>(std::floor(position), count - 1));
    ++rows[3 * bucket + 2];
  }
  return rows;
}

}  // namespace

Summary::Value ScalarSummary(absl::string_view tag, double value) {
  Summary::Value summary = MakeValue(tag, "scalars", proto::DT_FLOAT);
  const float number = static_cast<float>(value);
  SetContent<float>({&number, 1}, &summary);
  return summary;
}

Summary::Value HistogramSummary(absl::string_view tag,
                                absl::Span<const double> values,
                                int bucket_count) {
  Summary::Value summary = MakeValue(tag, "histograms", proto::DT_DOUBLE);
  const std::vector<double> rows = Buckets(values, std::max(bucket_count, 1));
  AddDim(static_cast<int64_t>(rows.size() / 3), &summary);
  AddDim(3, &summary);
  SetContent<double>(rows, &summary);
  return summary;
}

Summary::Value TextSummary(absl::string_view tag, absl::string_view text) {
  Summary::Value summary = MakeValue(tag, "text", proto::DT_STRING);
  summary.mutable_tensor()->add_string_val(std::string(text));
  return summary;
}

absl::StatusOr<Summary::Value> ImageSummary(absl::string_view tag,
                                            absl::Span<const Image> images) {
  Summary::Value summary = MakeValue(tag, "images", proto::DT_STRING);
  AddDim(static_cast<int64_t>(images.size()) + 2, &summary);
  proto::SummaryTensor* const tensor = summary.mutable_tensor();
  const Image first = images.empty() ? Image() : images.front();
  tensor->add_string_val(absl::StrCat(first.width));
  tensor->add_string_val(absl::StrCat(first.height));
  for (const Image& image : images) {
    ASSIGN_OR_RETURN(*tensor->add_string_val(), EncodePng(image));
  }
  return summary;
}

Summary::Value KerasModelSummary(absl::string_view tag,
                                 absl::string_view model_json) {
  Summary::Value summary =
      MakeValue(tag, "graph_keras_model", proto::DT_STRING);
  // The version of the plugin's data format.
  summary.mutable_metadata()->mutable_plugin_data()->set_content("1");
  summary.mutable_tensor()->add_string_val(std::string(model_json));
  return summary;
}

}  // namespace muster
