#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/ops/ops.h"
#include "common/compute/ops/testing/graph_interpreter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden/golden_data.h"

// Compares every op with results of TensorFlow. A case needs no code here if
// its "op" is one of Muster's, with Muster's attributes, and with Muster's
// operands in the order of their names. A Trace translates cases with other
// names or another order.
namespace muster {
namespace {

using Json = nlohmann::json;
using Values = std::vector<Value>;
// Maps a case's configuration and its tensors, in the order of the op's
// operands, to its outputs in the order of their names.
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

// Adds op `op` with the configuration as attributes.
Trace MusterOp(std::string op) {
  return [op](const Json& config, const Values& x) -> Values {
    Attributes attributes;
    for (const auto& [name, value] : config.items()) {
      if (value.is_boolean()) attributes.Set(name, value.get<bool>());
      if (value.is_number_float()) attributes.Set(name, value.get<double>());
    }
    return x[0].builder()->OpWithOutputs(op, x, attributes);
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

// A loss of two operands and TensorFlow's second output, "backprop": the
// gradient of the logits for a loss gradient of 1.
Trace Loss(Value (*function)(Value, Value), std::string gradient_op) {
  return [function, gradient_op](const Json&, const Values& x) -> Values {
    const Value loss = function(x[0], x[1]);
    const Value backprop =
        loss.builder()->Op(gradient_op, {x[0], x[1], OnesLike(loss)});
    return {backprop, loss};
  };
}

void AddSynonyms(std::map<std::string, Trace>* traces) {
  for (const auto& [theirs, ours] :
       std::map<std::string, std::string>{{"AddV2", "Add"},
                                          {"BiasAdd", "Add"},
                                          {"RealDiv", "Div"},
                                          {"TruncateDiv", "Div"},
                                          {"FloorMod", "Mod"},
                                          {"Rint", "Round"},
                                          {"nn.gelu", "Gelu"}}) {
    (*traces)[theirs] = MusterOp(ours);
  }
}

void AddElementwise(std::map<std::string, Trace>* traces) {
  std::map<std::string, Trace>& t = *traces;
  t["nn.sigmoid_cross_entropy_with_logits"] = [](const Json&,
                                                 const Values& x) -> Values {
    return {SigmoidCrossEntropy(x[1], x[0])};  // Sorted: labels, logits.
  };
  t["SelectV2"] = [](const Json&, const Values& x) -> Values {
    return {Select(x[0], x[2], x[1])};  // Sorted: condition, e, t.
  };
  t["Elu"] = [](const Json&, const Values& x) -> Values { return {Elu(x[0])}; };
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
  t["ReverseV2"] = [](const Json& config, const Values& x) -> Values {
    return {Reverse(x[0], List(config, "axis"))};
  };
  t["GatherV2"] = [=](const Json& config, const Values& x) -> Values {
    return {Gather(x[1], x[0], axis(config))};  // Sorted: indices, params.
  };
  t["OneHot"] = [](const Json& config, const Values& x) -> Values {
    return {OneHot(x[0], config.at("depth").get<int64_t>(),
                   {.on_value = config.at("on_value").get<double>(),
                    .off_value = config.at("off_value").get<double>()})};
  };
  t["InTopKV2"] = [](const Json& config, const Values& x) -> Values {
    return {InTopK(x[0], x[1], config.at("k").get<int64_t>())};
  };
}

void AddPositions(std::map<std::string, Trace>* traces) {
  auto& t = *traces;
  t["GatherNd"] = [](const Json&, const Values& x) -> Values {
    return {GatherNd(x[1], x[0])};  // Sorted: indices, params.
  };
  t["ScatterNd"] = [](const Json& config, const Values& x) -> Values {
    return {ScatterNd(x[0], x[1], List(config, "shape"))};
  };
  t["UnsortedSegmentSum"] = [](const Json& config, const Values& x) -> Values {
    return {SegmentSum(x[0], x[1], config.at("num_segments").get<int64_t>())};
  };
  t["Cumsum"] = [](const Json& config, const Values& x) -> Values {
    return {CumSum(x[0], {.axis = config.at("axis").get<int64_t>(),
                          .exclusive = config.at("exclusive"),
                          .reverse = config.at("reverse")})};
  };
  t["Tile"] = [](const Json& config, const Values& x) -> Values {
    return {Tile(x[0], List(config, "multiples"))};
  };
  // Sizes are those of TensorFlow's results.
  t["boolean_mask"] = [](const Json& config, const Values& x) -> Values {
    return {BooleanMask(x[1], x[0], {.size = config.at("size")}).values};
  };
  t["Unique"] = [](const Json& config, const Values& x) -> Values {
    const UniqueValues unique =
        Unique(x[0], {.size = config.at("size").get<int64_t>()});
    return {unique.indices, unique.values};  // Sorted: idx, y.
  };
  t["TopKV2"] = [](const Json& config, const Values& x) -> Values {
    const TopKOutputs top = TopK(x[0], config.at("k").get<int64_t>());
    return {top.indices, top.values};  // Sorted by name.
  };
}

Padding2D PaddingOf(const Json& config) {
  return config.at("padding") == "SAME" ? Padding2D::Same()
                                        : Padding2D::Valid();
}

// Returns the middle of [1, height, width, 1].
std::array<int64_t, 2> HeightAndWidth(const Json& config, const char* name) {
  const std::vector<int64_t> list = List(config, name);
  return {list.at(1), list.at(2)};
}

// Returns a constant of the shape in the configuration's list `name`. Only its
// type matters.
Value Like(const Json& config, const char* name, Value x) {
  return x.builder()->Constant(
      Tensor::Zeros(x.dtype(), Shape(List(config, name))));
}

// Operands are sorted by TensorFlow's names: "filter" precedes "input" and
// "out_backprop".
template <typename Options>
void AddConvolution(
    const std::string& name, Value (*forward)(Value, Value, const Options&),
    Value (*backprop_input)(Value, Value, Value, const Options&),
    Value (*backprop_kernel)(Value, Value, Value, const Options&),
    std::map<std::string, Trace>* traces) {
  const auto options = [](const Json& config) {
    return Options{.strides = HeightAndWidth(config, "strides"),
                   .padding = PaddingOf(config)};
  };
  std::map<std::string, Trace>& t = *traces;
  t[name] = [=](const Json& config, const Values& x) -> Values {
    return {forward(x[1], x[0], options(config))};
  };
  t[name + "BackpropInput"] = [=](const Json& config,
                                  const Values& x) -> Values {
    const Value like = Like(config, "input_sizes", x[0]);
    return {backprop_input(x[1], x[0], like, options(config))};
  };
  t[name + "BackpropFilter"] = [=](const Json& config,
                                   const Values& x) -> Values {
    const Value like = Like(config, "filter_sizes", x[0]);
    return {backprop_kernel(x[0], x[1], like, options(config))};
  };
}

void AddPooling(std::map<std::string, Trace>* traces) {
  const auto options = [](const Json& config) {
    return Pool2DOptions{.window = HeightAndWidth(config, "ksize"),
                         .strides = HeightAndWidth(config, "strides"),
                         .padding = PaddingOf(config)};
  };
  // Uses the attributes that the forward op would have.
  const auto gradient = [=](const Json& config, const char* op, Value gradient,
                            Value x) {
    const Value forward = AveragePool2D(x, options(config));
    GraphBuilder& builder = *x.builder();
    return builder.Op(op, {gradient, x},
                      builder.graph().nodes[forward.output().node].attributes);
  };
  std::map<std::string, Trace>& t = *traces;
  t["MaxPool"] = [=](const Json& config, const Values& x) -> Values {
    return {MaxPool2D(x[0], options(config))};
  };
  t["AvgPool"] = [=](const Json& config, const Values& x) -> Values {
    return {AveragePool2D(x[0], options(config))};
  };
  // Sorted: grad, orig_input, orig_output.
  t["MaxPoolGrad"] = [=](const Json& config, const Values& x) -> Values {
    return {gradient(config, "MaxPool2DGrad", x[0], x[1])};
  };
  t["MaxPoolGradGrad"] = [=](const Json& config, const Values& x) -> Values {
    return {gradient(config, "MaxPool2DSelect", x[0], x[1])};
  };
  t["AvgPoolGrad"] = [=](const Json& config, const Values& x) -> Values {
    const Value like = Like(config, "orig_input_shape", x[0]);
    return {gradient(config, "AveragePool2DGrad", x[0], like)};
  };
}

void AddImages(std::map<std::string, Trace>* traces) {
  std::map<std::string, Trace>& t = *traces;
  AddConvolution("Conv2D", Conv2D, Conv2DBackpropInput, Conv2DBackpropKernel,
                 traces);
  AddConvolution("DepthwiseConv2dNative", DepthwiseConv2D,
                 DepthwiseConv2DBackpropInput, DepthwiseConv2DBackpropKernel,
                 traces);
  AddPooling(traces);
  // Sorted: mean, offset, scale, variance, x.
  t["nn.batch_normalization"] = [](const Json& config,
                                   const Values& x) -> Values {
    const double epsilon = config.at("variance_epsilon").get<double>();
    return {
        BatchNormInference(x[4], x[2], x[1], x[0], x[3], {.epsilon = epsilon})};
  };
  for (const auto& [name, interpolation] :
       {std::pair("ResizeBilinear", Interpolation::kBilinear),
        std::pair("ResizeNearestNeighbor", Interpolation::kNearest)}) {
    t[name] = [interpolation = interpolation](const Json& config,
                                              const Values& x) -> Values {
      const std::vector<int64_t> size = List(config, "size");
      return {ResizeImage(x[0], size.at(0), size.at(1), interpolation)};
    };
  }
  t["ResizeBilinearGrad"] = [](const Json&, const Values& x) -> Values {
    return {x[0].builder()->Op("ResizeImageGrad", x,
                               {{"height", int64_t{5}},
                                {"width", int64_t{3}},
                                {"interpolation", std::string("bilinear")}})};
  };
  t["ImageProjectiveTransformV3"] = [](const Json& config,
                                       const Values& x) -> Values {
    const std::map<std::string, FillMode> modes = {
        {"CONSTANT", FillMode::kConstant},
        {"NEAREST", FillMode::kNearest},
        {"REFLECT", FillMode::kReflect},
        {"WRAP", FillMode::kWrap}};
    return {ImageTransform(
        x[0], x[1],
        {.fill_mode = modes.at(config.at("fill_mode").get<std::string>()),
         .fill_value = config.at("fill_value").get<double>()})};
  };
}

void AddControlFlow(std::map<std::string, Trace>* traces) {
  std::map<std::string, Trace>& t = *traces;
  t["cond"] = [](const Json&, const Values& x) -> Values {
    return Cond(
        x[0], [&] { return Values{x[1] * x[2]}; },
        [&] { return Values{Tanh(x[1])}; });
  };
  t["scan"] = [](const Json& config, const Values& x) -> Values {
    const ScanStep last = Scan(
        {x[1]}, {x[0]},
        [&](const ScanStep& step) -> ScanStep {
          const Value next = Tanh(MatMul(step.carry[0], x[2]) + step.rows[0]);
          return {.carry = {next}, .rows = {next}};
        },
        {.reverse = config.at("reverse").get<bool>()});
    return {last.rows[0]};
  };
  t["while_loop"] = [](const Json& config, const Values& x) -> Values {
    const Value zero = Cast(Sum(ZerosLike(x[0])), DType::kInt32);
    const Values last = While(
        {zero, x[1]}, [](const Values& carry) { return carry[0] < 5; },
        [&](const Values& carry) -> Values {
          return {carry[0] + 1, Sin(carry[1] * x[0])};
        },
        {.maximum_iterations = config.at("maximum_iterations").get<int64_t>()});
    return {last[1]};
  };
}

std::map<std::string, Trace> AllTraces() {
  std::map<std::string, Trace> traces;
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    traces[schema->name] = MusterOp(schema->name);
  }
  AddSynonyms(&traces);
  AddElementwise(&traces);
  AddMatMulAndReductions(&traces);
  AddMovement(&traces);
  AddPositions(&traces);
  AddImages(&traces);
  AddControlFlow(&traces);
  return traces;
}

// Cases of features that these ops omit by design.
bool IsUnsupportedCase(const GoldenCase& one) {
  return one.config.contains("batch_dims") ||               // Gather
         one.config.value("output_type", "") == "int32" ||  // ArgMax
         // TensorFlow returns off_value for ids out of range; here they are
         // errors.
         (one.config.at("op") == "OneHot" && one.name != "OneHot.in_range");
}

std::vector<Tensor> Tensors(const std::map<std::string, Tensor>& by_name) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : by_name) tensors.push_back(tensor);
  return tensors;
}

// Allows for a few float32 roundings.
constexpr double kTolerance = 2e-6;

bool NeedsGoldenCase(const OpSchema& schema) {
  return schema.has_kernel() && schema.reads == OpReads::kInputsOnly &&
         schema.golden_exemption == GoldenExemption::kNone;
}

TEST(GoldenOpsTest, OpsMatchTensorFlow) {
  const std::map<std::string, Trace> traces = AllTraces();
  std::set<std::string> compared;
  for (const GoldenCase& one : ReadGoldenCases("ops.json")) {
    const auto op = one.config.at("op").get<std::string>();
    const auto trace = traces.find(op);
    if (trace == traces.end() || IsUnsupportedCase(one)) continue;
    const auto trace_case = [&](const Values& x) {
      const Values results = trace->second(one.config, x);
      for (const Value& result : results) {
        if (!result.ok()) continue;
        compared.insert(
            result.builder()->graph().nodes[result.output().node].op);
      }
      return results;
    };
    for (const bool unknown_extents : {false, true}) {
      // A split into equal parts needs the extent, and so do positions and
      // selections.
      const std::set<std::string> known = {"Split",     "GatherNd",
                                           "ScatterNd", "UnsortedSegmentSum",
                                           "Unique",    "boolean_mask"};
      if (unknown_extents && known.contains(op)) continue;
      SCOPED_TRACE(one.name);
      ASSERT_OK_AND_ASSIGN(
          const std::vector<Tensor> actual,
          EvaluateAll(trace_case, Tensors(one.inputs),
                      {.unknown_extents = unknown_extents, .run = {}}));
      const std::vector<Tensor> expected = Tensors(one.outputs);
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(actual[i].type(), expected[i].type());
        EXPECT_EQ(DescribeDifference(actual[i], expected[i], kTolerance), "");
      }
    }
  }
  for (const OpSchema* schema : BuiltinOps().AllSchemas()) {
    EXPECT_TRUE(!NeedsGoldenCase(*schema) || compared.contains(schema->name))
        << "no golden case covers " << schema->name
        << ": add one to tests/golden/cases/ops.py";
    EXPECT_TRUE(schema->golden_exemption == GoldenExemption::kNone ||
                !compared.contains(schema->name))
        << schema->name << " has a golden case and needs no exemption";
  }
}

}  // namespace
}  // namespace muster
