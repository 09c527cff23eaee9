#include "common/compute/conformance/conv_cases.h"

#include <cstdint>
#include <string>
#include <vector>

#include "common/compute/conformance/case_types.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

struct Convolution {
  Attributes attributes;
  Shape x, kernel, y;
};

void AddConvolution(const std::string& op, const Convolution& c,
                    std::vector<OpCase>* cases) {
  for (const DType dtype :
       {kF32, DType::kFloat64, DType::kBfloat16, DType::kFloat16}) {
    const OpInput x = {dtype, c.x, -1, 1};
    const OpInput kernel = {dtype, c.kernel, -1, 1};
    const OpInput y = {dtype, c.y, -1, 1};
    cases->push_back({op, c.attributes, {x, kernel}});
    cases->push_back({op + "BackpropInput", c.attributes, {y, kernel, x}});
    cases->push_back({op + "BackpropKernel", c.attributes, {x, y, kernel}});
  }
}

Attributes Window(Axes strides, std::string padding, Axes explicit_padding) {
  Attributes attributes = {{"strides", strides}, {"padding", padding}};
  if (padding == "EXPLICIT") {
    attributes.Set("explicit_padding", explicit_padding);
  }
  return attributes;
}

// Adds depthwise convolutions with one output for each channel. Devices compute
// them in vectors of channels and strips of pixels.
void AddDepthwiseCasesOfDevices(std::vector<OpCase>* cases) {
  const Attributes same = Window({1, 1}, "SAME", {});
  const Attributes halving = Window({2, 2}, "SAME", {});
  for (const Convolution& c : std::vector<Convolution>{
           // One vector, partial strips, and odd and even padding.
           {same, {2, 5, 9, 8}, {3, 3, 8, 1}, {2, 5, 9, 8}},
           {halving, {1, 10, 7, 8}, {3, 3, 8, 1}, {1, 5, 4, 8}},
           {halving, {2, 7, 10, 8}, {3, 3, 8, 1}, {2, 4, 5, 8}},
           {Window({2, 2}, "EXPLICIT", {0, 2, 3, 1}),
            {1, 6, 7, 8},
            {3, 3, 8, 1},
            {1, 3, 5, 8}},
           {Window({1, 1}, "EXPLICIT", {3, 0, 0, 3}),
            {1, 4, 5, 8},
            {3, 3, 8, 1},
            {1, 5, 6, 8}},
           // More vectors than a warp has threads, and more than a block has.
           {same, {1, 3, 5, 264}, {3, 3, 264, 1}, {1, 3, 5, 264}},
           {halving, {1, 6, 5, 1032}, {3, 3, 1032, 1}, {1, 3, 3, 1032}},
           // The gradient of the kernel in parts of rows and in parts of lanes.
           {same, {1, 5, 5, 1032}, {3, 3, 1032, 1}, {1, 5, 5, 1032}},
           {same, {3, 31, 24, 8}, {3, 3, 8, 1}, {3, 31, 24, 8}},
           {same, {1, 43, 50, 5}, {3, 3, 5, 1}, {1, 43, 50, 5}},
           // Other windows.
           {same, {2, 6, 9, 16}, {5, 5, 16, 1}, {2, 6, 9, 16}},
           {halving, {1, 9, 8, 3}, {7, 7, 3, 1}, {1, 5, 4, 3}},
           {Window({2, 1}, "VALID", {}),
            {1, 7, 6, 8},
            {3, 3, 8, 1},
            {1, 3, 4, 8}}}) {
    AddConvolution("DepthwiseConv2D", c, cases);
  }
}

}  // namespace

