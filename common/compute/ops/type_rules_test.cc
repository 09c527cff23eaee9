#include "common/compute/ops/type_rules.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "common/compute/graph/op_registry.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/testing/control_flow_type_cases.h"
#include "common/compute/ops/testing/image_type_cases.h"
#include "common/compute/ops/testing/sequence_type_cases.h"
#include "common/compute/ops/testing/string_type_cases.h"
#include "common/compute/ops/testing/type_case_names.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// The type rules of all ops: valid types with extents known and unknown, and
// invalid ones.
namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using type_case_names::B;
using type_case_names::F;
using type_case_names::I;
using type_case_names::List;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

const Attributes& Table() {
  static const Attributes* const kTable = new Attributes(
      {{"variable", std::string("v")}, {"dtype", F}, {"shape", Shape({4, 2})}});
  return *kTable;
}

Attributes Axes(List axes, bool keep_dims = false) {
  return {{"axes", axes}, {"keep_dims", keep_dims}};
}

Attributes Axis(int64_t axis) { return {{"axis", axis}}; }

void AddElementwise(std::vector<TypeCase>* cases) {
  for (const char* op :
       {"Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"}) {
    cases->push_back({op, {{F, {2, 1}}, {F, {-1}}}, {}, "bool[2,?]"});
    cases->push_back(
        {op, {{F, {2, 3}}, {F, {2}}}, {}, "! cannot be broadcast"});
    cases->push_back({op, {{F, {2}}, {I, {2}}}, {}, "! must be float32"});
  }
  for (const char* op : {"LogicalAnd", "LogicalOr"}) {
    cases->push_back({op, {{B, {2, 1}}, {B, {3}}}, {}, "bool[2,3]"});
    cases->push_back({op, {{B, {2}}, {F, {2}}}, {}, "! must hold bool"});
  }
  cases->push_back({"LogicalNot", {{B, {2}}}, {}, "bool[2]"});
  cases->push_back({"LogicalNot", {{I, {2}}}, {}, "! must hold bool"});
  cases->push_back(
      {"Select", {{B, {2, 1}}, {F, {3}}, {F, {}}}, {}, "float32[2,3]"});
  cases->push_back(
      {"Select", {{F, {2}}, {F, {2}}, {F, {2}}}, {}, "! must hold bool"});
  cases->push_back(
      {"Select", {{B, {2}}, {F, {2}}, {I, {2}}}, {}, "! must be float32"});
}

void AddPrograms(std::vector<TypeCase>* cases) {
  const std::string encoded =
      R"({"name": "mean", "inputs": ["float32[?,3]"], "outputs": ["float32[?]"],
          "gradient_inputs": [0], "gradient_outputs": 1,
          "variants": [{"inputs": ["float32[4,3]"], "outputs": ["float32[4]"],
                        "stablehlo": "", "gradient_stablehlo": ""}]})";
  const Attributes forward = {{"program", encoded}, {"is_gradient", false}};
  const Attributes gradient = {{"program", encoded}, {"is_gradient", true}};
  cases->push_back({"Program", {{F, {-1, 3}}}, forward, "float32[?]"});
  cases->push_back({"Program", {{F, {4, 3}}}, forward, "float32[4]"});
  cases->push_back({"Program", {{F, {0, 3}}}, forward, "float32[0]"});
  cases->push_back(
      {"Program", {{F, {4, 3}}, {F, {4}}}, gradient, "float32[4,3]"});
  cases->push_back({"Program", {{F, {5, 3}}}, forward, "float32[5]"});
  cases->push_back({"Program", {{I, {4, 3}}}, forward, "! takes (float32"});
  cases->push_back({"Program", {{F, {4, 3}}}, {}, "! is_gradient"});
  cases->push_back({"Program",
                    {{F, {4, 3}}},
                    {{"program", std::string("{}")}, {"is_gradient", false}},
                    "! name: is absent"});
}

