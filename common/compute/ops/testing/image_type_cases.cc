#include "common/compute/ops/testing/image_type_cases.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "common/compute/ops/testing/type_case_names.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

using type_case_names::D;
using type_case_names::F;
using type_case_names::H;
using type_case_names::I;
using type_case_names::List;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

Attributes Strided(List strides, const std::string& padding,
                   int64_t groups = 1) {
  return {{"strides", strides}, {"padding", padding}, {"groups", groups}};
}

void AddConvolutions(std::vector<TypeCase>* cases) {
  const TensorType x = {F, {-1, 9, 8, 4}};
  const TensorType kernel = {F, {3, 3, 4, 6}};
  const auto add = [&](const char* op, std::vector<TensorType> inputs,
                       const Attributes& attributes, const char* expected) {
    cases->push_back({op, std::move(inputs), attributes, expected});
  };
  add("Conv2D", {x, kernel}, {}, "float32[?,7,6,6]");
  add("Conv2D", {x, kernel}, Strided({2, 2}, "SAME"), "float32[?,5,4,6]");
  add("Conv2D", {x, {F, {3, 3, 2, 6}}}, Strided({1, 1}, "SAME", 2),
      "float32[?,9,8,6]");
  add("Conv2D", {{F, {2, -1, 8, 4}}, kernel}, {}, "float32[2,?,6,6]");
  add("Conv2D", {{F, {9, 8, 4}}, kernel}, {}, "! must have rank 4, not 3");
  add("Conv2D", {x, {D, {3, 3, 4, 6}}}, {}, "! must be float32");
  add("Conv2D", {{I, {1, 9, 8, 4}}, {I, {3, 3, 4, 6}}}, {}, "! floating");
  add("Conv2D", {x, {F, {3, 3, 5, 6}}}, {}, "! does not fit 4 channels");
  add("Conv2D", {x, {F, {3, 3, 1, 6}}}, Strided({1, 1}, "SAME", 4),
      "! not divisible into 4 groups");
  add("Conv2D", {x, kernel}, Strided({1, 1}, "SAME", 0), "! at least 1, not 0");
  add("Conv2D", {x, {F, {10, 3, 4, 6}}}, {}, "! spans 10 elements");
  add("Conv2D", {x, kernel}, Strided({0, 1}, "SAME"), "! must lie in [1");
  add("Conv2D", {x, kernel}, Strided({1}, "SAME"), "! must hold 2 numbers");
  add("Conv2D", {x, kernel}, Strided({1, 1}, "FULL"), "! not \"FULL\"");
  add("Conv2D", {x, {F, {kMax, 1, 1, 0}}}, {}, "! 2^31 or more");

  const TensorType y = {F, {-1, 7, 6, 6}};
  add("Conv2DBackpropInput", {y, kernel, x}, {}, "float32[?,9,8,4]");
  add("Conv2DBackpropInput", {{F, {2, 7, 5, 6}}, kernel, x}, {},
      "! must have shape [?,7,6,6], not [2,7,5,6]");
  add("Conv2DBackpropKernel", {x, y, kernel}, {}, "float32[3,3,4,6]");
  add("Conv2DBackpropKernel", {x, {F, {2, 7, 6, 5}}, kernel}, {},
      "! must have shape");

  const TensorType depthwise = {F, {3, 3, 4, 2}};
  const TensorType deep = {F, {-1, 7, 6, 8}};
  add("DepthwiseConv2D", {x, depthwise}, {}, "float32[?,7,6,8]");
  add("DepthwiseConv2D", {x, {F, {3, 3, 5, 2}}}, {}, "! must be equal");
  add("DepthwiseConv2D", {{F, {1, 1, 1, 3}}, {F, {1, 1, 3, kMax / 3}}}, {},
      "float32[1,1,1,9223372036854775806]");
  add("DepthwiseConv2D", {{F, {0, 1, 1, 3}}, {F, {1, 1, -1, kMax}}}, {},
      "! more than 2^63");
  add("DepthwiseConv2DBackpropInput", {deep, depthwise, x}, {},
      "float32[?,9,8,4]");
  add("DepthwiseConv2DBackpropInput", {y, depthwise, x}, {},
      "! must have shape");
  add("DepthwiseConv2DBackpropKernel", {x, deep, depthwise}, {},
      "float32[3,3,4,2]");
  add("DepthwiseConv2DBackpropKernel", {x, y, depthwise}, {},
      "! must have shape");
}