void AddConvCases(std::vector<OpCase>* cases) {
  const auto window = [](Axes strides, Axes dilations, std::string padding,
                         int64_t groups) -> Attributes {
    return {{"strides", strides},
            {"dilations", dilations},
            {"padding", padding},
            {"groups", groups}};
  };
  const Attributes plain;
  const Attributes same = window({1, 1}, {1, 1}, "SAME", 1);
  const Attributes halving = window({2, 2}, {1, 1}, "SAME", 1);
  const Attributes uneven = window({2, 1}, {1, 2}, "SAME", 1);
  const Attributes dilated = window({1, 1}, {2, 2}, "VALID", 1);
  Attributes padded = window({2, 3}, {1, 1}, "EXPLICIT", 1);
  padded.Set("explicit_padding", Axes{0, 2, 1, 3});
  for (const Convolution& c : std::vector<Convolution>{
           {plain, {2, 5, 6, 3}, {3, 3, 3, 4}, {2, 3, 4, 4}},
           {plain, {3, 7, 5, 16}, {1, 1, 16, 24}, {3, 7, 5, 24}},
           {plain, {2, 4, 4, 33}, {1, 1, 33, 17}, {2, 4, 4, 17}},
           {same, {2, 7, 7, 32}, {3, 3, 32, 16}, {2, 7, 7, 16}},
           {halving, {2, 8, 9, 3}, {3, 3, 3, 32}, {2, 4, 5, 32}},
           {halving, {1, 6, 6, 16}, {1, 1, 16, 8}, {1, 3, 3, 8}},
           {uneven, {2, 8, 7, 5}, {3, 2, 5, 7}, {2, 4, 7, 7}},
           {dilated, {1, 7, 8, 16}, {3, 3, 16, 16}, {1, 3, 4, 16}},
           {padded, {2, 6, 7, 4}, {3, 3, 4, 5}, {2, 3, 3, 5}},
           {window({1, 1}, {1, 1}, "SAME", 2),
            {2, 5, 5, 8},
            {3, 3, 4, 6},
            {2, 5, 5, 6}},
           {plain, {2, 1, 9, 6}, {1, 3, 6, 4}, {2, 1, 7, 4}},
           {plain, {0, 5, 5, 3}, {3, 3, 3, 4}, {0, 3, 3, 4}},
           {plain, {2, 5, 5, 3}, {3, 3, 3, 0}, {2, 3, 3, 0}},
           {plain, {2, 5, 5, 0}, {3, 3, 0, 4}, {2, 3, 3, 4}}}) {
    AddConvolution("Conv2D", c, cases);
  }
  for (const Convolution& c : std::vector<Convolution>{
           {same, {2, 7, 6, 32}, {3, 3, 32, 1}, {2, 7, 6, 32}},
           {halving, {2, 8, 9, 96}, {3, 3, 96, 1}, {2, 4, 5, 96}},
           {same, {1, 7, 7, 20}, {3, 3, 20, 1}, {1, 7, 7, 20}},
           {plain, {2, 6, 6, 3}, {2, 3, 3, 2}, {2, 5, 4, 6}},
           {padded, {2, 6, 7, 16}, {3, 3, 16, 1}, {2, 3, 3, 16}},
           {dilated, {1, 7, 8, 16}, {3, 3, 16, 1}, {1, 3, 4, 16}},
           {plain, {0, 5, 5, 3}, {3, 3, 3, 2}, {0, 3, 3, 6}}}) {
    AddConvolution("DepthwiseConv2D", c, cases);
  }
  AddDepthwiseCasesOfDevices(cases);
}

void AddPoolCases(std::vector<OpCase>* cases) {
  const auto window = [](Axes window, Axes strides,
                         std::string padding) -> Attributes {
    return {{"window", window}, {"strides", strides}, {"padding", padding}};
  };
  Attributes padded = window({3, 3}, {2, 2}, "EXPLICIT");
  padded.Set("explicit_padding", Axes{0, 2, 1, 1});
  struct Pooling {
    Attributes attributes;
    Shape x, y;
  };
  for (const Pooling& p : std::vector<Pooling>{
           {window({2, 2}, {2, 2}, "VALID"), {2, 6, 7, 16}, {2, 3, 3, 16}},
           {window({3, 2}, {1, 2}, "VALID"), {2, 6, 7, 5}, {2, 4, 3, 5}},
           {window({3, 3}, {2, 2}, "SAME"), {2, 8, 9, 33}, {2, 4, 5, 33}},
           {window({2, 2}, {3, 3}, "SAME"), {1, 7, 8, 3}, {1, 3, 3, 3}},
           {padded, {2, 6, 6, 4}, {2, 3, 3, 4}},
           {window({2, 2}, {2, 2}, "SAME"), {0, 4, 4, 3}, {0, 2, 2, 3}}}) {
    for (const DType dtype :
         {kF32, DType::kFloat64, DType::kBfloat16, DType::kFloat16}) {
      // Few distinct values, so that there are ties; the kernel must find the
      // first maximum.
      const OpInput x = {dtype, p.x, -4, 4};
      const OpInput y = {dtype, p.y};
      for (const char* op : {"MaxPool2D", "AveragePool2D"}) {
        cases->push_back({op, p.attributes, {x}});
        cases->push_back({std::string(op) + "Grad", p.attributes, {y, x}});
      }
      cases->push_back({"MaxPool2DSelect", p.attributes, {x, x}});
    }
  }
}

}  // namespace muster