void AddBroadcast(const std::string& op, std::vector<TypeCase>* cases) {
  cases->push_back({op, {{F, {2, 3}}, {F, {3}}}, {}, "float32[2,3]"});
  cases->push_back({op, {{F, {-1, 3}}, {F, {1}}}, {}, "float32[?,3]"});
  cases->push_back({op, {{F, {-1, 3}}, {F, {7, 1}}}, {}, "float32[7,3]"});
  cases->push_back({op, {{F, {2, 3}}, {F, {2}}}, {}, "! cannot be broadcast"});
  cases->push_back({op, {{F, {2}}, {I, {2}}}, {}, "! must be float32"});
  cases->push_back({op, {{B, {2}}, {B, {2}}}, {}, "! must hold numbers"});
  cases->push_back({op, {{F, {2}}}, {}, "! takes 2 inputs, not 1"});
  cases->push_back(
      {op, {{F, {kMax, 1}}, {F, {1, 3}}}, {}, "! has more than 2^63 elements"});
}

void AddMerged(const std::string& op, std::vector<TypeCase>* cases) {
  cases->push_back({op, {{F, {-1, 3}}, {F, {2, -1}}}, {}, "float32[2,3]"});
  cases->push_back({op, {{F, {2, 3}}, {F, {3}}}, {}, "! must be equal"});
  cases->push_back(
      {op, {{F, {3}}, {DType::kFloat64, {3}}}, {}, "! must be float32"});
}

// Cases of ops that use the shared rules.
void AddSharedRule(const OpSchema& schema, std::vector<TypeCase>* cases) {
  const std::string& op = schema.name;
  if (schema.type_rule == internal::SameNumberRule) {
    cases->push_back({op, {{I, {-1, 3}}}, {}, "int32[?,3]"});
    cases->push_back({op, {{B, {3}}}, {}, "! must hold numbers"});
  } else if (schema.type_rule == internal::SameFloatingRule) {
    cases->push_back({op, {{F, {-1, 3}}}, {}, "float32[?,3]"});
    cases->push_back({op, {{I, {3}}}, {}, "! must hold a floating dtype"});
  } else if (schema.type_rule == internal::SameNumberOrBoolRule) {
    cases->push_back({op, {{B, {-1, 3}}}, {}, "bool[?,3]"});
    cases->push_back(
        {op, {{DType::kString, {3}}}, {}, "! must hold numbers or bool"});
  } else if (schema.type_rule == internal::SameTypeRule) {
    cases->push_back({op, {{B, {-1, 3}}}, {}, "bool[?,3]"});
    cases->push_back({op, {{DType::kString, {3}}}, {}, "string[3]"});
    cases->push_back({op, {{DType::kInvalid, {3}}}, {}, "! must hold"});
  } else if (schema.type_rule == internal::BroadcastNumberRule) {
    AddBroadcast(op, cases);
  } else if (schema.type_rule == internal::MergedFloatingRule &&
             schema.input_count_max == 2) {
    AddMerged(op, cases);
  }
}

void AddUnary(std::vector<TypeCase>* cases) {
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    AddSharedRule(*schema, cases);
  }
  for (const char* op : {"Gelu", "Softmax", "LogSoftmax"}) {
    cases->push_back({op, {{F, {-1, 3}}}, {}, "float32[?,3]"});
    cases->push_back({op, {{I, {3}}}, {}, "! must hold a floating dtype"});
  }
  for (const char* op : {"IsNan", "IsFinite"}) {
    cases->push_back({op, {{F, {-1, 3}}}, {}, "bool[?,3]"});
    cases->push_back({op, {{I, {3}}}, {}, "! must hold a floating dtype"});
  }
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    cases->push_back({op, {{F, {}}}, {}, "! must have rank 1 or more, not 0"});
  }
  for (const char* op : {"LeakyRelu", "Elu"}) {
    cases->push_back({op, {{F, {3}}}, {{"alpha", 0.1}}, "float32[3]"});
    cases->push_back({op, {{F, {3}}}, {}, "! attribute \"alpha\""});
    cases->push_back({op, {{I, {3}}}, {{"alpha", 0.1}}, "! floating dtype"});
  }
  cases->push_back(
      {"SoftmaxGrad", {{F, {}}, {F, {}}}, {}, "! must have rank 1 or more"});
  for (const char* op : {"ReluGrad", "Relu6Grad", "GeluGrad", "SoftmaxGrad"}) {
    AddMerged(op, cases);
  }
  for (const char* op : {"LeakyReluGrad", "EluGrad"}) {
    const Attributes alpha = {{"alpha", 0.1}};
    cases->push_back({op, {{F, {-1}}, {F, {3}}}, alpha, "float32[3]"});
    cases->push_back({op, {{F, {3}}, {F, {4}}}, alpha, "! must be equal"});
  }
  cases->push_back({"Cast", {{B, {-1}}}, {{"dtype", F}}, "float32[?]"});
  cases->push_back({"Cast", {{F, {2}}}, {}, "! attribute \"dtype\""});
  cases->push_back({"Cast",
                    {{F, {2}}},
                    {{"dtype", DType::kString}},
                    "! numbers cannot be converted to string"});
}

