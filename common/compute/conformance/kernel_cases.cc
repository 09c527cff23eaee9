#include "common/compute/conformance/kernel_cases.h"

#include <cstdint>
#include <string>
#include <utility>

#include "common/compute/conformance/case_types.h"
#include "common/compute/conformance/control_flow_cases.h"
#include "common/compute/conformance/conv_cases.h"
#include "common/compute/conformance/normalization_cases.h"
#include "common/compute/conformance/recurrence_cases.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

constexpr DType kI32 = DType::kInt32;
constexpr DType kI64 = DType::kInt64;

const std::vector<DType>& NumberTypes() {
  static const auto* const kTypes = new std::vector<DType>{
      kF32, DType::kFloat64, DType::kBfloat16, DType::kFloat16, kI32,
      kI64, DType::kUint8};
  return *kTypes;
}

// Scalars, empty tensors, and extents around the vector widths.
const std::vector<Shape>& Shapes() {
  static const auto* const kShapes =
      new std::vector<Shape>{{},     {0},     {1},       {7},        {16},
                             {1000}, {3, 17}, {4, 0, 2}, {2, 3, 33}, {5, 1000}};
  return *kShapes;
}

// Pairs that broadcast to each other.
const std::vector<std::pair<Shape, Shape>>& ShapePairs() {
  static const auto* const kPairs = new std::vector<std::pair<Shape, Shape>>{
      {{}, {}},          {{7}, {7}},
      {{33}, {}},        {{}, {33}},
      {{5, 33}, {33}},   {{33}, {5, 33}},
      {{5, 33}, {5, 1}}, {{5, 1}, {5, 33}},
      {{4, 1}, {1, 9}},  {{2, 3, 4}, {3, 1}},
      {{0}, {1}},        {{0, 3}, {3}},
      {{1}, {0, 2}},     {{64, 10}, {64, 10}}};
  return *kPairs;
}

void AddElementwiseCases(std::vector<OpCase>* cases) {
  std::vector<DType> dtypes = NumberTypes();
  dtypes.push_back(DType::kBool);
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    if (!schema->is_elementwise) continue;
    const auto add = [&](const std::vector<Shape>& shapes) {
      for (const DType dtype : dtypes) {
        for (OpCase& one : ElementwiseCases(*schema, dtype, shapes)) {
          cases->push_back(std::move(one));
        }
      }
    };
    for (const Shape& shape : Shapes()) {
      add({shape});
      add({shape, shape});
    }
    for (const auto& [a, b] : ShapePairs()) {
      if (a != b) add({a, b});
    }
  }
}

void AddBroadcastCases(std::vector<OpCase>* cases) {
  for (const auto& [a, b] : ShapePairs()) {
    const auto output = BroadcastShapes(a, b);
    for (const DType dtype : {kF32, kI64, DType::kBfloat16, DType::kFloat16}) {
      cases->push_back(
          {"Select", {}, {{DType::kBool, *output}, {dtype, a}, {dtype, b}}});
      cases->push_back(
          {"Select", {}, {{DType::kBool, a}, {dtype, b}, {dtype, *output}}});
      const Axes dims(output->dims().begin(), output->dims().end());
      cases->push_back({"BroadcastTo", {{"shape", dims}}, {{dtype, a}}});
      cases->push_back({"BroadcastLike", {}, {{dtype, b}, {dtype, *output}}});
      cases->push_back({"SumLike", {}, {{dtype, *output}, {dtype, a}}});
    }
  }
}

