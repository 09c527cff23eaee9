#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"

// Every op that TensorFlow has too, against what TensorFlow computed.
namespace muster {
namespace {

using Json = nlohmann::json;
using Values = std::vector<Value>;
// From a case's configuration and tensors, in the order of the op's operands,
// to its outputs in the order of their names.
using Trace = std::function<Values(const Json& config, const Values& x)>;

std::vector<int64_t> List(const Json& config, const char* name) {
  const Json& value = config.at(name);
  if (value.is_number()) return {value.get<int64_t>()};
  std::vector<int64_t> flat;
  for (const Json& item : value) {
    if (item.is_array()) {
      for (const Json& inner : item) flat.push_back(inner.get<int64_t>());
    } else {
      flat.push_back(item.get<int64_t>());
    }
  }
  return flat;
}

Trace Unary(Value (*function)(Value)) {
  return [function](const Json&, const Values& x) -> Values {
    return {function(x[0])};
  };
}

Trace Binary(Value (*function)(Value, Value)) {
  return [function](const Json&, const Values& x) -> Values {
    return {function(x[0], x[1])};
  };
}

Trace Reduce(Value (*function)(Value, std::vector<int64_t>, ReduceOptions)) {
  return [function](const Json& config, const Values& x) -> Values {
    const bool keep_dims = config.value("keep_dims", false);
    return {function(x[0], List(config, "axis"), {.keep_dims = keep_dims})};
  };
}

Trace Arg(Value (*function)(Value, int64_t)) {
  return [function](const Json& config, const Values& x) -> Values {
    return {function(x[0], config.at("dimension").get<int64_t>())};
  };
}

// A loss of two operands, and what TensorFlow calls backprop: the gradient of
// the logits for a loss gradient of 1.
Trace Loss(Value (*function)(Value, Value), std::string gradient_op) {
  return [function, gradient_op](const Json&, const Values& x) -> Values {
    const Value loss = function(x[0], x[1]);
    const Value backprop =
        loss.builder()->Op(gradient_op, {x[0], x[1], OnesLike(loss)});
    return {backprop, loss};
  };
}

void AddBinary(std::map<std::string, Trace>* traces) {
  std::map<std::string, Trace>& t = *traces;
  t["AddV2"] = t["BiasAdd"] = Binary(Add);
  t["Sub"] = Binary(Sub);
  t["Mul"] = Binary(Mul);
  // On integers TensorFlow calls these by different names.
  t["RealDiv"] = t["Div"] = t["TruncateDiv"] = Binary(Div);
  t["FloorDiv"] = Binary(FloorDiv);
  t["FloorMod"] = Binary(Mod);
  t["Pow"] = Binary(Pow);
  t["Maximum"] = Binary(Maximum);
  t["Minimum"] = Binary(Minimum);
  t["SquaredDifference"] = Binary(SquaredDifference);
  t["Equal"] = Binary(Equal);
  t["NotEqual"] = Binary(NotEqual);
  t["Less"] = Binary(Less);
  t["LessEqual"] = Binary(LessEqual);
  t["Greater"] = Binary(Greater);
  t["GreaterEqual"] = Binary(GreaterEqual);
  t["LogicalAnd"] = Binary(LogicalAnd);
  t["LogicalOr"] = Binary(LogicalOr);
  t["nn.sigmoid_cross_entropy_with_logits"] = [](const Json&,
                                                 const Values& x) -> Values {
    return {SigmoidCrossEntropy(x[1], x[0])};  // Sorted: labels, logits.
  };
  t["SelectV2"] = [](const Json&, const Values& x) -> Values {
    return {Select(x[0], x[2], x[1])};  // Sorted: condition, e, t.
  };
}

void AddUnary(std::map<std::string, Trace>* traces) {
  std::map<std::string, Trace>& t = *traces;
  const std::map<std::string, Value (*)(Value)> unary = {
      {"LogicalNot", LogicalNot},
      {"Neg", Neg},
      {"Abs", Abs},
      {"Sign", Sign},
      {"Square", Square},
      {"Floor", Floor},
      {"Ceil", Ceil},
      {"Round", Round},
      {"Rint", Round},
      {"Exp", Exp},
      {"Expm1", Expm1},
      {"Log", Log},
      {"Log1p", Log1p},
      {"Sqrt", Sqrt},
      {"Rsqrt", Rsqrt},
      {"Tanh", Tanh},
      {"Sigmoid", Sigmoid},
      {"Erf", Erf},
      {"Sin", Sin},
      {"Cos", Cos},
      {"Relu", Relu},
      {"Relu6", Relu6},
      {"Softplus", Softplus},
      {"Softmax", Softmax},
      {"LogSoftmax", LogSoftmax},
      {"IsNan", IsNan},
      {"IsFinite", IsFinite},
      {"Reciprocal", Reciprocal},
  };
  for (const auto& [name, function] : unary) t[name] = Unary(function);
  t["Elu"] = [](const Json&, const Values& x) -> Values { return {Elu(x[0])}; };
  t["LeakyRelu"] = [](const Json& config, const Values& x) -> Values {
    return {LeakyRelu(x[0], config.at("alpha").get<double>())};
  };
  t["nn.gelu"] = [](const Json& config, const Values& x) -> Values {
    const bool approximate = config.at("approximate").get<bool>();
    return {Gelu(x[0], {.approximate = approximate})};
  };
  t["Cast"] = [](const Json& config, const Values& x) -> Values {
    return {Cast(x[0], *ParseDType(config.at("DstT").get<std::string>()))};
  };
}

void AddMatMulAndReductions(std::map<std::string, Trace>* traces) {
  std::map<std::string, Trace>& t = *traces;
  t["MatMul"] = [](const Json& config, const Values& x) -> Values {
    return {MatMul(x[0], x[1],
                   {.transpose_a = config.value("transpose_a", false),
                    .transpose_b = config.value("transpose_b", false)})};
  };
  t["BatchMatMulV2"] = [](const Json& config, const Values& x) -> Values {
    return {MatMul(x[0], x[1],
                   {.transpose_a = config.value("adj_x", false),
                    .transpose_b = config.value("adj_y", false)})};
  };
  t["Sum"] = Reduce(Sum);
  t["Mean"] = Reduce(Mean);
  t["Max"] = Reduce(Max);
  t["Min"] = Reduce(Min);
  t["Prod"] = Reduce(Prod);
  t["ArgMax"] = Arg(ArgMax);
  t["ArgMin"] = Arg(ArgMin);
  t["SoftmaxCrossEntropyWithLogits"] =
      Loss(SoftmaxCrossEntropy, "SoftmaxCrossEntropyGrad");
  t["SparseSoftmaxCrossEntropyWithLogits"] =
      Loss(SparseSoftmaxCrossEntropy, "SparseSoftmaxCrossEntropyGrad");
}

void AddMovement(std::map<std::string, Trace>* traces) {
  std::map<std::string, Trace>& t = *traces;
  const auto axis = [](const Json& config) {
    return config.at("axis").get<int64_t>();
  };
  t["ConcatV2"] = [=](const Json& config, const Values& x) -> Values {
    return {Concat(x, axis(config))};
  };
  t["Pack"] = [=](const Json& config, const Values& x) -> Values {
    return {Stack(x, axis(config))};
  };
  t["Unpack"] = [=](const Json& config, const Values& x) {
    return Unstack(x[0], config.at("num").get<int64_t>(), axis(config));
  };
  t["Split"] = [=](const Json& config, const Values& x) {
    const int64_t count = config.at("num_split").get<int64_t>();
    const int64_t extent = x[0].shape().dim(static_cast<int>(axis(config)));
    return Split(x[0], std::vector<int64_t>(count, extent / count),
                 axis(config));
  };
  t["SplitV"] = [=](const Json& config, const Values& x) {
    return Split(x[0], List(config, "size_splits"), axis(config));
  };
  t["Slice"] = [](const Json& config, const Values& x) -> Values {
    return {Slice(x[0], List(config, "begin"), List(config, "size"))};
  };
  t["Pad"] = t["PadV2"] = [](const Json& config, const Values& x) -> Values {
    return {Pad(x[0], List(config, "paddings"),
                config.value("constant_values", 0.0))};
  };
  t["Reshape"] = [](const Json& config, const Values& x) -> Values {
    return {Reshape(x[0], List(config, "shape"))};
  };
  t["Squeeze"] = [](const Json& config, const Values& x) -> Values {
    return {Squeeze(x[0], List(config, "axis"))};
  };
  t["ExpandDims"] = [=](const Json& config, const Values& x) -> Values {
    return {ExpandDims(x[0], axis(config))};
  };
  t["BroadcastTo"] = [](const Json& config, const Values& x) -> Values {
    return {BroadcastTo(x[0], List(config, "shape"))};
  };
  t["Transpose"] = [](const Json& config, const Values& x) -> Values {
    return {Transpose(x[0], List(config, "perm"))};
  };
  t["GatherV2"] = [=](const Json& config, const Values& x) -> Values {
    return {Gather(x[1], x[0], axis(config))};  // Sorted: indices, params.
  };
  t["InTopKV2"] = [](const Json& config, const Values& x) -> Values {
    return {InTopK(x[0], x[1], config.at("k").get<int64_t>())};
  };
}

std::map<std::string, Trace> AllTraces() {
  std::map<std::string, Trace> traces;
  AddBinary(&traces);
  AddUnary(&traces);
  AddMatMulAndReductions(&traces);
  AddMovement(&traces);
  return traces;
}

// Cases of things that these ops do not do, on purpose.
bool IsLeftOut(const GoldenCase& one) {
  return one.config.contains("batch_dims") ||             // Gather
         one.config.value("output_type", "") == "int32";  // ArgMax
}

std::vector<Tensor> Tensors(const std::map<std::string, Tensor>& by_name) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : by_name) tensors.push_back(tensor);
  return tensors;
}