void AddMatMulAndReductions(std::vector<TypeCase>* cases) {
  const Attributes plain = {{"transpose_a", false}, {"transpose_b", false}};
  const Attributes turned = {{"transpose_a", true}, {"transpose_b", true}};
  cases->push_back(
      {"MatMul", {{F, {-1, 4}}, {F, {4, 2}}}, plain, "float32[?,2]"});
  cases->push_back(
      {"MatMul", {{F, {4, 3}}, {F, {2, -1}}}, turned, "float32[3,2]"});
  cases->push_back({"MatMul",
                    {{F, {5, 1, 3, 4}}, {F, {6, 4, 2}}},
                    plain,
                    "float32[5,6,3,2]"});
  cases->push_back({"MatMul",
                    {{F, {3, 5}}, {F, {4, 2}}},
                    plain,
                    "! the inner extents, 5 of input 0 and 4 of input 1"});
  cases->push_back({"MatMul",
                    {{F, {5, 3, 4}}, {F, {6, 4, 2}}},
                    plain,
                    "! cannot be broadcast"});
  cases->push_back(
      {"MatMul", {{F, {4}}, {F, {4, 2}}}, plain, "! must have rank 2 or more"});
  cases->push_back({"MatMul",
                    {{F, {3, 4}}, {F, {4, 2}}},
                    {{"transpose_a", int64_t{1}}},
                    "! attribute \"transpose_a\""});
  for (const char* op : {"Sum", "Mean", "Max", "Min", "Prod"}) {
    cases->push_back({op, {{F, {2, -1, 4}}}, Axes({0, -1}), "float32[?]"});
    cases->push_back({op, {{F, {2, -1}}}, Axes({1}, true), "float32[2,1]"});
    cases->push_back({op, {{F, {2, 3}}}, Axes({}), "float32[2,3]"});
    cases->push_back({op, {{F, {2, 3}}}, Axes({2}), "! is out of range"});
    cases->push_back({op, {{F, {2, 3}}}, Axes({1, -1}), "! axis 1 twice"});
    cases->push_back({op, {{F, {2, 3}}}, {}, "! attribute \"axes\""});
    cases->push_back({op, {{B, {2, 3}}}, Axes({0}), "! must hold numbers"});
  }
  for (const char* op : {"ArgMax", "ArgMin"}) {
    cases->push_back({op, {{F, {2, -1, 4}}}, Axis(-1), "int64[2,?]"});
    cases->push_back({op, {{F, {2, 3}}}, Axis(2), "! is out of range"});
    cases->push_back({op, {{F, {2, 0}}}, Axis(1), "! is empty"});
  }
  cases->push_back({"CountAlong", {{F, {2, -1}}}, Axes({1}), "float32[]"});
  cases->push_back({"CountAlong", {{F, {2}}}, Axes({1}), "! is out of range"});
  const auto cumulated = [](int64_t axis) -> Attributes {
    return {{"axis", axis}, {"exclusive", false}, {"reverse", true}};
  };
  cases->push_back({"CumSum", {{I, {2, -1}}}, cumulated(-1), "int32[2,?]"});
  cases->push_back({"CumSum", {{F, {2}}}, cumulated(1), "! is out of range"});
  cases->push_back({"CumSum", {{B, {2}}}, cumulated(0), "! must hold numbers"});
  cases->push_back(
      {"CumSum", {{F, {2}}}, Axis(0), "! attribute \"exclusive\""});
  cases->push_back({"ProdOfOthers", {{F, {2, -1}}}, Axes({1}), "float32[2,?]"});
  cases->push_back({"ProdOfOthers", {{I, {2}}}, Axes({0}), "! floating dtype"});
}