void AddRowCases(std::vector<OpCase>* cases) {
  for (const Shape& shape : {Shape{5},
                             {64, 10},
                             {3, 100},
                             {0, 4},
                             {3, 1},
                             {2, 257},
                             {3, 1000},
                             {9, 512},
                             {5, 64},
                             {7, 1024}}) {
    for (const DType dtype : {kF32, DType::kFloat64, DType::kBfloat16}) {
      cases->push_back(
          {"SoftmaxGrad", {}, {{dtype, shape, -2, 2}, {dtype, shape, 0, 0.1}}});
    }
  }
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const Shape& shape : {Shape{5},
                               {64, 10},
                               {3, 100},
                               {2, 3, 16},
                               {0, 4},
                               {3, 1},
                               {2, 257},
                               {9, 264},
                               {9, 512},
                               {3, 1000},
                               {2, 1024},
                               {2, 1032}}) {
      cases->push_back({op, {}, {{kF32, shape, -9, 9}}});
      cases->push_back({op, {}, {{DType::kFloat64, shape, -9, 9}}});
      cases->push_back({op, {}, {{DType::kBfloat16, shape, -2, 2}}});
      cases->push_back({op, {}, {{DType::kFloat16, shape, -2, 2}}});
    }
  }
  for (const Shape& logits :
       {Shape{64, 10}, {3, 100}, {1, 1}, {0, 5}, {7}, {9, 264}, {3, 1000}}) {
    Shape rows = logits;
    rows.RemoveDim(logits.rank() - 1);
    const double classes = static_cast<double>(logits.dim(logits.rank() - 1));
    for (const DType dtype : {kF32, DType::kFloat64, DType::kBfloat16}) {
      const double bound = dtype == DType::kBfloat16 ? 2 : 9;
      const OpInput x = {dtype, logits, -bound, bound};
      const OpInput dense = {dtype, logits, 0, 1};
      cases->push_back({"SoftmaxCrossEntropy", {}, {x, dense}});
      cases->push_back(
          {"SoftmaxCrossEntropyGrad", {}, {x, dense, {dtype, rows}}});
      for (const DType index : {kI32, kI64}) {
        const OpInput sparse = {index, rows, 0, classes};
        cases->push_back({"SparseSoftmaxCrossEntropy", {}, {x, sparse}});
        cases->push_back(
            {"SparseSoftmaxCrossEntropyGrad", {}, {x, sparse, {dtype, rows}}});
      }
    }
  }
}

void AddReductionCases(std::vector<OpCase>* cases) {
  const std::vector<std::pair<Shape, Axes>> shapes = {{{}, {}},
                                                      {{1000}, {0}},
                                                      {{64, 10}, {1}},
                                                      {{64, 10}, {0}},
                                                      {{64, 10}, {0, 1}},
                                                      {{9, 33, 5}, {1}},
                                                      {{9, 33, 5}, {0, 2}},
                                                      {{9, 33, 5}, {-1}},
                                                      {{2, 3, 4, 5}, {1, 2}},
                                                      {{0, 4}, {0}},
                                                      {{4, 0}, {1}},
                                                      {{3, 4}, {}},
                                                      {{10000}, {0}},
                                                      {{600, 20}, {0}},
                                                      {{5, 1, 7}, {0, 1}},
                                                      {{600, 40}, {1}},
                                                      // Devices reduce these in
                                                      // parts of unequal size.
                                                      {{10007}, {0}},
                                                      {{2, 5003}, {1}},
                                                      {{5003, 3}, {0}},
                                                      {{777, 70}, {0}},
                                                      {{350, 3, 20}, {0, 2}}};
  for (const auto& [shape, axes] : shapes) {
    for (const bool keep_dims : {false, true}) {
      const Attributes attributes = {{"axes", axes}, {"keep_dims", keep_dims}};
      for (const DType dtype : {kF32, DType::kFloat64, kI64}) {
        for (const char* op : {"Sum", "Max", "Min"}) {
          cases->push_back({op, attributes, {{dtype, shape, 0, 5}}});
        }
      }
      cases->push_back({"Mean", attributes, {{DType::kBfloat16, shape, 0, 5}}});
      cases->push_back({"Mean", attributes, {{DType::kFloat16, shape, 0, 5}}});
      cases->push_back({"Mean", attributes, {{kF32, shape}}});
      cases->push_back({"Prod", attributes, {{kF32, shape, 0.99, 1.01}}});
    }
    cases->push_back({"CountAlong", {{"axes", axes}}, {{kF32, shape}}});
    cases->push_back(
        {"ProdOfOthers", {{"axes", axes}}, {{kF32, shape, 0.99, 1.01}}});
  }
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const DType dtype : {kF32, kI32}) {
      // Few distinct values, so that there are ties; the kernel must find the
      // first maximum.
      const OpInput x = {dtype, {8, 9, 10}, 0, 5};
      for (const int64_t axis : {0, 1, 2, -1}) {
        cases->push_back({op, {{"axis", axis}}, {x}});
      }
      cases->push_back({op, {{"axis", int64_t{1}}}, {{dtype, {0, 3}, 0, 5}}});
    }
  }
}