void AddPoolings(std::vector<TypeCase>* cases) {
  const TensorType x = {F, {-1, 9, 8, 4}};
  const Attributes pool = {{"window", List{2, 2}}, {"strides", List{2, 2}}};
  const Attributes wide = {{"window", List{2, 2}},
                           {"padding", std::string("EXPLICIT")},
                           {"explicit_padding", List{0, 2, 0, 0}}};
  const TensorType y = {F, {-1, 4, 4, 4}};
  for (const std::string op : {"MaxPool2D", "AveragePool2D"}) {
    cases->push_back({op, {x}, pool, "float32[?,4,4,4]"});
    cases->push_back({op, {{I, {1, 4, 4, 1}}}, pool, "! floating dtype"});
    cases->push_back({op, {{F, {4, 4, 1}}}, pool, "! rank 4"});
    cases->push_back({op, {x}, {}, "! attribute \"window\""});
    cases->push_back({op, {x}, {{"window", List{0, 1}}}, "! at least 1"});
    cases->push_back({op, {x}, wide, "! narrower than the window"});
    cases->push_back({op + "Grad", {y, x}, pool, "float32[?,9,8,4]"});
    cases->push_back({op + "Grad", {x, x}, pool, "! must have shape"});
  }
  cases->push_back({"MaxPool2DSelect", {x, x}, pool, "float32[?,4,4,4]"});
  cases->push_back({"MaxPool2DSelect", {y, x}, pool, "! must be equal"});
}

void AddNormalizations(std::vector<TypeCase>* cases) {
  const Attributes epsilon = {{"epsilon", 1e-3}};
  const TensorType x = {F, {-1, 5, 4}};
  const TensorType half = {H, {-1, 5, 4}};
  const TensorType c = {F, {4}};
  const TensorType unknown = {F, {-1}};
  const auto add = [&](const char* op, std::vector<TensorType> inputs,
                       const Attributes& attributes, const char* expected) {
    cases->push_back({op, std::move(inputs), attributes, expected});
  };
  add("BatchNormTraining", {x, c, unknown}, epsilon,
      "float32[?,5,4] float32[4] float32[4]");
  add("BatchNormTraining", {half, c, c}, epsilon,
      "bfloat16[?,5,4] float32[4] float32[4]");
  add("BatchNormTraining", {x, {D, {4}}, {D, {4}}}, epsilon,
      "! must be float32, not float64");
  add("BatchNormTraining", {x, c, {D, {4}}}, epsilon, "! must be float32");
  add("BatchNormTraining", {x, c, {F, {5}}}, epsilon, "! must be equal");
  add("BatchNormTraining", {c, c, c}, epsilon, "! rank 2 or more");
  add("BatchNormTraining", {x, c, c}, {}, "! attribute \"epsilon\"");
  add("BatchNormTraining", {x, c, c}, {{"epsilon", -1.0}}, "! not negative");
  add("BatchNormTrainingGrad", {half, half, c, c, c}, epsilon,
      "bfloat16[?,5,4] float32[4] float32[4]");
  add("BatchNormTrainingGrad", {{F, {1, 6, 4}}, x, c, c, c}, epsilon,
      "! must be equal");
  add("BatchNormInference", {x, c, c, c, c}, epsilon, "float32[?,5,4]");
  add("BatchNormInference", {x, c, c, c, {F, {4, 1}}}, epsilon,
      "! must be equal");
}