void AddShapes(std::vector<TypeCase>* cases) {
  const auto shape = [](List dims) -> Attributes { return {{"shape", dims}}; };
  cases->push_back({"Reshape", {{F, {2, 6}}}, shape({3, -1}), "float32[3,4]"});
  cases->push_back({"Reshape", {{F, {-1, 6}}}, shape({-1, 3}), "float32[?,3]"});
  cases->push_back({"Reshape", {{F, {2, 6}}}, shape({5}), "! do not fit"});
  cases->push_back({"Reshape", {{F, {2, 6}}}, shape({5, -1}), "! do not fit"});
  cases->push_back({"Reshape", {{F, {0}}}, shape({0, -1}), "! do not fit"});
  cases->push_back({"Reshape", {{F, {6}}}, shape({-1, -1}), "! one -1"});
  cases->push_back({"Reshape", {{F, {6}}}, shape({-2, 3}), "! cannot be -2"});
  cases->push_back({"Reshape", {{F, {6}}}, shape(List(9, 1)), "! at most 8"});
  cases->push_back(
      {"Reshape", {{F, {-1}}}, shape({kMax, 3}), "! more than 2^63"});
  cases->push_back(
      {"ReshapeLike", {{F, {2, 6}}, {I, {3, 4}}}, {}, "float32[3,4]"});
  cases->push_back(
      {"ReshapeLike", {{F, {2, 6}}, {I, {3, 5}}}, {}, "! do not fit"});
  cases->push_back({"ExpandDims", {{F, {2, -1}}}, Axis(-1), "float32[2,?,1]"});
  cases->push_back({"ExpandDims", {{F, {2}}}, Axis(2), "! is out of range"});
  cases->push_back(
      {"ExpandDims", {{F, {1, 1, 1, 1, 1, 1, 1, 1}}}, Axis(0), "! at most 8"});
  const auto axes = [](List list) -> Attributes { return {{"axes", list}}; };
  cases->push_back({"Squeeze", {{F, {1, 2, -1}}}, axes({0, -1}), "float32[2]"});
  cases->push_back({"Squeeze", {{F, {1, 2}}}, axes({1}), "! must have extent"});
  const auto permutation = [](List list) -> Attributes {
    return {{"permutation", list}};
  };
  cases->push_back({"Reverse", {{F, {2, -1}}}, Axes({-1, 0}), "float32[2,?]"});
  cases->push_back({"Reverse", {{F, {2}}}, Axes({1}), "! axis"});
  cases->push_back({"Transpose",
                    {{F, {2, -1, 4}}},
                    permutation({2, 0, 1}),
                    "float32[4,2,?]"});
  cases->push_back(
      {"Transpose", {{F, {2, 3}}}, permutation({0}), "! must name all 2 axes"});
  cases->push_back(
      {"Transpose", {{F, {2, 3}}}, permutation({0, 0}), "! axis 0 twice"});
  cases->push_back(
      {"BroadcastTo", {{F, {-1, 1}}}, shape({4, 2, 3}), "float32[4,2,3]"});
  cases->push_back(
      {"BroadcastTo", {{F, {2}}}, shape({3}), "! cannot be broadcast to"});
  cases->push_back({"BroadcastTo", {{F, {2}}}, shape({-1}), "! cannot be -1"});
  cases->push_back(
      {"BroadcastLike", {{F, {1}}, {I, {-1, 3}}}, {}, "float32[?,3]"});
  cases->push_back(
      {"BroadcastLike", {{F, {2}}, {I, {3}}}, {}, "! cannot be broadcast to"});
  cases->push_back({"SumLike", {{F, {-1, 3}}, {F, {3}}}, {}, "float32[3]"});
  cases->push_back(
      {"SumLike", {{F, {3}}, {F, {2}}}, {}, "! cannot be broadcast to"});
}

