#include "common/learn/nn/image/tile_equalization.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/image/color.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/window.h"

namespace muster {
namespace {

constexpr ValueRange kBytes = {};
constexpr int64_t kBins = 256;

// One axis of a grid of tiles, which covers the image and may exceed it.
struct Axis {
  int64_t extent;
  int64_t tile_count;

  int64_t tile_extent() const { return (extent + tile_count - 1) / tile_count; }
  int64_t padded_extent() const { return tile_extent() * tile_count; }
};

Value Constant(Value like, const Shape& shape,
               const std::vector<int64_t>& numbers) {
  return like.builder()->Constant(
      Tensor::FromSpan<int64_t>(shape, absl::MakeConstSpan(numbers)));
}

// Continues images behind their end along `axis` by their reflection.
Value PadByReflection(Value images, const Axis& along, int axis) {
  if (along.padded_extent() == along.extent) return images;
  std::vector<int64_t> positions(along.padded_extent());
  for (int64_t i = 0; i < along.padded_extent(); ++i) {
    positions[i] = i < along.extent ? i : 2 * along.extent - 1 - i;
  }
  return Gather(images, Constant(images, {along.padded_extent()}, positions),
                axis);
}

// How often each value occurs in each tile: [batch * tiles * channels, bins].
Value Histograms(Value bytes, const Axis& rows, const Axis& columns) {
  const int64_t channels = bytes.shape().dim(3);
  const Value tiles = Transpose(
      Reshape(bytes, {-1, rows.tile_count, rows.tile_extent(),
                      columns.tile_count, columns.tile_extent(), channels}),
      {0, 1, 3, 5, 2, 4});
  const Value values =
      Reshape(tiles, {-1, rows.tile_extent() * columns.tile_extent()});
  const Value empty =
      Cast(ZerosLike(Slice(values, {0, 0}, {-1, 1})), DType::kFloat32) +
      values.builder()->Constant(Tensor::Zeros(DType::kFloat32, {1, kBins}));
  return AddAlongRowsLike(OnesLike(Cast(values, DType::kFloat32)), values,
                          empty);
}

// What each tile makes of each value: [batch * tiles * channels, bins].
Value Tables(Value histograms, int64_t tile_pixels, double clip_limit) {
  const ReduceOptions keep = {.keep_dims = true};
  const auto pixels = static_cast<double>(tile_pixels);
  if (clip_limit > 0) {
    const Value clipped = Minimum(histograms, clip_limit * pixels / kBins);
    const Value excess = Sum(histograms - clipped, {1}, keep);
    histograms = clipped + excess / kBins;
  }
  const Value total = CumSum(histograms, {.axis = 1});
  const Value least = Min(total, {1}, keep);
  const Value rest = pixels - least;
  const Value divisor = Select(Equal(rest, 0), OnesLike(rest), rest);
  return internal::Clip((total - least) * 255.0 / divisor, kBytes);
}

// The tiles before and behind each pixel along an axis, and the weight of the
// one behind. Beyond the outermost tiles both are the outermost one.
struct Neighbours {
  explicit Neighbours(const Axis& axis) {
    const auto extent = static_cast<float>(axis.tile_extent());
    for (int64_t i = 0; i < axis.extent; ++i) {
      const float position = (static_cast<float>(i) - extent / 2) / extent + 1;
      const float lower = std::floor(position);
      const auto tile = static_cast<int64_t>(lower);
      before.push_back(std::clamp<int64_t>(tile - 1, 0, axis.tile_count - 1));
      behind.push_back(std::clamp<int64_t>(tile, 0, axis.tile_count - 1));
      weight.push_back(position - lower);
    }
  }

