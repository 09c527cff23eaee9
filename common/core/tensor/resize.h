#ifndef COMMON_CORE_TENSOR_RESIZE_H_
#define COMMON_CORE_TENSOR_RESIZE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace muster {

// Resizing with TensorFlow's half-pixel rule: the center of pixel i is at i +
// 0.5, and filters do not widen when the image shrinks.
//
// Equivalent to: tf.image.resize(antialias=False), with the same results.

enum class Interpolation { kBilinear, kNearest };

// A position between two pixels of one axis.
struct BilinearTap {
  int64_t lower = 0;
  int64_t upper = 0;
  float upper_weight = 0;  // In [0, 1). The weight of `lower` is 1 minus this.
};

// Computes the source positions of the pixels of the resized axis. Sizes are at
// least 1.
std::vector<BilinearTap> BilinearTaps(int64_t input_size, int64_t output_size);
std::vector<int64_t> NearestTaps(int64_t input_size, int64_t output_size);

// A region of an image: rows of interleaved channels.
struct PixelView {
  const uint8_t* pixels = nullptr;  // The first pixel of the region.
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;
  int64_t row_bytes = 0;  // From one row of the image to the next.
};

// Resizes images to one size. Reuses tables and rows for the next image. Not
// thread-safe: create one per thread.
class ImageResizer {
 public:
  // Multiplies the output by `scale`.
  ImageResizer(Interpolation interpolation, int64_t output_height,
               int64_t output_width, float scale)
      : interpolation_(interpolation),
        output_height_(output_height),
        output_width_(output_width),
        scale_(scale) {}

  // `output` has output_height * output_width * input.channels elements.
  void Resize(const PixelView& input, absl::Span<float> output);

 private:
  void ResizeBilinear(const PixelView& input, float* output);
  void ResizeNearest(const PixelView& input, float* output);
  // Resizes blended_row_ along x. May write one element after the row.
  void ResizeRow(int channels, float* output) const;

  const Interpolation interpolation_;
  const int64_t output_height_;
  const int64_t output_width_;
  const float scale_;
  // Prepares for an input of this size.
  int64_t tap_height_ = 0;
  int64_t tap_width_ = 0;
  std::vector<BilinearTap> row_taps_;
  std::vector<BilinearTap> column_taps_;
  std::vector<int64_t> nearest_rows_;
  std::vector<int64_t> nearest_columns_;
  std::vector<float> blended_row_;
  std::vector<float> last_row_;
};

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_RESIZE_H_