void AddSlices(std::vector<TypeCase>* cases) {
  cases->push_back(
      {"Concat", {{F, {2, -1}}, {F, {-1, 3}}}, Axis(1), "float32[2,?]"});
  cases->push_back(
      {"Concat", {{F, {2, 1}}, {F, {2, 3}}}, Axis(-1), "float32[2,4]"});
  cases->push_back({"Concat", {{F, {2}}, {F, {3}}}, Axis(1), "! out of range"});
  cases->push_back(
      {"Concat", {{F, {2, 1}}, {F, {3, 1}}}, Axis(1), "! must be equal"});
  cases->push_back(
      {"Concat", {{F, {2, 1}}, {F, {3}}}, Axis(0), "! must have rank 2"});
  cases->push_back(
      {"Concat", {{F, {kMax}}, {F, {kMax}}}, Axis(0), "! more than 2^63"});
  const auto split = [](List sizes, int64_t axis) -> Attributes {
    return {{"sizes", sizes}, {"axis", axis}};
  };
  cases->push_back(
      {"Split", {{F, {2, 5}}}, split({1, -1}, 1), "float32[2,1] float32[2,4]"});
  cases->push_back(
      {"Split", {{F, {-1}}}, split({1, -1}, 0), "float32[1] float32[?]"});
  cases->push_back({"Split", {{F, {5}}}, split({1, 3}, 0), "! adds up to 4"});
  cases->push_back({"Split", {{F, {5}}}, split({9, -1}, 0), "! adds up to 9"});
  cases->push_back({"Split", {{F, {5}}}, split({-1, -1}, 0), "! one -1"});
  cases->push_back({"Split", {{F, {5}}}, split({}, 0), "! must hold 1 to"});
  cases->push_back(
      {"Split", {{F, {-1}}}, split({kMax, kMax}, 0), "! more than 2^63"});
  cases->push_back({"SplitLike",
                    {{F, {2, -1}}, {F, {-1, 1}}, {F, {2, 4}}},
                    Axis(1),
                    "float32[2,1] float32[2,4]"});
  cases->push_back({"SplitLike",
                    {{F, {2, 5}}, {F, {2, 1}}, {F, {2, 3}}},
                    Axis(1),
                    "! must be equal"});
  cases->push_back(
      {"Stack", {{F, {2, -1}}, {F, {-1, 3}}}, Axis(1), "float32[2,2,3]"});
  cases->push_back({"Stack", {{F, {2}}, {F, {3}}}, Axis(0), "! must be equal"});
  const auto unstack = [](int64_t count, int64_t axis) -> Attributes {
    return {{"count", count}, {"axis", axis}};
  };
  cases->push_back(
      {"Unstack", {{F, {2, -1}}}, unstack(2, 1), "float32[2] float32[2]"});
  cases->push_back({"Unstack", {{F, {2}}}, unstack(3, 0), "! must be equal"});
  cases->push_back(
      {"Unstack", {{F, {-1}}}, unstack(kMax, 0), "! must be 1 to"});
  cases->push_back({"Unstack", {{F, {-1}}}, unstack(0, 0), "! must be 1 to"});
  const auto slice = [](List begin, List size) -> Attributes {
    return {{"begin", begin}, {"size", size}};
  };
  cases->push_back(
      {"Slice", {{F, {-1, 5}}}, slice({1, 2}, {-1, -1}), "float32[?,3]"});
  cases->push_back({"Slice", {{F, {5}}}, slice({1}, {5}), "! are outside of"});
  cases->push_back({"Slice", {{F, {5}}}, slice({6}, {-1}), "! are outside of"});
  cases->push_back({"Slice", {{F, {5}}}, slice({-1}, {1}), "! are outside of"});
  cases->push_back(
      {"Slice", {{F, {5}}}, slice({kMax}, {kMax}), "! outside of"});
  cases->push_back({"Slice", {{F, {5}}}, slice({}, {1}), "! must hold 1"});
  const auto begin = [](List list) -> Attributes { return {{"begin", list}}; };
  cases->push_back(
      {"SliceLike", {{F, {5}}, {F, {-1}}}, begin({2}), "float32[?]"});
  cases->push_back(
      {"SliceLike", {{F, {5}}, {F, {4}}}, begin({2}), "! are outside of"});
  cases->push_back({"PadLike", {{F, {2}}, {F, {5}}}, begin({2}), "float32[5]"});
  cases->push_back(
      {"PadLike", {{F, {2}}, {F, {3, 1}}}, begin({2}), "! the same rank"});
  const auto pad = [](List list) -> Attributes { return {{"paddings", list}}; };
  cases->push_back({"Pad", {{F, {-1, 2}}}, pad({1, 0, 2, 3}), "float32[?,7]"});
  cases->push_back({"Pad", {{F, {2}}}, pad({1}), "! must hold 2"});
  cases->push_back({"Pad", {{F, {2}}}, pad({-1, 0}), "! must not be negative"});
  cases->push_back({"Pad", {{F, {2}}}, pad({kMax, 1}), "! more than 2^63"});
}

