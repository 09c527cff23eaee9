#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/image_ops.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/nn/image/augmentation.h"
#include "common/learn/nn/image/color.h"
#include "common/learn/nn/image/elastic_transform.h"
#include "common/learn/nn/image/mixed_images.h"
#include "common/learn/nn/image/random_position.h"
#include "common/learn/nn/image/tile_equalization.h"
#include "common/learn/nn/layer.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"
#include "tests/golden/run_graph.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using Drawn = std::map<std::string, Value>;
using Function = std::function<Value(Value x, Drawn drawn, const Json& config)>;

constexpr double kTolerance = 2e-5;

ImageTransformOptions ResamplingOf(const Json& config) {
  static const auto& kFillModes =
      *new std::map<std::string, FillMode>{{"constant", FillMode::kConstant},
                                           {"nearest", FillMode::kNearest},
                                           {"reflect", FillMode::kReflect},
                                           {"wrap", FillMode::kWrap}};
  const bool is_nearest = config.at("interpolation") == "nearest";
  return {.interpolation =
              is_nearest ? Interpolation::kNearest : Interpolation::kBilinear,
          .fill_mode = kFillModes.at(config.value("fill_mode", "constant")),
          .fill_value = config.at("fill_value")};
}

internal::Box BoxOf(Drawn& drawn) {
  return {drawn["left"], drawn["right"], drawn["top"], drawn["bottom"]};
}

ValueRange RangeOf(const Json& config) {
  const Json& range = config.at("value_range");
  return {.lower = range.at(0), .upper = range.at(1)};
}

using FunctionsByName = std::map<std::string, Function>;

FunctionsByName ColorFunctions() {
  return {
      {"AdjustBrightness",
       [](Value x, Drawn drawn, const Json& config) {
         return internal::AdjustBrightness(x, drawn["delta"], RangeOf(config));
       }},
      {"AdjustContrast",
       [](Value x, Drawn drawn, const Json& config) {
         return internal::AdjustContrast(x, drawn["factor"], RangeOf(config));
       }},
      {"DegenerateColor",
       [](Value x, Drawn drawn, const Json& config) {
         return internal::DegenerateColor(x, drawn["factor"], RangeOf(config));
       }},
      {"Posterize",
       [](Value x, Drawn drawn, const Json& config) {
         return internal::Posterize(x, drawn["bits"], RangeOf(config));
       }},
      {"Solarize",
       [](Value x, Drawn drawn, const Json& config) {
         return internal::Solarize(x, drawn["addition"], drawn["threshold"],
                                   RangeOf(config));
       }},
      {"AdjustSaturation",
       [](Value x, Drawn drawn, const Json& config) {
         return internal::AdjustSaturation(x, drawn["factor"], RangeOf(config));
       }},
      {"AdjustHue",
       [](Value x, Drawn drawn, const Json& config) {
         return internal::AdjustHue(x, drawn["delta"], RangeOf(config));
       }},
      {"Sharpen",
       [](Value x, Drawn drawn, const Json& config) {
         return internal::Sharpen(x, drawn["factor"], RangeOf(config));
       }},
      {"StretchContrast",
       [](Value x, Drawn, const Json& config) {
         return internal::StretchContrast(x, RangeOf(config));
       }},
      {"Equalize",
       [](Value x, Drawn, const Json& config) {
         return internal::Equalize(x, config.at("bins"), RangeOf(config));
       }},
  };
}

