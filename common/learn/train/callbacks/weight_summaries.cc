#include "common/learn/train/callbacks/weight_summaries.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/float16.h"
#include "common/core/tensor/shape.h"
#include "common/io/events/summaries.h"
#include "common/io/image/image.h"
#include "proto/event.pb.h"

namespace muster {
namespace {

constexpr int kImageCountMax = 3;

template <typename T>
std::vector<double> Convert(const Tensor& tensor) {
  const absl::Span<const T> numbers = tensor.flat<T>();
  std::vector<double> values(numbers.size());
  std::transform(numbers.begin(), numbers.end(), values.begin(),
                 [](const T& number) {
                   if constexpr (sizeof(T) == 2) {
                     return static_cast<double>(static_cast<float>(number));
                   } else {
                     return static_cast<double>(number);
                   }
                 });
  return values;
}

// Empty if it is not a number.
std::vector<double> ToDoubles(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return Convert<float>(tensor);
    case DType::kFloat64:
      return Convert<double>(tensor);
    case DType::kBfloat16:
      return Convert<bfloat16>(tensor);
    case DType::kFloat16:
      return Convert<float16>(tensor);
    case DType::kInt32:
      return Convert<int32_t>(tensor);
    case DType::kInt64:
      return Convert<int64_t>(tensor);
    case DType::kUint8:
      return Convert<uint8_t>(tensor);
    default:
      return {};
  }
}

// Images of a weight: the offset of pixel {image, row, column, channel} is the
// sum of the products of its indices and the strides.
struct Layout {
  int64_t extents[4] = {0, 1, 1, 1};
  int64_t strides[4] = {0, 0, 0, 0};
};

std::vector<int64_t> WithoutOnes(const Shape& shape) {
  std::vector<int64_t> extents;
  for (const int64_t extent : shape.dims()) {
    if (extent != 1) extents.push_back(extent);
  }
  return extents;
}

// No images for shapes that cannot be drawn.
Layout LayoutOf(const Shape& shape) {
  const std::vector<int64_t> d = WithoutOnes(shape);
  switch (d.size()) {
    case 1:
      return {{1, d[0], 1, 1}, {0, 1, 0, 0}};
    case 2:
      return d[0] > d[1] ? Layout{{1, d[1], d[0], 1}, {0, 1, d[1], 0}}
                         : Layout{{1, d[0], d[1], 1}, {0, d[1], 1, 0}};
    case 3:
      return {{d[2], d[0], d[1], 1}, {1, d[1] * d[2], d[2], 0}};
    case 4:
      if (d[3] != 3 && d[3] != 4) return {};
      return {{d[0], d[1], d[2], d[3]},
              {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}};
    default:
      return {};
  }
}

uint8_t PixelOf(double value) {
  // NaN is black.
  if (!(value > 0)) return 0;
  return static_cast<uint8_t>(std::min(value * 255.5, 255.0));
}

std::vector<uint8_t> PixelsOf(const std::vector<double>& values,
                              const Layout& layout, int64_t image) {
  std::vector<uint8_t> pixels;
  const int64_t* const stride = layout.strides;
  for (int64_t row = 0; row < layout.extents[1]; ++row) {
    for (int64_t column = 0; column < layout.extents[2]; ++column) {
      for (int64_t channel = 0; channel < layout.extents[3]; ++channel) {
        pixels.push_back(
            PixelOf(values[image * stride[0] + row * stride[1] +
                           column * stride[2] + channel * stride[3]]));
      }
    }
  }
  return pixels;
}

}  // namespace

absl::Status AddWeightSummaries(absl::string_view name, const Tensor& weight,
                                bool with_images,
                                std::vector<proto::Summary::Value>* out) {
  const std::vector<double> values = ToDoubles(weight);
  if (values.empty()) return absl::OkStatus();
  out->push_back(HistogramSummary(absl::StrCat(name, "/histogram"), values));
  if (!with_images) return absl::OkStatus();

  const Layout layout = LayoutOf(weight.shape());
  std::vector<Image> images;
  const int64_t count = std::min<int64_t>(layout.extents[0], kImageCountMax);
  for (int64_t image = 0; image < count; ++image) {
    images.push_back({.height = layout.extents[1],
                      .width = layout.extents[2],
                      .channels = static_cast<int>(layout.extents[3]),
                      .pixels = PixelsOf(values, layout, image)});
  }
  if (images.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(out->emplace_back(),
                   ImageSummary(absl::StrCat(name, "/image"), images));
  return absl::OkStatus();
}

}  // namespace muster