void AddIndices(std::vector<TypeCase>* cases) {
  cases->push_back(
      {"Gather", {{F, {5, 3}}, {I, {-1, 2}}}, Axis(0), "float32[?,2,3]"});
  cases->push_back({"Gather", {{F, {5, 3}}, {I, {}}}, Axis(-1), "float32[5]"});
  cases->push_back(
      {"Gather", {{F, {5}}, {F, {2}}}, Axis(0), "! int32 or int64"});
  cases->push_back({"Gather", {{F, {}}, {I, {2}}}, Axis(0), "! out of range"});
  cases->push_back({"ScatterRowsLike",
                    {{F, {-1, 3}}, {I, {2}}, {F, {5, 3}}},
                    Axis(0),
                    "float32[5,3]"});
  cases->push_back({"ScatterRowsLike",
                    {{F, {2, 4}}, {I, {2}}, {F, {5, 3}}},
                    Axis(0),
                    "! must have shape [2,3], not [2,4]"});
  const auto one_hot = [](int64_t depth) -> Attributes {
    return {{"depth", depth}, {"dtype", F}};
  };
  cases->push_back({"OneHot", {{I, {-1}}}, one_hot(3), "float32[?,3]"});
  cases->push_back(
      {"OneHot", {{I, {2}}}, one_hot(-3), "! must not be negative"});
  cases->push_back({"OneHot", {{I, {2}}}, one_hot(kMax), "! more than 2^63"});
  cases->push_back({"OneHot", {{F, {2}}}, one_hot(3), "! int32 or int64"});
  const Attributes k = {{"k", int64_t{2}}};
  cases->push_back({"InTopK", {{F, {-1, 5}}, {I, {4}}}, k, "bool[4]"});
  cases->push_back({"InTopK", {{F, {3, 5}}, {I, {4}}}, k, "! must be equal"});
  cases->push_back({"InTopK", {{F, {5}}, {I, {4}}}, k, "! must have rank 2"});
  cases->push_back(
      {"SoftmaxCrossEntropy", {{F, {-1, 3}}, {F, {2, -1}}}, {}, "float32[2]"});
  cases->push_back(
      {"SoftmaxCrossEntropy", {{F, {2, 3}}, {F, {2}}}, {}, "! must be equal"});
  cases->push_back({"SparseSoftmaxCrossEntropy",
                    {{F, {-1, 3}}, {I, {2}}},
                    {},
                    "float32[2]"});
  cases->push_back({"SparseSoftmaxCrossEntropy",
                    {{F, {4, 3}}, {I, {2}}},
                    {},
                    "! must be equal"});
  cases->push_back({"SparseSoftmaxCrossEntropy",
                    {{F, {2, 3}}, {F, {2}}},
                    {},
                    "! int32 or int64"});
  cases->push_back({"SoftmaxCrossEntropyGrad",
                    {{F, {-1, 3}}, {F, {-1, 3}}, {F, {2}}},
                    {},
                    "float32[2,3]"});
  cases->push_back({"SoftmaxCrossEntropyGrad",
                    {{F, {2, 3}}, {F, {2, 3}}, {F, {4}}},
                    {},
                    "! must be equal"});
  cases->push_back({"SparseSoftmaxCrossEntropyGrad",
                    {{F, {-1, 3}}, {I, {2}}, {F, {-1}}},
                    {},
                    "float32[2,3]"});
  cases->push_back({"SparseSoftmaxCrossEntropyGrad",
                    {{F, {2, 3}}, {I, {2}}, {I, {2}}},
                    {},
                    "! must be float32"});
}

