#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/compute/ops/image_ops.h"
#include "common/core/base/check.h"
#include "common/learn/nn/image/random_image.h"
#include "common/learn/nn/image/rescaling.h"
#include "common/learn/nn/image/resizing.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/layer_normalization.h"
#include "common/learn/nn/layers/leaky_relu.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"
#include "tests/golden/layer_case.h"

namespace muster {
namespace {

using Json = nlohmann::json;

Interpolation ToInterpolation(const Json& config) {
  return config.at("interpolation") == "bilinear" ? Interpolation::kBilinear
                                                  : Interpolation::kNearest;
}

FillMode ToFillMode(const Json& config) {
  const std::string name = config.at("fill_mode");
  if (name == "nearest") return FillMode::kNearest;
  if (name == "reflect") return FillMode::kReflect;
  if (name == "wrap") return FillMode::kWrap;
  MUSTER_CHECK(name == "constant");
  return FillMode::kConstant;
}

RandomFactor ToFactor(const Json& range) {
  return RandomFactor(range.at(0).get<double>(), range.at(1).get<double>());
}

LayerPtr MakeRandomLayer(const Json& config) {
  if (config.at("class_name") == "RandomRotation") {
    return RandomRotation(ToFactor(config.at("factor")),
                          {.fill_mode = ToFillMode(config),
                           .interpolation = ToInterpolation(config),
                           .fill_value = config.at("fill_value")});
  }
  MUSTER_CHECK(config.at("class_name") == "RandomZoom");
  return RandomZoom(ToFactor(config.at("height_factor")),
                    {.width_factor = ToFactor(config.at("width_factor")),
                     .fill_mode = ToFillMode(config),
                     .interpolation = ToInterpolation(config),
                     .fill_value = config.at("fill_value")});
}

ChannelNumbers ToNumbers(const Json& json) {
  if (json.is_array()) return json.get<std::vector<double>>();
  return json.get<double>();
}

LayerPtr MakeLayer(const Json& config) {
  const std::string name = config.at("class_name");
  if (name == "LayerNormalization") {
    const Json& axis = config.at("axis");
    return LayerNormalization(
        {.axis = axis.is_array() ? axis.get<std::vector<int64_t>>()
                                 : std::vector<int64_t>{axis.get<int64_t>()},
         .epsilon = config.at("epsilon"),
         .center = config.at("center"),
         .scale = config.at("scale")});
  }
  if (name == "LeakyReLU") {
    return LeakyReLU({.negative_slope = config.at("negative_slope")});
  }
  if (name == "PReLU") return PReLU({.shared_axes = config.at("shared_axes")});
  if (name == "Rescaling") {
    return Rescaling(ToNumbers(config.at("scale")),
                     {.offset = ToNumbers(config.at("offset"))});
  }
  if (name == "Resizing") {
    return Resizing(config.at("height"), config.at("width"),
                    {.interpolation = ToInterpolation(config),
                     .crop_to_aspect_ratio = config.at("crop_to_aspect_ratio"),
                     .pad_to_aspect_ratio = config.at("pad_to_aspect_ratio"),
                     .fill_value = config.at("fill_value")});
  }
  return MakeRandomLayer(config);
}

TEST(ImageLayersGoldenTest, MatchKerasWithTheirGradients) {
  for (const GoldenCase& golden : ReadGoldenCases("image_layers.json")) {
    SCOPED_TRACE(golden.name);
    ExpectLayerMatches(golden, MakeLayer(golden.config), 1e-5);
  }
}

}  // namespace
}  // namespace muster
