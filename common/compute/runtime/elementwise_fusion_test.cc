#include "common/compute/runtime/elementwise_fusion.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/compute/kernels/elementwise_program.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/ops.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/runtime/graph_rewrites.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr DType kF32 = DType::kFloat32;
const char* const kFused = "FusedElementwise";

// Traces results from parameters of the given shapes.
using Trace = std::function<std::vector<Value>(const std::vector<Value>&)>;

absl::StatusOr<Graph> Traced(DType dtype, const std::vector<Shape>& shapes,
                             const Trace& trace) {
  GraphBuilder builder(&BuiltinOps(), "test");
  std::vector<Value> parameters;
  for (const Shape& shape : shapes) {
    parameters.push_back(builder.Parameter("p", {dtype, shape}));
  }
  for (const Value& result : trace(parameters)) builder.AddResult(result);
  return std::move(builder).Build();
}

class ElementwiseFusionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_,
                         Device::Create(&machine_.driver(),
                                        {.memory = {.limit_bytes = 64 << 20,
                                                    .piece_bytes = 1 << 20}}));
    kernels_ = CudaKernels(device_.get(), {});
  }

  // Returns the remaining nodes without parameters and constants.
  std::vector<Node> NodesOf(const std::vector<Shape>& shapes,
                            const Trace& trace) {
    auto graph = Traced(kF32, shapes, trace);
    EXPECT_OK(graph);
    FuseElementwise(&*graph, BuiltinOps(), [this](const KernelSpec& spec) {
      return kernels_.Create(spec, 1).ok();
    });
    std::vector<Node> nodes;
    for (const Node& node : DropDeadNodes(*graph, BuiltinOps()).nodes) {
      if (node.op != kParameterOp && node.op != kConstantOp) {
        nodes.push_back(node);
      }
    }
    return nodes;
  }

  std::vector<std::string> OpsOf(const std::vector<Shape>& shapes,
                                 const Trace& trace) {
    std::vector<std::string> ops;
    for (const Node& node : NodesOf(shapes, trace)) ops.push_back(node.op);
    return ops;
  }

  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& arguments,
                                          const Trace& trace) {
    std::vector<Shape> shapes;
    for (const Tensor& argument : arguments) {
      shapes.push_back(argument.shape());
    }
    ASSIGN_OR_RETURN(Graph graph, Traced(arguments[0].dtype(), shapes, trace));
    ASSIGN_OR_RETURN(const auto executable,
                     Executable::Compile(std::move(graph), BuiltinOps(),
                                         kernels_, /*variables=*/nullptr,
                                         {.device = device_.get(),
                                          .host_kernels = &CpuKernels(),
                                          .soft_placement = false}));
    std::vector<Tensor> results;
    RETURN_IF_ERROR(executable->Run(arguments, {}, &results));
    return results;
  }

  SimulatedMachine machine_{{}};
  std::unique_ptr<Device> device_;
  KernelRegistry kernels_;
};

TEST_F(ElementwiseFusionTest, OpsThatFollowEachOtherAreOne) {
  const std::vector<Node> nodes =
      NodesOf({{4, 8}, {8}}, [](const std::vector<Value>& p) {
        return std::vector<Value>{Relu(p[0] * p[1] + 0.5)};
      });
  ASSERT_THAT(nodes, SizeIs(1));
  EXPECT_EQ(nodes[0].op, kFused);
  // The constant is a part of the program.
  EXPECT_THAT(nodes[0].inputs, SizeIs(2));
  ASSERT_OK_AND_ASSIGN(const auto program,
                       ElementwiseProgram::FromAttributes(nodes[0].attributes));
  ASSERT_THAT(program.steps, SizeIs(3));
  EXPECT_EQ(program.steps[1].op, "Add");
  EXPECT_EQ(program.steps[1].immediate, 0.5);
  EXPECT_THAT(program.steps[1].sources,
              ElementsAre(2, ElementwiseProgram::kImmediate));
}

TEST_F(ElementwiseFusionTest, WhatOthersReadStays) {
  EXPECT_THAT(OpsOf({{4, 8}, {4, 8}},
                    [](const std::vector<Value>& p) {
                      const Value product = p[0] * p[1];
                      return std::vector<Value>{product, Relu(product)};
                    }),
              ElementsAre("Mul", "Relu"));
  // A node between the two reads the product.
  EXPECT_THAT(OpsOf({{4, 8}, {4, 8}},
                    [](const std::vector<Value>& p) {
                      const Value product = p[0] * p[1];
                      return std::vector<Value>{product - Sum(product)};
                    }),
              ElementsAre("Mul", "Sum", "Sub"));
}

TEST_F(ElementwiseFusionTest, OtherShapesAndTypesStay) {
  EXPECT_THAT(OpsOf({{4, 8}, {8}},
                    [](const std::vector<Value>& p) {
                      return std::vector<Value>{p[0] + Exp(p[1])};
                    }),
              ElementsAre("Exp", "Add"));
  EXPECT_THAT(
      OpsOf({{4, 8}},
            [](const std::vector<Value>& p) {
              return std::vector<Value>{Cast(Cast(p[0], DType::kInt64), kF32)};
            }),
      ElementsAre("Cast", "Cast"));
}

