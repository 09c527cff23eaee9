#include "examples/quickdraw/drawings.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "nlohmann/json.hpp"

namespace quickdraw {
namespace {

using muster::Dataset;
using muster::DType;
using muster::Element;
using muster::Tensor;
using muster::TensorType;
using muster::Value;

// One of this many drawings is for testing.
constexpr int64_t kTestPeriod = 10;

// Maps a drawing to pixels.
struct Scale {
  float left, top;  // The corner of the drawing.
  float factor;
  float margin_x, margin_y;

  static Scale Fitting(const std::vector<Stroke>& strokes, int64_t size) {
    float left = std::numeric_limits<float>::infinity(), top = left;
    float right = -left, bottom = -left;
    for (const Stroke& stroke : strokes) {
      for (size_t i = 0; i < stroke.x.size(); ++i) {
        left = std::min(left, stroke.x[i]);
        right = std::max(right, stroke.x[i]);
        top = std::min(top, stroke.y[i]);
        bottom = std::max(bottom, stroke.y[i]);
      }
    }
    const float margin = static_cast<float>(size) / 14;
    const float inner = static_cast<float>(size) - 2 * margin;
    const float extent = std::max({right - left, bottom - top, 1.0f});
    const float factor = inner / extent;
    return {left, top, factor, margin + (inner - factor * (right - left)) / 2,
            margin + (inner - factor * (bottom - top)) / 2};
  }

  float PixelX(float x) const { return margin_x + factor * (x - left); }
  float PixelY(float y) const { return margin_y + factor * (y - top); }
};

// Returns the distance of a point from the line from (x0, y0) to (x1, y1).
float Distance(float x, float y, float x0, float y0, float x1, float y1) {
  const float dx = x1 - x0;
  const float dy = y1 - y0;
  const float squared_length = dx * dx + dy * dy;
  const float along =
      squared_length == 0
          ? 0
          : std::clamp(((x - x0) * dx + (y - y0) * dy) / squared_length, 0.0f,
                       1.0f);
  return std::hypot(x - (x0 + along * dx), y - (y0 + along * dy));
}

// Draws a line of the given width, with a soft border of one pixel.
void DrawLine(float x0, float y0, float x1, float y1, float width, int64_t size,
              float* pixels) {
  const float reach = width / 2 + 1;
  const auto first = [&](float a, float b) {
    return std::max<int64_t>(0, std::floor(std::min(a, b) - reach));
  };
  const auto last = [&](float a, float b) {
    return std::min<int64_t>(size - 1, std::ceil(std::max(a, b) + reach));
  };
  for (int64_t row = first(y0, y1); row <= last(y0, y1); ++row) {
    for (int64_t column = first(x0, x1); column <= last(x0, x1); ++column) {
      const float distance =
          Distance(static_cast<float>(column) + 0.5f,
                   static_cast<float>(row) + 0.5f, x0, y0, x1, y1);
      float& pixel = pixels[row * size + column];
      pixel =
          std::max(pixel, std::clamp(width / 2 + 0.5f - distance, 0.0f, 1.0f));
    }
  }
}

absl::StatusOr<std::vector<std::string>> ListClasses(
    const std::string& directory) {
  std::vector<std::string> classes;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory, error)) {
    if (entry.path().extension() == ".ndjson") {
      classes.push_back(entry.path().stem());
    }
  }
  if (classes.size() < 2) {
    return absl::NotFoundError(absl::StrCat(
        directory, ": expected two or more files CLASS.ndjson, found ",
        classes.size(), error ? absl::StrCat("; ", error.message()) : ""));
  }
  std::sort(classes.begin(), classes.end());
  return classes;
}

// Returns the function that maps (line, its number from 0, file, label) to
// (image, label). `argument` is the size of the images. The function is
// registered under a name, so that workers of parameter servers, which run the
// same program, can draw their batches themselves.
absl::StatusOr<muster::RegisteredFunction> MakeDraw(
    absl::string_view argument, absl::Span<const TensorType> elements) {
  int64_t size = 0;
  if (!absl::SimpleAtoi(argument, &size) || size < 1 || elements.size() != 4) {
    return absl::InvalidArgumentError(
        "expected the size of images, and elements (line, number, file, "
        "label)");
  }
  const auto draw = [size](Element line) -> absl::StatusOr<Element> {
    const auto strokes = ParseStrokes(line[0].scalar<std::string>());
    if (!strokes.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          line[2].scalar<std::string>(), ", line ",
          line[1].scalar<int64_t>() + 1, ": ", strokes.status().message()));
    }
    return Element{Rasterize(*strokes, size), line[3]};
  };
  return muster::RegisteredFunction{
      draw, {{DType::kFloat32, {size, size, 1}}, elements[3]}};
}