void AddCumSumCases(std::vector<OpCase>* cases) {
  for (const DType dtype : NumberTypes()) {
    for (const Shape& shape :
         {Shape{5}, {3, 17}, {40, 9}, {2, 3, 4}, {0, 4}, {3, 1}}) {
      for (int64_t axis = -1; axis + 1 < shape.rank(); ++axis) {
        for (const bool exclusive : {false, true}) {
          for (const bool reverse : {false, true}) {
            cases->push_back({"CumSum",
                              {{"axis", axis},
                               {"exclusive", exclusive},
                               {"reverse", reverse}},
                              {{dtype, shape, 0, 4}}});
          }
        }
      }
    }
  }
}

void AddMatMulCases(std::vector<OpCase>* cases) {
  struct Sizes {
    int64_t rows, inner, columns;
  };
  const auto swapped = [](Shape shape, bool is_swapped) {
    const int rank = shape.rank();
    if (!is_swapped) return shape;
    const int64_t last = shape.dim(rank - 1);
    shape.set_dim(rank - 1, shape.dim(rank - 2));
    shape.set_dim(rank - 2, last);
    return shape;
  };
  const auto add = [&](DType dtype, const Shape& a, const Shape& b) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        cases->push_back(
            {"MatMul",
             {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}},
             {{dtype, swapped(a, transpose_a), -1, 1},
              {dtype, swapped(b, transpose_b), -1, 1}}});
      }
    }
  };
  for (const Sizes& s : {Sizes{1, 1, 1},
                         {64, 100, 10},
                         {3, 17, 33},
                         {1, 20, 1},
                         {0, 3, 4},
                         {3, 0, 4},
                         {3, 4, 0},
                         {65, 31, 129}}) {
    for (const DType dtype :
         {kF32, DType::kBfloat16, DType::kFloat16, DType::kFloat64, kI32}) {
      add(dtype, {s.rows, s.inner}, {s.inner, s.columns});
    }
  }
  add(kF32, {5, 3, 4}, {5, 4, 6});
  add(kF32, {5, 3, 4}, {4, 6});
  add(kF32, {3, 4}, {5, 4, 6});
  add(kF32, {5, 1, 3, 4}, {2, 4, 6});
  add(kF32, {1, 3, 4}, {7, 4, 2});
  add(kF32, {0, 3, 4}, {4, 2});
}

// Adds copies of rows that are contiguous words of 2 to 16 bytes.
void AddRowCopyCases(DType dtype, std::vector<OpCase>* cases) {
  for (const int64_t columns : {6, 16}) {
    cases->push_back({"Transpose",
                      {{"permutation", Axes{0, 2, 1, 3}}},
                      {{dtype, {2, 37, 5, columns}}}});
  }
  for (const int64_t begin : {0, 2, 4, 16}) {
    cases->push_back({"Slice",
                      {{"begin", Axes{3, begin}}, {"size", Axes{9, 16}}},
                      {{dtype, {13, 48}}}});
  }
  cases->push_back(
      {"Concat", {{"axis", int64_t{1}}}, {{dtype, {6, 16}}, {dtype, {6, 32}}}});
}

