#include "common/core/tensor/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/core/base/check.h"
#include "common/core/base/multiversion.h"

namespace muster {
namespace {

// Four floats without alignment.
using Floats = float __attribute__((vector_size(16)));

Floats Load(const float* from) {
  Floats floats;
  std::memcpy(&floats, from, sizeof(floats));
  return floats;
}

// Resizes `row` along x. Pixels with three channels are processed as four. The
// excess element is overwritten by the next pixel, so the row needs one element
// of space after the last one.
template <int kChannels>
void ResizeColumns(const float* row, absl::Span<const BilinearTap> taps,
                   float* output) {
  for (const BilinearTap& tap : taps) {
    const float* const lower = row + tap.lower * kChannels;
    const float* const upper = row + tap.upper * kChannels;
    if constexpr (kChannels >= 3) {
      const Floats left = Load(lower);
      const Floats blend = left + (Load(upper) - left) * tap.upper_weight;
      std::memcpy(output, &blend, sizeof(blend));
      output += kChannels;
    } else {
      for (int c = 0; c < kChannels; ++c) {
        *output++ = lower[c] + (upper[c] - lower[c]) * tap.upper_weight;
      }
    }
  }
}

// Blends two rows of samples.
MUSTER_MULTIVERSION void BlendImageRows(int64_t count, const uint8_t* upper,
                                        const uint8_t* lower,
                                        float lower_weight, float scale,
                                        float* output) {
  for (int64_t i = 0; i < count; ++i) {
    const float above = upper[i];
    const float below = lower[i];
    output[i] = (above + (below - above) * lower_weight) * scale;
  }
}

}  // namespace

std::vector<BilinearTap> BilinearTaps(int64_t input_size, int64_t output_size) {
  const float scale =
      static_cast<float>(input_size) / static_cast<float>(output_size);
  std::vector<BilinearTap> taps(static_cast<size_t>(output_size));
  for (int64_t i = 0; i < output_size; ++i) {
    const float position = (static_cast<float>(i) + 0.5f) * scale - 0.5f;
    const float below = std::floor(position);
    taps[i].lower = std::max<int64_t>(static_cast<int64_t>(below), 0);
    taps[i].upper =
        std::min(static_cast<int64_t>(std::ceil(position)), input_size - 1);
    taps[i].upper_weight = position - below;
  }
  return taps;
}

std::vector<int64_t> NearestTaps(int64_t input_size, int64_t output_size) {
  const float scale =
      static_cast<float>(input_size) / static_cast<float>(output_size);
  std::vector<int64_t> taps(static_cast<size_t>(output_size));
  for (int64_t i = 0; i < output_size; ++i) {
    const float position = (static_cast<float>(i) + 0.5f) * scale;
    taps[i] = std::clamp<int64_t>(static_cast<int64_t>(std::floor(position)), 0,
                                  input_size - 1);
  }
  return taps;
}

void ImageResizer::Resize(const PixelView& input, absl::Span<float> output) {
  MUSTER_CHECK(static_cast<int64_t>(output.size()) ==
               output_height_ * output_width_ * input.channels);
  if (interpolation_ == Interpolation::kNearest) {
    ResizeNearest(input, output.data());
  } else {
    ResizeBilinear(input, output.data());
  }
}

void ImageResizer::ResizeBilinear(const PixelView& input, float* output) {
  if (input.height != tap_height_ || input.width != tap_width_) {
    row_taps_ = BilinearTaps(input.height, output_height_);
    column_taps_ = BilinearTaps(input.width, output_width_);
    tap_height_ = input.height;
    tap_width_ = input.width;
  }
  const int64_t input_size = input.width * input.channels;
  const int64_t output_size = output_width_ * input.channels;
  blended_row_.resize(static_cast<size_t>(input_size) + 1);
  last_row_.resize(static_cast<size_t>(output_size) + 1);
  for (int64_t y = 0; y < output_height_; ++y) {
    const BilinearTap& tap = row_taps_[y];
    BlendImageRows(input_size, input.pixels + tap.lower * input.row_bytes,
                   input.pixels + tap.upper * input.row_bytes, tap.upper_weight,
                   scale_, blended_row_.data());
    // ResizeRow() may write one element past the row. The last row is therefore
    // computed in `last_row_` and copied.
    const bool is_last = y + 1 == output_height_;
    float* const place = output + y * output_size;
    ResizeRow(input.channels, is_last ? last_row_.data() : place);
    if (is_last) std::copy_n(last_row_.data(), output_size, place);
  }
}

void ImageResizer::ResizeRow(int channels, float* output) const {
  switch (channels) {
    case 1:
      return ResizeColumns<1>(blended_row_.data(), column_taps_, output);
    case 2:
      return ResizeColumns<2>(blended_row_.data(), column_taps_, output);
    case 3:
      return ResizeColumns<3>(blended_row_.data(), column_taps_, output);
    default:
      return ResizeColumns<4>(blended_row_.data(), column_taps_, output);
  }
}

void ImageResizer::ResizeNearest(const PixelView& input, float* output) {
  if (input.height != tap_height_ || input.width != tap_width_) {
    nearest_rows_ = NearestTaps(input.height, output_height_);
    nearest_columns_ = NearestTaps(input.width, output_width_);
    tap_height_ = input.height;
    tap_width_ = input.width;
  }
  for (const int64_t y : nearest_rows_) {
    const uint8_t* const row = input.pixels + y * input.row_bytes;
    for (const int64_t x : nearest_columns_) {
      for (int c = 0; c < input.channels; ++c) {
        *output++ = static_cast<float>(row[x * input.channels + c]) * scale_;
      }
    }
  }
}

}  // namespace muster