FunctionsByName PositionFunctions() {
  return {
      {"ChangePerspective",
       [](Value x, Drawn drawn, const Json& config) {
         return internal::ChangePerspective(x,
                                            {drawn["right"], drawn["bottom"],
                                             drawn["last_x"], drawn["last_y"]},
                                            ResamplingOf(config));
       }},
      {"GaussianBlur",
       [](Value x, Drawn drawn, const Json& config) {
         return internal::GaussianBlur(
             x, config.at("kernel_size").get<std::array<int64_t, 2>>(),
             drawn["sigma"]);
       }},
      {"Erase",
       [](Value x, Drawn drawn, const Json&) {
         return internal::Erase(x, BoxOf(drawn), drawn["fill"]);
       }},
      {"Blend",
       [](Value x, Drawn drawn, const Json&) {
         return internal::Blend(x, drawn["weight"], drawn["order"]);
       }},
      {"PasteBox",
       [](Value x, Drawn drawn, const Json&) {
         return internal::PasteBox(x, BoxOf(drawn), drawn["order"]);
       }},
      {"ShareOutside",
       [](Value x, Drawn drawn, const Json&) {
         return internal::ShareOutside(x, BoxOf(drawn));
       }},
      {"TileEqualization",
       [](Value x, Drawn, const Json& config) {
         const Json& grid = config.at("tile_grid_size");
         return (*ContrastLimitedAdaptiveHistogramEqualization(
             {.value_range = RangeOf(config),
              .clip_limit = config.at("clip_limit"),
              .tile_grid_size = {grid.at(0), grid.at(1)}}))(x, kInference);
       }},
      {"ElasticTransform",
       [](Value x, Drawn drawn, const Json& config) {
         return internal::ElasticTransform(x, drawn["noise"],
                                           {.scale = drawn["scale"]},
                                           ResamplingOf(config));
       }},
  };
}

const FunctionsByName& Functions() {
  static const auto& kFunctions = *[] {
    auto* const all = new FunctionsByName(ColorFunctions());
    all->merge(PositionFunctions());
    return all;
  }();
  return kFunctions;
}

TEST(ImageFunctionsGoldenTest, MatchKeras) {
  int count = 0;
  for (const GoldenCase& golden : ReadGoldenCases("image_functions.json")) {
    if (!golden.config.contains("function")) continue;
    SCOPED_TRACE(golden.name);
    ++count;
    std::vector<std::string> names;
    std::vector<Tensor> arguments;
    for (const auto& [name, tensor] : golden.inputs) {
      names.push_back(name);
      arguments.push_back(tensor);
    }
    const Function& function =
        Functions().at(golden.config.at("function").get<std::string>());
    const std::vector<Tensor> results =
        RunTraced(arguments, {}, [&](absl::Span<const Value> values) {
          Drawn drawn;
          for (size_t i = 0; i < names.size(); ++i) drawn[names[i]] = values[i];
          const Value x = drawn.at("x");
          return std::vector<Value>{function(x, drawn, golden.config)};
        });
    EXPECT_EQ(
        DescribeDifference(results[0], golden.outputs.at("y"), kTolerance), "");
  }
  EXPECT_GT(count, 0);
}

// Each image is sheared in one of two directions; both must occur.
TEST(ImageFunctionsGoldenTest, ShearsLikeKerasInEitherDirection) {
  for (const GoldenCase& golden : ReadGoldenCases("image_functions.json")) {
    if (!golden.config.contains("layer")) continue;
    SCOPED_TRACE(golden.name);
    const double x_factor = golden.config.at("x_factor");
    const double y_factor = golden.config.at("y_factor");
    const LayerPtr layer = RandomShear(
        RandomFactor(x_factor, x_factor), RandomFactor(y_factor, y_factor),
        {.fill_mode = FillMode::kConstant, .fill_value = -1});
    layer->SetPath("layer");
    const std::vector<Tensor> results = RunTraced(
        {golden.inputs.at("x")}, {}, [&](absl::Span<const Value> values) {
          return std::vector<Value>{(*layer)(values[0], kTraining)};
        });
    const auto is_row = [&](const std::string& name, int64_t i) {
      return DescribeDifference(results[0].SliceRows(i, i + 1),
                                golden.outputs.at(name).SliceRows(i, i + 1),
                                kTolerance)
          .empty();
    };
    const int64_t image_count = results[0].shape().dim(0);
    int64_t plus_count = 0;
    for (int64_t i = 0; i < image_count; ++i) {
      const bool is_plus = is_row("plus", i);
      EXPECT_TRUE(is_plus || is_row("minus", i)) << "image " << i;
      plus_count += is_plus ? 1 : 0;
    }
    EXPECT_GT(plus_count, 0);
    EXPECT_LT(plus_count, image_count);
  }
}

}  // namespace
}  // namespace muster