void AddShapeCases(std::vector<OpCase>* cases) {
  const std::vector<DType> dtypes = {kF32, DType::kFloat64, DType::kBool,
                                     DType::kFloat16};
  const std::vector<std::pair<Shape, Axes>> transposes = {
      {{5}, {0}},
      {{5, 7}, {1, 0}},
      {{33, 65}, {1, 0}},
      {{4, 5, 6}, {0, 2, 1}},
      {{4, 5, 6}, {2, 0, 1}},
      {{4, 5, 6}, {2, 1, 0}},
      {{4, 5, 6}, {1, 0, 2}},
      {{2, 3, 4, 5}, {0, 2, 1, 3}},
      {{2, 3, 4, 5}, {3, 1, 0, 2}},
      {{3, 37, 20}, {0, 2, 1}},
      {{20, 3, 2, 37}, {3, 2, 1, 0}},
      {{1, 5, 1, 7}, {3, 2, 1, 0}},
      {{0, 4}, {1, 0}},
      {{3, 4}, {-1, 0}},
      {{}, {}}};
  for (const DType dtype : dtypes) {
    AddRowCopyCases(dtype, cases);
    for (const auto& [shape, permutation] : transposes) {
      cases->push_back(
          {"Transpose", {{"permutation", permutation}}, {{dtype, shape}}});
      cases->push_back({"Reverse", {{"axes", permutation}}, {{dtype, shape}}});
    }
    for (const int64_t axis : {0, 1, -1}) {
      const OpInput a = {dtype, {2, 3, 4}};
      cases->push_back({"Concat", {{"axis", axis}}, {a, a, a}});
      cases->push_back({"Stack", {{"axis", axis}}, {a, a}});
      cases->push_back({"Unstack",
                        {{"axis", axis},
                         {"count", axis == 0      ? int64_t{2}
                                   : axis + 3 > 3 ? int64_t{3}
                                                  : int64_t{4}}},
                        {a}});
      cases->push_back({"ExpandDims", {{"axis", axis}}, {a}});
    }
    const OpInput x = {dtype, {6, 5}};
    cases->push_back({"Concat",
                      {{"axis", int64_t{1}}},
                      {x, {dtype, {6, 0}}, {dtype, {6, 2}}}});
    cases->push_back(
        {"Concat", {{"axis", int64_t{1}}}, {{dtype, {0, 2}}, {dtype, {0, 3}}}});
    cases->push_back(
        {"Split", {{"axis", int64_t{1}}, {"sizes", Axes{2, 0, -1}}}, {x}});
    cases->push_back({"SplitLike",
                      {{"axis", int64_t{0}}},
                      {x, {dtype, {2, 5}}, {dtype, {4, 5}}}});
    cases->push_back(
        {"Slice", {{"begin", Axes{1, 2}}, {"size", Axes{3, -1}}}, {x}});
    cases->push_back(
        {"SliceLike", {{"begin", Axes{1, 2}}}, {x, {dtype, {3, 2}}}});
    cases->push_back(
        {"Pad", {{"paddings", Axes{1, 0, 2, 3}}, {"value", 1.0}}, {x}});
    cases->push_back(
        {"PadLike", {{"begin", Axes{1, 2}}}, {x, {dtype, {9, 9}}}});
    cases->push_back({"Reshape", {{"shape", Axes{3, -1}}}, {x}});
    cases->push_back({"ReshapeLike", {}, {x, {dtype, {30}}}});
    cases->push_back({"Squeeze", {{"axes", Axes{1}}}, {{dtype, {3, 1, 2}}}});
  }
}

void AddIndexCases(std::vector<OpCase>* cases) {
  for (const DType index : {kI32, kI64}) {
    for (const DType dtype : {kF32, kI64, DType::kFloat16}) {
      for (const int64_t axis : {0, 1, -1}) {
        cases->push_back({"Gather",
                          {{"axis", axis}},
                          {{dtype, {6, 7, 9}}, {index, {2, 5}, 0, 6}}});
      }
      cases->push_back({"Gather", {}, {{dtype, {6, 4}}, {index, {0}, 0, 6}}});
      cases->push_back({"Gather", {}, {{dtype, {6}}, {index, {}, 0, 6}}});
    }
    for (const DType dtype : {kF32, kI64}) {
      cases->push_back(
          {"ScatterRowsLike",
           {{"axis", int64_t{0}}},
           {{dtype, {40, 33}}, {index, {40}, 0, 6}, {dtype, {6, 33}}}});
      cases->push_back(
          {"ScatterRowsLike",
           {{"axis", int64_t{1}}},
           {{dtype, {6, 40}}, {index, {40}, 0, 7}, {dtype, {6, 7}}}});
      cases->push_back(
          {"ScatterRowsLike",
           {{"axis", int64_t{0}}},
           {{dtype, {0, 3}}, {index, {0}, 0, 1}, {dtype, {4, 3}}}});
    }
    for (const DType dtype : {kF32, kI32, DType::kBool}) {
      cases->push_back({"OneHot",
                        {{"depth", int64_t{5}},
                         {"dtype", dtype},
                         {"on_value", 1.0},
                         {"off_value", 0.0}},
                        {{index, {3, 4}, 0, 5}}});
    }
    cases->push_back({"InTopK",
                      {{"k", int64_t{3}}},
                      {{kF32, {50, 10}}, {index, {50}, 0, 10}}});
  }
}