void AddRandomAndVariables(std::vector<TypeCase>* cases) {
  const TensorType seed = {DType::kInt64, {2}};
  cases->push_back({"StepSeed", {}, {}, "int64[2]"});
  cases->push_back({"StepSeed", {seed}, {}, "! takes 0 inputs, not 1"});
  cases->push_back({"FoldInSeed", {seed}, {{"data", int64_t{1}}}, "int64[2]"});
  cases->push_back(
      {"FoldInSeed", {{I, {2}}}, {{"data", int64_t{1}}}, "! must be a seed"});
  for (const char* op : {"RandomUniform", "RandomNormal", "TruncatedNormal"}) {
    const Attributes shaped = {{"dtype", F}, {"shape", Shape({2, 3})}};
    cases->push_back({op, {seed}, shaped, "float32[2,3]"});
    cases->push_back({op, {seed, {I, {-1}}}, {{"dtype", F}}, "float32[?]"});
    cases->push_back({op, {seed, {I, {2}}}, shaped, "! not both"});
    cases->push_back({op, {seed}, {{"dtype", F}}, "! must be given"});
    cases->push_back(
        {op, {seed, {I, {2}}}, {{"dtype", I}}, "! floating dtype"});
    cases->push_back(
        {op, {seed}, {{"dtype", F}, {"shape", Shape({-1})}}, "! cannot be -1"});
  }
  const Attributes& table = Table();
  cases->push_back({"ReadVariable", {}, table, "float32[4,2]"});
  cases->push_back({"ReadVariable", {}, {}, "! attribute \"variable\""});
  cases->push_back({"GatherVariable", {{I, {-1, 3}}}, table, "float32[?,3,2]"});
  cases->push_back({"GatherVariable", {{F, {3}}}, table, "! int32 or int64"});
  for (const char* op : {"AssignVariable", "AssignAddVariable",
                         "AssignSubVariable", "ApplyGradient"}) {
    cases->push_back({op, {{F, {-1, 2}}}, table, ""});
    cases->push_back({op,
                      {{F, {4, 3}}},
                      table,
                      "! must be float32[4,2] for variable \"v\""});
  }
  for (const char* op :
       {"ScatterUpdateVariable", "ScatterAddVariable", "ScatterSubVariable"}) {
    cases->push_back({op, {{I, {3}}, {F, {3, 2}}}, table, ""});
    cases->push_back({op, {{I, {3}}, {F, {2, 2}}}, table, "! float32[3,2]"});
    cases->push_back({op, {{I, {1, 3}}, {F, {1, 3, 2}}}, table, "! rank 1"});
  }
  cases->push_back(
      {"ApplySparseGradient", {{F, {-1, 2}}, {I, {-1}}}, table, ""});
  cases->push_back({"ApplySparseGradient",
                    {{F, {3, 1}}, {I, {3}}},
                    table,
                    "! must be float32[3,2]"});
}

void AddReplicas(std::vector<TypeCase>* cases) {
  for (const char* op : {"ReplicaId", "ReplicaCount"}) {
    cases->push_back({op, {}, {}, "int32[]"});
    cases->push_back({op, {{F, {}}}, {}, "! takes 0 inputs, not 1"});
  }
  const Attributes mean = {{"reduction", std::string("mean")}};
  cases->push_back({"AllReduce", {{F, {-1, 3}}}, mean, "float32[?,3]"});
  cases->push_back({"AllReduce", {{I, {}}}, mean, "int32[]"});
  cases->push_back({"AllReduce", {{B, {2}}}, mean, "! "});
  cases->push_back({"AllReduce", {{DType::kUint8, {2}}}, mean, "! uint8"});
  cases->push_back({"AllReduce", {{F, {2}}}, {}, "! \"reduction\""});
  cases->push_back({"AllReduce",
                    {{F, {2}}},
                    {{"reduction", std::string("median")}},
                    "! not \"median\""});
  cases->push_back({"AllGather", {{F, {-1, 3}}}, {}, "float32[?,3]"});
  cases->push_back({"AllGather", {{B, {2, -1}}}, {}, "bool[?,?]"});
  cases->push_back({"AllGather", {{F, {}}}, {}, "! rank"});
  cases->push_back({"AllGather", {{DType::kString, {2}}}, {}, "! string"});
  cases->push_back(
      {"ReplicaPart", {{F, {-1, 3}}, {F, {2, 3}}}, {}, "float32[2,3]"});
  cases->push_back({"ReplicaPart", {{F, {3}}, {I, {-1}}}, {}, "float32[?]"});
  cases->push_back({"ReplicaPart", {{F, {3}}, {I, {}}}, {}, "! rank"});
  cases->push_back({"SetLossDenominator", {{F, {}}}, {}, ""});
  cases->push_back({"SetLossDenominator", {{F, {1}}}, {}, "! float32 scalar"});
  cases->push_back({"SetLossDenominator", {{I, {}}}, {}, "! float32 scalar"});
}