const bool kIsRegistered =
    muster::RegisterElementFunction("quickdraw_draw", MakeDraw);

// Returns the drawings of one file: those for testing if `is_test`, otherwise
// those for training.
Dataset DrawingsOf(const std::string& path, int64_t label, int64_t size,
                   bool is_test) {
  const Dataset lines = Dataset::Zip(
      {muster::TextLineDataset({path}),
       Dataset::Range(std::numeric_limits<int64_t>::max()),
       Dataset::FromTensors({Tensor::FromValues<std::string>({}, {path}),
                             Tensor::FromValues<int64_t>({}, {label})})
           .Repeat()});
  const Dataset chosen = lines.Filter([is_test](absl::Span<const Value> line) {
    const Value is_tenth = Equal(Mod(line[1], ScalarLike(line[1], kTestPeriod)),
                                 ScalarLike(line[1], 0));
    return std::vector<Value>{is_test ? is_tenth : LogicalNot(is_tenth)};
  });
  return MapRegistered(chosen, "quickdraw_draw", absl::StrCat(size),
                       {.thread_count = muster::kAutotune});
}

}  // namespace

absl::StatusOr<std::vector<Stroke>> ParseStrokes(absl::string_view line) {
  const auto refuse = [] {
    return absl::InvalidArgumentError(
        "expected an object with \"drawing\": [[[x, ...], [y, ...]], ...], "
        "with as many numbers for x as for y");
  };
  const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_object()) return refuse();
  const auto drawing = json.find("drawing");
  if (drawing == json.end() || !drawing->is_array()) return refuse();
  std::vector<Stroke> strokes;
  for (const auto& axes : *drawing) {
    // Raw drawings have times after x and y.
    if (!axes.is_array() || axes.size() < 2) return refuse();
    Stroke stroke;
    for (const auto& [axis, to] :
         {std::pair(0, &stroke.x), std::pair(1, &stroke.y)}) {
      if (!axes[axis].is_array()) return refuse();
      for (const auto& number : axes[axis]) {
        if (!number.is_number()) return refuse();
        to->push_back(number.get<float>());
      }
    }
    if (stroke.x.size() != stroke.y.size()) return refuse();
    strokes.push_back(std::move(stroke));
  }
  return strokes;
}

Tensor Rasterize(const std::vector<Stroke>& strokes, int64_t size) {
  Tensor image(DType::kFloat32, {size, size, 1});
  const auto pixels = image.mutable_flat<float>();
  std::fill(pixels.begin(), pixels.end(), 0);
  const Scale scale = Scale::Fitting(strokes, size);
  const float width = std::max(1.0f, static_cast<float>(size) / 18);
  for (const Stroke& stroke : strokes) {
    for (size_t i = 0; i < stroke.x.size(); ++i) {
      // A stroke of one point is a dot.
      const size_t before = i == 0 ? 0 : i - 1;
      DrawLine(scale.PixelX(stroke.x[before]), scale.PixelY(stroke.y[before]),
               scale.PixelX(stroke.x[i]), scale.PixelY(stroke.y[i]), width,
               size, pixels.data());
    }
  }
  return image;
}

absl::StatusOr<Drawings> OpenDrawings(const std::string& directory,
                                      int64_t size) {
  Drawings drawings;
  ASSIGN_OR_RETURN(drawings.classes, ListClasses(directory));
  std::vector<Dataset> train;
  std::vector<Dataset> test;
  for (size_t i = 0; i < drawings.classes.size(); ++i) {
    const std::string path =
        absl::StrCat(directory, "/", drawings.classes[i], ".ndjson");
    const auto label = static_cast<int64_t>(i);
    train.push_back(DrawingsOf(path, label, size, /*is_test=*/false));
    test.push_back(DrawingsOf(path, label, size, /*is_test=*/true));
  }
  drawings.train =
      Dataset::SampleFromDatasets(std::move(train), {.seed = 3}).Shuffle(4096);
  drawings.test = Dataset::SampleFromDatasets(std::move(test), {.seed = 5});
  return drawings;
}

}  // namespace quickdraw