void AddRandomCases(std::vector<OpCase>* cases) {
  const OpInput seed = {kI64, {2}, -1e9, 1e9};
  cases->push_back({"StepSeed", {}, {}});
  cases->push_back({"FoldInSeed", {{"data", int64_t{3}}}, {seed}});
  for (const char* op : {"RandomUniform", "RandomNormal", "TruncatedNormal"}) {
    for (const DType dtype :
         {kF32, DType::kFloat64, DType::kBfloat16, DType::kFloat16}) {
      for (const Shape& shape : Shapes()) {
        cases->push_back({op, {{"dtype", dtype}, {"shape", shape}}, {seed}});
      }
      cases->push_back({op, {{"dtype", dtype}}, {seed, {kF32, {7, 70}}}});
    }
  }
}

void AddImageCases(std::vector<OpCase>* cases) {
  const auto add = [&](const OpInput& images, int64_t height, int64_t width,
                       const std::string& interpolation) {
    const Attributes attributes = {
        {"height", height}, {"width", width}, {"interpolation", interpolation}};
    cases->push_back({"ResizeImage", attributes, {images}});
    if (!IsFloating(images.dtype)) return;
    const Shape& shape = images.shape;
    cases->push_back(
        {"ResizeImageGrad",
         attributes,
         {{images.dtype, {shape.dim(0), height, width, shape.dim(3)}},
          images}});
  };
  for (const DType dtype :
       {kF32, DType::kFloat64, DType::kBfloat16, DType::kFloat16}) {
    for (const int64_t channels : {1, 3, 5}) {
      add({dtype, {2, 5, 7, channels}}, 11, 4, "bilinear");
      add({dtype, {2, 5, 7, channels}}, 3, 9, "nearest");
    }
    add({dtype, {0, 5, 7, 3}}, 2, 2, "bilinear");
    add({dtype, {1, 4, 4, 3}}, 4, 4, "bilinear");
    add({dtype, {1, 1, 1, 2}}, 3, 5, "bilinear");
    for (const char* op : {"ImageTransform", "ImageTransformGrad"}) {
      for (const char* mode : {"constant", "nearest", "reflect", "wrap"}) {
        for (const char* interpolation : {"bilinear", "nearest"}) {
          cases->push_back({op,
                            {{"interpolation", std::string(interpolation)},
                             {"fill_mode", std::string(mode)},
                             {"fill_value", 2.0}},
                            {{dtype, {3, 5, 4, 2}}, {kF32, {3, 8}, -1, 1}}});
        }
      }
    }
  }
  add({DType::kUint8, {2, 5, 7, 3}, 0, 255}, 8, 3, "nearest");
}

void AddSortCases(std::vector<OpCase>* cases) {
  for (const DType dtype : NumberTypes()) {
    // The last rows are longer than one sort of a device handles.
    for (const Shape& rows : {Shape{5}, {3, 17}, {2, 3, 4}, {0, 4}, {2, 333}}) {
      const OpInput x = {dtype, rows, 0, 9};
      for (const bool smallest : {false, true}) {
        for (const int64_t k :
             {int64_t{0}, int64_t{1}, rows.dim(rows.rank() - 1)}) {
          cases->push_back({"TopK", {{"k", k}, {"smallest", smallest}}, {x}});
        }
      }
      Shape few = rows;
      few.set_dim(rows.rank() - 1, 3);
      const OpInput indices = {kI64, few, 0, 4};
      cases->push_back({"TakeAlongRows", {}, {x, indices}});
      cases->push_back(
          {"AddAlongRowsLike", {}, {{dtype, few, 0, 9}, indices, x}});
    }
  }
}