std::vector<TypeCase> AllCases() {
  std::vector<TypeCase> cases;
  AddElementwise(&cases);
  AddUnary(&cases);
  AddMatMulAndReductions(&cases);
  AddShapes(&cases);
  AddSlices(&cases);
  AddIndices(&cases);
  AddRandomAndVariables(&cases);
  AddReplicas(&cases);
  AddPrograms(&cases);
  for (const TypeCase& one : ImageTypeCases()) cases.push_back(one);
  for (const TypeCase& one : ControlFlowTypeCases()) cases.push_back(one);
  for (const TypeCase& one : SequenceTypeCases()) cases.push_back(one);
  for (const TypeCase& one : StringTypeCases()) cases.push_back(one);
  return cases;
}

std::string Join(const std::vector<TensorType>& types) {
  std::string text;
  for (const TensorType& type : types) {
    text += (text.empty() ? "" : " ") + type.ToString();
  }
  return text;
}

bool ExpectsError(const TypeCase& one) {
  return one.expected.rfind("! ", 0) == 0;
}

TEST(TypeRulesTest, ReturnTheTypesOfTheOutputs) {
  for (const TypeCase& one : AllCases()) {
    if (ExpectsError(one)) continue;
    const auto types = BuiltinOps().InferTypes(one.op, "node",
                                               {.inputs = one.inputs,
                                                .attributes = one.attributes,
                                                .subgraphs = one.subgraphs});
    ASSERT_THAT(types, IsOk()) << one.op;
    EXPECT_EQ(Join(*types), one.expected) << one.op << " " << Join(one.inputs);
  }
}

TEST(TypeRulesTest, ErrorsNameTheOpTheNodeAndTheInputs) {
  for (const TypeCase& one : AllCases()) {
    if (!ExpectsError(one)) continue;
    const auto types = BuiltinOps().InferTypes(one.op, "layer/node",
                                               {.inputs = one.inputs,
                                                .attributes = one.attributes,
                                                .subgraphs = one.subgraphs});
    EXPECT_THAT(types, StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr(one.op + " \"layer/node\""),
                                      HasSubstr(one.expected.substr(2)))))
        << one.op << " " << Join(one.inputs);
    const bool is_about_count =
        one.expected.find("inputs, not") != std::string::npos;
    if (types.ok() || is_about_count) continue;
    for (const TensorType& input : one.inputs) {
      EXPECT_THAT(std::string(types.status().message()),
                  HasSubstr(input.ToString()));
    }
  }
}

TEST(TypeRulesTest, EveryOpIsTestedWithValidAndInvalidTypes) {
  std::set<std::string> accepted;
  std::set<std::string> refused;
  for (const TypeCase& one : AllCases()) {
    (ExpectsError(one) ? refused : accepted).insert(one.op);
  }
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    if (schema->reads == OpReads::kGraph) continue;
    EXPECT_TRUE(accepted.contains(schema->name)) << schema->name;
    EXPECT_TRUE(refused.contains(schema->name)) << schema->name;
  }
}

// Plans need known output extents if all input extents are known.
TEST(TypeRulesTest, KnownInputsGiveKnownOutputs) {
  for (const TypeCase& one : AllCases()) {
    const bool are_known =
        std::all_of(one.inputs.begin(), one.inputs.end(),
                    [](const TensorType& t) { return t.shape.IsFullyKnown(); });
    const std::vector<std::vector<TensorType>> replica_inputs = {one.inputs};
    const auto types =
        BuiltinOps().InferTypes(one.op, "node",
                                {.inputs = one.inputs,
                                 .attributes = one.attributes,
                                 .replica_inputs = replica_inputs,
                                 .subgraphs = one.subgraphs});
    if (!are_known || !types.ok()) continue;
    for (const TensorType& type : *types) {
      EXPECT_TRUE(type.shape.IsFullyKnown()) << one.op << Join(*types);
    }
  }
}

}  // namespace
}  // namespace muster