// float32 that has gone through a few roundings.
constexpr double kTolerance = 2e-6;

TEST(GoldenOpsTest, OpsComputeWhatTensorFlowComputes) {
  const std::map<std::string, Trace> traces = AllTraces();
  std::set<std::string> seen;
  for (const GoldenCase& one : ReadGoldenCases("ops.json")) {
    const auto op = one.config.at("op").get<std::string>();
    const auto trace = traces.find(op);
    if (trace == traces.end() || IsLeftOut(one)) continue;
    seen.insert(op);
    for (const bool unknown_extents : {false, true}) {
      // A split into equal parts needs to know how large they are.
      if (unknown_extents && op == "Split") continue;
      SCOPED_TRACE(one.name);
      ASSERT_OK_AND_ASSIGN(
          const std::vector<Tensor> actual,
          EvaluateAll(
              [&](const Values& x) { return trace->second(one.config, x); },
              Tensors(one.inputs),
              {.unknown_extents = unknown_extents, .run = {}}));
      const std::vector<Tensor> expected = Tensors(one.outputs);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(actual[i].type(), expected[i].type());
        EXPECT_EQ(DescribeDifference(actual[i], expected[i], kTolerance), "");
      }
    }
  }
  for (const auto& [op, trace] : traces) {
    EXPECT_TRUE(seen.contains(op)) << "there is no golden case of " << op;
  }
}

TEST(GoldenOpsTest, OneHotAgreesWhereTheIndexIsInRange) {
  for (const GoldenCase& one : ReadGoldenCases("ops.json")) {
    if (one.name != "OneHot.last") continue;
    // TensorFlow answers the other rows of this case, whose indices are out of
    // range, with off_value; here they are errors.
    const Tensor indices = one.inputs.at("indices").SliceRows(0, 2);
    const Tensor expected = one.outputs.at("output").SliceRows(0, 2);
    ASSERT_OK_AND_ASSIGN(const Tensor actual,
                         Evaluate(
                             [](const Values& x) {
                               return OneHot(
                                   x[0], 3, {.on_value = 2, .off_value = -0.5});
                             },
                             {indices}));
    EXPECT_EQ(DescribeDifference(actual, expected, 0), "");
    return;
  }
  FAIL() << "OneHot.last is not among the cases";
}

}  // namespace
}  // namespace muster