void AddCheckCases(std::vector<OpCase>* cases) {
  for (const DType dtype :
       {kF32, kI64, DType::kBfloat16, DType::kFloat16, DType::kBool}) {
    const OpInput x = {dtype, {2, 3}, 0, 2};
    cases->push_back({"Print",
                      {{"label", std::string("x")}, {"summarize", int64_t{2}}},
                      {x}});
    cases->push_back({"Assert",
                      {{"message", std::string("is wrong")}},
                      {x, {DType::kBool, {0}}}});
  }
}

void AddReplicaCases(std::vector<OpCase>* cases) {
  cases->push_back({"ReplicaId", {}, {}});
  cases->push_back({"ReplicaCount", {}, {}});
  for (const DType dtype : {kF32, kI64, DType::kBfloat16, DType::kFloat16}) {
    for (const Shape& shape : {Shape{0, 3}, Shape{5, 17}}) {
      cases->push_back({"AllReduce",
                        {{"reduction", std::string("mean")}},
                        {{dtype, shape}}});
      cases->push_back({"AllGather", {}, {{dtype, shape}}});
      cases->push_back({"ReplicaPart", {}, {{dtype, shape}, {dtype, shape}}});
    }
  }
}

void AddStringCases(std::vector<OpCase>* cases) {
  constexpr DType kString = DType::kString;
  const Attributes words = {{"vocabulary", Tensor::FromSpan<std::string>(
                                               {2}, {"Word 1!", "Word 4!"})},
                            {"oov_index", int64_t{1}},
                            {"oov_count", int64_t{3}},
                            {"mask", Tensor::Scalar<std::string>("Word 2!")},
                            {"mask_index", int64_t{0}}};
  const auto with = [](Attributes attributes, const Attributes& more) {
    for (const auto& [name, value] : more.values()) {
      attributes.Set(name, value);
    }
    return attributes;
  };
  const Attributes split = {{"standardize", std::string("lower")},
                            {"split", std::string("whitespace")},
                            {"ngrams", Axes{1, 2}}};
  for (const Shape& shape : Shapes()) {
    cases->push_back({"LookupIndex", words, {{kString, shape}}});
    cases->push_back(
        {"LookupCategory",
         with(words, {{"other", Tensor::Scalar<std::string>("?")}}),
         {{kI64, shape}}});
    for (const DType dtype : {kString, kI32, kI64}) {
      cases->push_back({"HashBucket",
                        {{"bucket_count", int64_t{7}}, {"salt", Axes{1, 2}}},
                        {{dtype, shape}}});
    }
    cases->push_back({"CrossHash",
                      {{"bucket_count", int64_t{7}}},
                      {{kString, shape}, {kI32, shape}, {kI64, shape}}});
  }
  for (const int64_t rows : {0, 5}) {
    const OpInput texts = {kString, Shape({rows, 1})};
    cases->push_back(
        {"Tokens", with(split, {{"length", int64_t{2}}}), {texts}});
    cases->push_back({"CountTokens",
                      with(with(words, split), {{"depth", int64_t{6}}}),
                      {texts}});
  }
}

}  // namespace

std::vector<OpCase> AllKernelCases() {
  std::vector<OpCase> cases;
  AddElementwiseCases(&cases);
  AddBroadcastCases(&cases);
  AddRowCases(&cases);
  AddReductionCases(&cases);
  AddCumSumCases(&cases);
  AddMatMulCases(&cases);
  AddShapeCases(&cases);
  AddIndexCases(&cases);
  AddImageCases(&cases);
  AddConvCases(&cases);
  AddPoolCases(&cases);
  AddNormalizationCases(&cases);
  AddLayerNormCases(&cases);
  AddRandomCases(&cases);
  AddRecurrenceCases(&cases);
  AddControlFlowCases(&cases);
  AddSortCases(&cases);
  AddCheckCases(&cases);
  AddReplicaCases(&cases);
  AddStringCases(&cases);
  return cases;
}

}  // namespace muster