TEST_F(ElementwiseFusionTest, BroadcastsAreReadAsTheyAre) {
  const std::vector<Node> nodes =
      NodesOf({{4, 8}, {4, 1}}, [](const std::vector<Value>& p) {
        return std::vector<Value>{p[0] * BroadcastTo(p[1], {4, 8})};
      });
  ASSERT_THAT(nodes, SizeIs(1));
  EXPECT_EQ(nodes[0].op, kFused);
  EXPECT_THAT(nodes[0].inputs, SizeIs(2));
}

TEST_F(ElementwiseFusionTest, EachReaderWidensForItself) {
  const Trace trace = [](const std::vector<Value>& p) {
    const Value wide = Cast(Cast(p[0], DType::kBfloat16), kF32);
    return std::vector<Value>{wide * p[0], Sum(wide + p[0])};
  };
  EXPECT_THAT(OpsOf({{4, 8}}, trace),
              UnorderedElementsAre("Cast", kFused, kFused, "Sum"));
  // The other reader keeps its input.
  EXPECT_THAT(OpsOf({{4, 8}},
                    [&](const std::vector<Value>& p) {
                      const Value wide =
                          Cast(Cast(p[0], DType::kBfloat16), kF32);
                      return std::vector<Value>{wide * p[0], Sum(wide)};
                    }),
              UnorderedElementsAre("Cast", "Cast", kFused, "Sum"));
}

TEST_F(ElementwiseFusionTest, AnInputReadTwiceIsOneOperand) {
  const std::vector<Node> nodes =
      NodesOf({{4, 8}}, [](const std::vector<Value>& p) {
        return std::vector<Value>{p[0] * Sigmoid(p[0]) + p[0]};
      });
  ASSERT_THAT(nodes, SizeIs(1));
  EXPECT_THAT(nodes[0].inputs, SizeIs(1));
}

TEST_F(ElementwiseFusionTest, WhatIsTooLongIsDivided) {
  const std::vector<std::string> ops =
      OpsOf({{4, 8}}, [](const std::vector<Value>& p) {
        Value x = p[0];
        for (int i = 0; i < 40; ++i) x = Sin(x);
        return std::vector<Value>{x};
      });
  EXPECT_THAT(ops, SizeIs(3));
  EXPECT_THAT(ops, Each(kFused));
  // The expression has more operands than a tape supports.
  EXPECT_THAT(OpsOf(std::vector<Shape>(10, Shape({4, 8})),
                    [](const std::vector<Value>& p) {
                      Value sum = p[0];
                      for (size_t i = 1; i < p.size(); ++i) sum = sum + p[i];
                      return std::vector<Value>{sum};
                    }),
              ElementsAre(kFused, kFused));
}

// Intermediate values are rounded as if they were stored in memory.
TEST_F(ElementwiseFusionTest, BitsAreThoseOfTheOpsOneAfterAnother) {
  const auto trace = [](const std::vector<Value>& p, bool keeps_all) {
    std::vector<Value> values;
    const auto keep = [&](Value value) {
      values.push_back(value);
      return value;
    };
    const DType dtype = p[0].dtype();
    const Value a = keep(p[0] * p[1]);
    const Value b = keep(Sigmoid(a));
    const Value c = keep(a - b * 3);
    const Value d = keep(Maximum(b, c) + p[2]);
    const Value is_positive = keep(Greater(d, ZerosLike(d)));
    const Value e = keep(Select(is_positive, d, a));
    const Value f = keep(Cast(Cast(e / 3, DType::kBfloat16), dtype));
    const Value g = keep(Tanh(f) * c - a * Cast(is_positive, dtype));
    return keeps_all ? values : std::vector<Value>{g};
  };
  for (const DType dtype : {kF32, DType::kBfloat16, DType::kFloat16}) {
    SCOPED_TRACE(DTypeString(dtype));
    std::vector<Tensor> arguments;
    RandomStream random(3);
    for (const Shape& shape : {Shape({5, 67}), Shape({67}), Shape({5, 1})}) {
      Tensor wide(kF32, shape);
      for (float& element : wide.mutable_flat<float>()) {
        element = UnitFloat(random.Next64() >> 32) * 8 - 4;
      }
      Tensor argument(dtype, shape);
      VisitNumber(dtype, [&]<typename T>() {
        for (int64_t i = 0; i < wide.element_count(); ++i) {
          argument.mutable_flat<T>()[i] = T(wide.flat<float>()[i]);
        }
      });
      arguments.push_back(std::move(argument));
    }
    ASSERT_OK_AND_ASSIGN(const auto fused,
                         Run(arguments, [&](const std::vector<Value>& p) {
                           return trace(p, /*keeps_all=*/false);
                         }));
    ASSERT_OK_AND_ASSIGN(const auto apart,
                         Run(arguments, [&](const std::vector<Value>& p) {
                           return trace(p, /*keeps_all=*/true);
                         }));
    const Tensor& wanted = apart.back();
    ASSERT_EQ(fused[0].type(), wanted.type());
    EXPECT_EQ(std::memcmp(fused[0].raw_data(), wanted.raw_data(),
                          wanted.size_bytes()),
              0);
  }
}

TEST(ElementwiseProgramTest, ListsThatDoNotFitAreErrors) {
  const ElementwiseProgram program = {
      1, {{.op = "Neg", .sources = {0}, .dtype = kF32}}};
  Attributes attributes = program.ToAttributes();
  EXPECT_OK(ElementwiseProgram::FromAttributes(attributes));
  // The step refers to itself.
  attributes.Set("sources", std::vector<int64_t>{1});
  EXPECT_THAT(
      ElementwiseProgram::FromAttributes(attributes),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("do not fit")));
}

}  // namespace
}  // namespace muster