  std::vector<int64_t> before;
  std::vector<int64_t> behind;
  std::vector<float> weight;
};

// Where the tables of the tiles begin for each channel of each pixel, of those
// of one image: [1, height, width, channels].
Value FirstBins(Value like, const std::vector<int64_t>& rows,
                const std::vector<int64_t>& columns, int64_t tiles_per_row,
                int64_t channels) {
  const auto height = static_cast<int64_t>(rows.size());
  const auto width = static_cast<int64_t>(columns.size());
  std::vector<int64_t> bins;
  for (const int64_t row : rows) {
    for (const int64_t column : columns) {
      for (int64_t c = 0; c < channels; ++c) {
        bins.push_back(((row * tiles_per_row + column) * channels + c) * kBins);
      }
    }
  }
  return Constant(like, {1, height, width, channels}, bins);
}

Value Weights(Value like, const Shape& shape,
              const std::vector<float>& weights) {
  return like.builder()->Constant(
      Tensor::FromSpan<float>(shape, absl::MakeConstSpan(weights)));
}

// Applies the tables of the tiles around each pixel to `bytes`, integers
// [batch, height, width, channels].
Value Interpolate(Value bytes, Value tables, const Axis& rows,
                  const Axis& columns) {
  const int64_t channels = bytes.shape().dim(3);
  const std::vector<int64_t> image = {-1, rows.extent, columns.extent,
                                      channels};
  const Neighbours y(rows);
  const Neighbours x(columns);
  const Value of_images = Reshape(
      tables, {-1, rows.tile_count * columns.tile_count * channels * kBins});
  const auto look_up = [&](const std::vector<int64_t>& tile_rows,
                           const std::vector<int64_t>& tile_columns) {
    const Value bins = bytes + FirstBins(bytes, tile_rows, tile_columns,
                                         columns.tile_count, channels);
    const Value flat =
        Reshape(bins, {-1, rows.extent * columns.extent * channels});
    return Reshape(TakeAlongRows(of_images, flat), image);
  };
  const Value right = Weights(tables, {1, 1, columns.extent, 1}, x.weight);
  const Value down = Weights(tables, {1, rows.extent, 1, 1}, y.weight);
  const auto row = [&](const std::vector<int64_t>& tile_rows) {
    return look_up(tile_rows, x.before) * (1.0 - right) +
           look_up(tile_rows, x.behind) * right;
  };
  return row(y.before) * (1.0 - down) + row(y.behind) * down;
}

}  // namespace

void ContrastLimitedAdaptiveHistogramEqualizationLayer::VisitConfig(
    ConfigVisitor& visitor) {
  VisitValueRange(visitor, options_.value_range);
  visitor.Visit("clip_limit", options_.clip_limit);
  VisitSize(
      visitor,
      Described("tile_grid_size",
                "One number, or the numbers of rows and columns of tiles."),
      options_.tile_grid_size);
}

Value ContrastLimitedAdaptiveHistogramEqualizationLayer::Call(
    Value x, const CallContext&) {
  const Size2D& grid = options_.tile_grid_size;
  const Shape& shape = x.shape();
  const bool has_extents = shape.rank() == 4 && shape.dim(1) >= 1 &&
                           shape.dim(2) >= 1 && shape.dim(3) >= 1;
  const Axis rows = {has_extents ? shape.dim(1) : 1, grid.height};
  const Axis columns = {has_extents ? shape.dim(2) : 1, grid.width};
  if (!has_extents || grid.height < 1 || grid.width < 1 ||
      rows.padded_extent() > 2 * rows.extent ||
      columns.padded_extent() > 2 * columns.extent) {
    x.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        kind(),
        ": expected images [batch, height, width, channels] of known "
        "extents that a grid of ",
        grid.height, " x ", grid.width,
        " tiles covers with at most as much again, not ",
        x.type().ToString())));
    return Value();
  }
  const DType dtype = IsFloating(x.dtype()) ? x.dtype() : DType::kFloat32;
  const Value scaled =
      internal::Rescale(Cast(x, DType::kFloat32), options_.value_range, kBytes);
  const Value bytes = Cast(internal::Clip(scaled, kBytes), DType::kInt64);
  const Value padded =
      PadByReflection(PadByReflection(bytes, rows, 1), columns, 2);
  const Value tables =
      Tables(Histograms(padded, rows, columns),
             rows.tile_extent() * columns.tile_extent(), options_.clip_limit);
  return Cast(internal::Rescale(Interpolate(bytes, tables, rows, columns),
                                kBytes, options_.value_range),
              dtype);
}

LayerPtr ContrastLimitedAdaptiveHistogramEqualization(
    const ContrastLimitedAdaptiveHistogramEqualizationOptions& options) {
  return std::make_shared<ContrastLimitedAdaptiveHistogramEqualizationLayer>(
      options);
}

}  // namespace muster
