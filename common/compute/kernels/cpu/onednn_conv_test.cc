#include "common/compute/kernels/cpu/onednn_conv.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "common/compute/kernels/image_geometry.h"
#include "common/core/tensor/window.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::internal {
namespace {

using ::testing::UnorderedElementsAreArray;

// Row of y, row of x, row of the window.
using Product = std::tuple<int64_t, int64_t, int64_t>;

// Returns the products along the height. y_begin and x_begin are the first rows
// of y and x.
std::vector<Product> Products(const WindowAxis& axis, int64_t y_begin,
                              int64_t x_begin) {
  std::vector<Product> products;
  for (int64_t y = 0; y < axis.output_extent; ++y) {
    for (int64_t k = 0; k < axis.window_extent; ++k) {
      const int64_t x =
          y * axis.stride + k * axis.dilation - axis.padding_before;
      if (x < 0 || x >= axis.input_extent) continue;
      products.emplace_back(y_begin + y, x_begin + x, k);
    }
  }
  return products;
}

// Expects a valid oneDNN convolution.
void ExpectConvolution(const WindowAxis& axis) {
  EXPECT_GE(axis.padding_before, 0);
  EXPECT_GE(axis.padding_after, 0);
  EXPECT_EQ((axis.input_extent + axis.padding_before + axis.padding_after -
             axis.span()) /
                    axis.stride +
                1,
            axis.output_extent);
}

std::vector<WindowAxis> Axes() {
  std::vector<WindowAxis> axes;
  for (int64_t window = 1; window <= 4; ++window) {
    for (int64_t stride = 1; stride <= 3; ++stride) {
      for (int64_t dilation = 1; dilation <= 2; ++dilation) {
        for (int64_t before = 0; before < window; ++before) {
          for (int64_t after = 0; after < window; ++after) {
            WindowAxis axis = {.input_extent = 11,
                               .window_extent = window,
                               .stride = stride,
                               .dilation = dilation,
                               .padding_before = before,
                               .padding_after = after};
            axis.output_extent =
                (axis.input_extent + before + after - axis.span()) / stride + 1;
            axes.push_back(axis);
          }
        }
      }
    }
  }
  return axes;
}

// Expects the strips to compute each product of the whole once. Returns the
// number of geometries that could be divided.
int ExpectStripsAreTheWhole(ConvPart part, int64_t rows_per_strip) {
  int cut_count = 0;
  for (const WindowAxis& axis : Axes()) {
    ConvGeometry whole;
    whole.part = part;
    whole.height = axis;
    const bool makes_x = part == ConvPart::kBackpropInput;
    const int64_t rows = makes_x ? axis.input_extent : axis.output_extent;
    std::vector<Product> products;
    bool is_cut = true;
    for (int64_t begin = 0; begin < rows && is_cut; begin += rows_per_strip) {
      const int64_t end = std::min(rows, begin + rows_per_strip);
      const std::optional<ConvStrip> strip = StripOf(whole, begin, end);
      is_cut = strip.has_value();
      if (!is_cut) break;
      ExpectConvolution(strip->geometry.height);
      EXPECT_EQ(makes_x ? strip->geometry.height.input_extent
                        : strip->geometry.height.output_extent,
                end - begin);
      const auto more = Products(strip->geometry.height,
                                 makes_x ? strip->source_begin : begin,
                                 makes_x ? begin : strip->source_begin);
      products.insert(products.end(), more.begin(), more.end());
    }
    if (!is_cut) continue;
    ++cut_count;
    EXPECT_THAT(products, UnorderedElementsAreArray(Products(axis, 0, 0)))
        << "window " << axis.window_extent << " stride " << axis.stride
        << " dilation " << axis.dilation << " padding " << axis.padding_before
        << " " << axis.padding_after;
  }
  return cut_count;
}

TEST(StripOfTest, StripsCoverTheWhole) {
  const int count = static_cast<int>(Axes().size());
  for (const int64_t rows_per_strip : {1, 2, 3, 5}) {
    SCOPED_TRACE(rows_per_strip);
    EXPECT_GT(ExpectStripsAreTheWhole(ConvPart::kForward, rows_per_strip),
              count / 2);
    EXPECT_GT(ExpectStripsAreTheWhole(ConvPart::kBackpropInput, rows_per_strip),
              count / 4);
  }
}

// One row above the image depends on padding only.
TEST(StripOfTest, RowOfPaddingOnlyIsNotAConvolution) {
  ConvGeometry whole;
  whole.height = {.input_extent = 4,
                  .output_extent = 6,
                  .window_extent = 2,
                  .padding_before = 2,
                  .padding_after = 1};
  EXPECT_FALSE(StripOf(whole, 0, 1).has_value());
  EXPECT_TRUE(StripOf(whole, 0, 2).has_value());
}

}  // namespace
}  // namespace muster::internal
