#include "common/image/resize.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/multiversion.h"

namespace muster {
namespace {

// One row, resized along x.
template <int kChannels>
void ResizeColumns(const uint8_t* row, absl::Span<const BilinearTap> taps,
                   float* output) {
  for (const BilinearTap& tap : taps) {
    const uint8_t* const lower = row + tap.lower * kChannels;
    const uint8_t* const upper = row + tap.upper * kChannels;
    for (int c = 0; c < kChannels; ++c) {
      const float left = lower[c];
      const float right = upper[c];
      *output++ = left + (right - left) * tap.upper_weight;
    }
  }
}

MUSTER_MULTIVERSION void BlendImageRows(int64_t count, const float* upper,
                                        const float* lower, float lower_weight,
                                        float scale, float* output) {
  for (int64_t i = 0; i < count; ++i) {
    output[i] = (upper[i] + (lower[i] - upper[i]) * lower_weight) * scale;
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
  const int64_t row_size = output_width_ * input.channels;
  for (int i = 0; i < 2; ++i) {
    rows_[i].resize(static_cast<size_t>(row_size));
    row_numbers_[i] = -1;
  }
  for (int64_t y = 0; y < output_height_; ++y) {
    const BilinearTap& tap = row_taps_[y];
    const float* const upper = ResizedRow(input, tap.lower, tap.upper);
    const float* const lower = ResizedRow(input, tap.upper, tap.lower);
    BlendImageRows(row_size, upper, lower, tap.upper_weight, scale_,
                   output + y * row_size);
  }
}

const float* ImageResizer::ResizedRow(const PixelView& input, int64_t y,
                                      int64_t other_y) {
  for (int i = 0; i < 2; ++i) {
    if (row_numbers_[i] == y) return rows_[i].data();
  }
  const int place = row_numbers_[0] == other_y ? 1 : 0;
  row_numbers_[place] = y;
  float* const output = rows_[place].data();
  const uint8_t* const row = input.pixels + y * input.row_bytes;
  switch (input.channels) {
    case 1:
      ResizeColumns<1>(row, column_taps_, output);
      break;
    case 2:
      ResizeColumns<2>(row, column_taps_, output);
      break;
    case 3:
      ResizeColumns<3>(row, column_taps_, output);
      break;
    default:
      ResizeColumns<4>(row, column_taps_, output);
      break;
  }
  return output;
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