void AddLayerNorms(std::vector<TypeCase>* cases) {
  const Attributes epsilon = {{"epsilon", 1e-3}};
  const TensorType x = {F, {-1, 5, 4}};
  const TensorType half = {H, {-1, 5, 4}};
  const TensorType f = {F, {4}};
  const TensorType ff = {F, {5, 4}};
  const TensorType rows = {F, {-1, 5}};
  const auto add = [&](const char* op, std::vector<TensorType> inputs,
                       const Attributes& attributes, const char* expected) {
    cases->push_back({op, std::move(inputs), attributes, expected});
  };
  add("LayerNorm", {x, f, {F, {-1}}}, epsilon,
      "float32[?,5,4] float32[?,5] float32[?,5]");
  add("LayerNorm", {{F, {-1, -1, -1}}, {F, {5, -1}}, {F, {-1, 4}}}, epsilon,
      "float32[?,5,4] float32[?] float32[?]");
  add("LayerNorm", {half, ff, ff}, epsilon,
      "bfloat16[?,5,4] float32[?] float32[?]");
  add("LayerNorm", {f, f, f}, epsilon, "float32[4] float32[] float32[]");
  add("LayerNorm", {x, {D, {4}}, {D, {4}}}, epsilon,
      "! must be float32, not float64");
  add("LayerNorm", {x, f, {D, {4}}}, epsilon, "! must be float32");
  add("LayerNorm", {x, f, {F, {5}}}, epsilon, "! must be equal");
  add("LayerNorm", {x, {F, {5}}, {F, {5}}}, epsilon, "! must be equal");
  add("LayerNorm", {x, f, ff}, epsilon, "! must be equal");
  add("LayerNorm", {f, ff, ff}, epsilon, "! rank 2 or more");
  add("LayerNorm", {x, {F, {}}, {F, {}}}, epsilon, "! rank 1 or more");
  add("LayerNorm", {x, f, f}, {}, "! attribute \"epsilon\"");
  add("LayerNorm", {x, f, f}, {{"epsilon", -1.0}}, "! not negative");
  add("LayerNormGrad", {half, half, f, rows, {F, {7, -1}}}, epsilon,
      "bfloat16[7,5,4] float32[4] float32[4]");
  add("LayerNormGrad", {{F, {1, 6, 4}}, x, f, rows, rows}, epsilon,
      "! must be equal");
  add("LayerNormGrad", {x, x, ff, rows, rows}, epsilon, "! must be equal");
}

void AddResizing(std::vector<TypeCase>* cases) {
  const Attributes resize = {{"height", int64_t{6}},
                             {"width", int64_t{5}},
                             {"interpolation", std::string("bilinear")}};
  const TensorType images = {F, {-1, 3, 4, 2}};
  const TensorType resized = {F, {7, 6, 5, 2}};
  cases->push_back({"ResizeImage", {images}, resize, "float32[?,6,5,2]"});
  cases->push_back(
      {"ResizeImage", {{I, {1, 3, 4, 2}}}, resize, "! floating dtype"});
  cases->push_back(
      {"ResizeImageGrad", {resized, images}, resize, "float32[7,3,4,2]"});
  cases->push_back(
      {"ResizeImageGrad", {images, images}, resize, "! must be equal"});
  const Attributes transform = {{"interpolation", std::string("nearest")},
                                {"fill_mode", std::string("wrap")}};
  const TensorType transforms = {F, {-1, 8}};
  for (const char* op : {"ImageTransform", "ImageTransformGrad"}) {
    cases->push_back({op, {images, transforms}, transform, "float32[?,3,4,2]"});
    cases->push_back(
        {op, {images, {F, {-1, 6}}}, transform, "! 8 numbers for each image"});
  }
}

}  // namespace

std::vector<TypeCase> ImageTypeCases() {
  std::vector<TypeCase> cases;
  AddConvolutions(&cases);
  AddPoolings(&cases);
  AddNormalizations(&cases);
  AddLayerNorms(&cases);
  AddResizing(&cases);
  return cases;
}

}  // namespace muster
