#include "common/compute/runtime/executable.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/cord.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/runtime/testing/test_ops.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/check_numerics.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph Trace(const std::function<void(GraphBuilder&)>& body) {
  GraphBuilder builder(&TestOps(), "test");
  body(builder);
  auto graph = std::move(builder).Build();
  EXPECT_OK(graph);
  return *std::move(graph);
}

Value FloatParameter(GraphBuilder& builder, const Shape& shape) {
  return builder.Parameter("x", {DType::kFloat32, shape});
}

class ExecutableTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      Graph graph, ExecutableOptions options = {}) {
    return Executable::Compile(std::move(graph), TestOps(), kernels_, &store_,
                               options);
  }

  absl::StatusOr<std::vector<Tensor>> RunOnce(
      const std::function<void(GraphBuilder&)>& body,
      std::vector<Tensor> arguments = {}) {
    auto executable = Compile(Trace(body));
    if (!executable.ok()) return executable.status();
    std::vector<Tensor> results;
    absl::Status status =
        (*executable)->Run(arguments, {.step_id = 3}, &results);
    if (!status.ok()) return status;
    return results;
  }

  const KernelRegistry kernels_ = MakeTestKernels();
  FakeVariableStore store_{{{"w", Tensor::FromValues<float>({2}, {10, 20})},
                            {"v", Tensor::FromValues<float>({2}, {1, 2})}}};
};

std::vector<float> Floats(const Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  return {flat.begin(), flat.end()};
}

TEST_F(ExecutableTest, ComputesResultsFromArgumentsAndConstants) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      RunOnce(
          [](GraphBuilder& builder) {
            const Value x = FloatParameter(builder, {Shape::kUnknown});
            const Value two =
                builder.Constant(Tensor::FromValues<float>({}, {2}));
            const Value product = builder.Op("Mul", {x, two});
            builder.AddResult(builder.Op("Add", {product, x}));
            builder.AddResult(product);
          },
          {Tensor::FromValues<float>({3}, {1, 2, 3})}));
  EXPECT_THAT(Floats(results[0]), ElementsAre(3, 6, 9));
  EXPECT_THAT(Floats(results[1]), ElementsAre(2, 4, 6));
}

TEST_F(ExecutableTest, ValuesThatShareTheArenaDoNotDisturbEachOther) {
  // Computes y = 2^20 x by doubling; a value of each step stays live to the
  // end.
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      RunOnce(
          [](GraphBuilder& builder) {
            const Value x = FloatParameter(builder, {2});
            Value power = x;
            Value sum = x;
            for (int i = 0; i < 20; ++i) {
              const auto halves = builder.OpWithOutputs("Halves", {power});
              power = builder.Op(
                  "Add", {builder.Op("Add", {power, halves[0]}), halves[1]});
              sum = builder.Op("Add", {power, sum});
            }
            builder.AddResult(sum);
          },
          {Tensor::FromValues<float>({2}, {1, -1})}));
  EXPECT_THAT(Floats(results[0]), ElementsAre((1 << 21) - 1, 1 - (1 << 21)));
}

TEST_F(ExecutableTest, NoInputIsOverwrittenThatIsReadOutOfOrder) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      RunOnce(
          [](GraphBuilder& builder) {
            const Value relu =
                builder.Op("Relu", {FloatParameter(builder, {3})});
            const Value sum = builder.Op("AddReversed", {relu, relu});
            builder.AddResult(builder.Op("Relu", {sum}));
          },
          {Tensor::FromValues<float>({3}, {1, 2, 30})}));
  EXPECT_THAT(Floats(results[0]), ElementsAre(31, 4, 31));
}

TEST_F(ExecutableTest, UpdatesKeepTheirValuesUntilTheyAreCommitted) {
  EXPECT_OK(RunOnce(
      [](GraphBuilder& builder) {
        const Value x = FloatParameter(builder, {2});
        UpdateVariableForTest("AssignVariable", "w",
                              {builder.Op("Add", {x, x})});
        Value later = builder.Op("Mul", {x, x});
        for (int i = 0; i < 4; ++i) {
          const auto halves = builder.OpWithOutputs("Halves", {later});
          later = builder.Op("Add", {halves[0], halves[1]});
        }
        builder.AddResult(builder.Op("Relu", {later}));
      },
      {Tensor::FromValues<float>({2}, {3, 5})}));
}

TEST_F(ExecutableTest, ResultsMayBeArgumentsConstantsViewsOrTheSameTwice) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      RunOnce(
          [](GraphBuilder& builder) {
            const Value x = FloatParameter(builder, {2, 2});
            const Value relu = builder.Op("Relu", {x});
            const auto flatten = [&](Value value) {
              return builder.Op("Reshape", {value},
                                {{"shape", std::vector<int64_t>{4}}});
            };
            builder.AddResult(x);
            builder.AddResult(flatten(x));
            builder.AddResult(relu);
            builder.AddResult(relu);
            builder.AddResult(flatten(relu));
            builder.AddResult(flatten(builder.Op("Add", {relu, relu})));
            builder.AddResult(builder.Constant(Tensor::Scalar(7.0f)));
            builder.AddResult(ReadVariableForTest(builder, "w", {2}));
          },
          {Tensor::FromValues<float>({2, 2}, {1, -2, 3, -4})}));
  EXPECT_THAT(Floats(results[0]), ElementsAre(1, -2, 3, -4));
  EXPECT_EQ(results[1].shape(), Shape({4}));
  EXPECT_THAT(Floats(results[1]), ElementsAre(1, -2, 3, -4));
  EXPECT_THAT(Floats(results[2]), ElementsAre(1, 0, 3, 0));
  EXPECT_THAT(Floats(results[3]), ElementsAre(1, 0, 3, 0));
  EXPECT_THAT(Floats(results[4]), ElementsAre(1, 0, 3, 0));
  EXPECT_THAT(Floats(results[5]), ElementsAre(2, 0, 6, 0));
  EXPECT_THAT(Floats(results[6]), ElementsAre(7));
  EXPECT_THAT(Floats(results[7]), ElementsAre(10, 20));
}

TEST_F(ExecutableTest, ResultsKeptByTheCallerAreNotOverwritten) {
  ASSERT_OK_AND_ASSIGN(
      const auto executable, Compile(Trace([](GraphBuilder& builder) {
        builder.AddResult(builder.Op("Relu", {FloatParameter(builder, {1})}));
      })));
  std::vector<Tensor> results;
  EXPECT_OK(
      executable->Run({Tensor::FromValues<float>({1}, {1})}, {}, &results));
  const Tensor kept = results[0];
  EXPECT_OK(
      executable->Run({Tensor::FromValues<float>({1}, {2})}, {}, &results));
  EXPECT_EQ(kept.flat<float>()[0], 1);
  EXPECT_EQ(results[0].flat<float>()[0], 2);
}

TEST_F(ExecutableTest, ResultsHandedBackAreUsedAgain) {
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       Compile(Trace([](GraphBuilder& builder) {
                         const Value x = FloatParameter(builder, {1});
                         const Value relu = builder.Op("Relu", {x});
                         builder.AddResult(relu);
                         builder.AddResult(relu);
                       })));
  std::vector<Tensor> results;
  const Tensor argument = Tensor::FromValues<float>({1}, {1});
  EXPECT_OK(executable->Run({argument}, {}, &results));
  const uint8_t* const data = results[0].raw_data();
  EXPECT_OK(executable->Run({argument}, {}, &results));
  EXPECT_EQ(results[0].raw_data(), data);
}

TEST_F(ExecutableTest, DeadNodesAreDroppedAndUpdatesAreNot) {
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       Compile(Trace([](GraphBuilder& builder) {
                         const Value x = FloatParameter(builder, {2});
                         builder.Op("Fail", {x});
                         ReadVariableForTest(builder, "v", {2});
                         UpdateVariableForTest("AssignAddVariable", "w", {x});
                       })));
  EXPECT_EQ(executable->graph().nodes.size(), 2u);
  ASSERT_EQ(executable->variable_uses().size(), 1u);
  EXPECT_EQ(executable->variable_uses()[0].name, "w");
  EXPECT_TRUE(executable->variable_uses()[0].is_updated);
  EXPECT_FALSE(executable->variable_uses()[0].is_read);
  std::vector<Tensor> results;
  EXPECT_OK(executable->Run({Tensor::FromValues<float>({2}, {1, 1})},
                            {.step_id = 9}, &results));
  EXPECT_THAT(store_.events(), ElementsAre("begin 9", "update w", "commit"));
}

TEST_F(ExecutableTest, PlansUpdatesInOrder) {
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       Compile(Trace([](GraphBuilder& builder) {
                         const Value x = FloatParameter(builder, {2});
                         UpdateVariableForTest("AssignVariable", "w", {x});
                         UpdateVariableForTest("AssignAddVariable", "v", {x});
                         UpdateVariableForTest("AssignAddVariable", "w", {x});
                       })));
  const absl::Span<const VariableUse> uses = executable->variable_uses();
  ASSERT_EQ(uses.size(), 2u);
  ASSERT_EQ(uses[0].updates.size(), 2u);
  EXPECT_EQ(uses[0].updates[0].position, 0);
  EXPECT_EQ(uses[0].updates[0].kind, UpdateKind::kAssign);
  EXPECT_EQ(uses[0].updates[1].position, 2);
  EXPECT_EQ(uses[0].updates[1].kind, UpdateKind::kAssignAdd);
  ASSERT_EQ(uses[1].updates.size(), 1u);
  EXPECT_EQ(uses[1].updates[0].position, 1);
}

TEST_F(ExecutableTest, ReadsSeeUpdatesTracedBeforeThemAndNoLaterOnes) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results, RunOnce([](GraphBuilder& builder) {
        const Value before = ReadVariableForTest(builder, "w", {2});
        UpdateVariableForTest("AssignAddVariable", "w", {before});
        const Value after = ReadVariableForTest(builder, "w", {2});
        builder.AddResult(before);
        builder.AddResult(after);
        builder.AddResult(builder.Op("Add", {before, after}));
      }));
  EXPECT_THAT(Floats(results[0]), ElementsAre(10, 20));
  EXPECT_THAT(Floats(results[1]), ElementsAre(20, 40));
  EXPECT_THAT(Floats(results[2]), ElementsAre(30, 60));
}

TEST_F(ExecutableTest, UpdatesFindVariablesUnsharedOnceReadsAreUsedUp) {
  const auto update_after_reading = [](GraphBuilder& builder) {
    const Value w = ReadVariableForTest(builder, "w", {2});
    const Value flat =
        builder.Op("Reshape", {w}, {{"shape", std::vector<int64_t>{1, 2}}});
    const Value gradient = builder.Op("Reshape", {builder.Op("Relu", {flat})},
                                      {{"shape", std::vector<int64_t>{2}}});
    UpdateVariableForTest("AssignAddVariable", "w", {gradient});
    builder.AddResult(gradient);
  };
  EXPECT_OK(RunOnce(update_after_reading));
  EXPECT_TRUE(store_.last_update_was_in_place());
}

TEST_F(ExecutableTest, UpdatesAreMadeAsSoonAsTheirValueIsComputed) {
  EXPECT_OK(RunOnce([](GraphBuilder& builder) {
    const Value w = ReadVariableForTest(builder, "w", {2});
    const Value doubled = builder.Op("Add", {w, w});
    const Value v = ReadVariableForTest(builder, "v", {2});
    builder.AddResult(builder.Op("Add", {v, doubled}));
    UpdateVariableForTest("AssignAddVariable", "w", {doubled});
  }));
  EXPECT_THAT(store_.events(),
              ElementsAre("begin 3", "read w", "update w", "read v", "commit"));
}

Value GatherForTest(Value ids, const Shape& table) {
  return ids.builder()->Op("GatherVariable", {ids},
                           {{"variable", std::string("table")},
                            {"dtype", DType::kFloat32},
                            {"shape", table}});
}

TEST_F(ExecutableTest, ScattersAndGathersGetTheirIndices) {
  store_ = FakeVariableStore(
      {{"table", Tensor::FromValues<float>({3, 1}, {5, 6, 7})}});
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      RunOnce(
          [](GraphBuilder& builder) {
            const Value ids =
                builder.Parameter("ids", {DType::kInt64, {Shape::kUnknown}});
            const Value rows = GatherForTest(ids, {3, 1});
            UpdateVariableForTest("ScatterAddVariable", "table", {ids, rows});
            builder.AddResult(builder.Op("Relu", {rows}));
          },
          {Tensor::FromValues<int64_t>({2}, {2, 0})}));
  EXPECT_THAT(Floats(results[0]), ElementsAre(7, 5));
  EXPECT_THAT(store_.events(), ElementsAre("begin 3", "gather table",
                                           "scatter table", "commit"));
}

TEST_F(ExecutableTest, RejectsRowsOfAnotherWidth) {
  store_ =
      FakeVariableStore({{"table", Tensor::Zeros(DType::kFloat32, {3, 8})}});
  EXPECT_THAT(
      RunOnce(
          [](GraphBuilder& builder) {
            const Value ids = builder.Parameter("ids", {DType::kInt64, {2}});
            builder.AddResult(builder.Op("Relu", {GatherForTest(ids, {3, 1})}));
          },
          {Tensor::FromValues<int64_t>({2}, {2, 0})}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("\"table\""), HasSubstr("float32[2,1]"),
                     HasSubstr("float32[2,8]"))));
}

TEST_F(ExecutableTest, RejectsAVariableOfAnotherType) {
  EXPECT_THAT(RunOnce([](GraphBuilder& builder) {
                builder.AddResult(ReadVariableForTest(builder, "w", {5}));
              }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"w\""), HasSubstr("float32[5]"),
                             HasSubstr("float32[2]"))));
}

TEST_F(ExecutableTest, ErrorsNameTheNodeAndTheNextRunWorks) {
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       Compile(Trace([](GraphBuilder& builder) {
                         GraphBuilder::NameScope scope(&builder, "head");
                         const Value x = FloatParameter(builder, {2});
                         UpdateVariableForTest("AssignAddVariable", "w", {x});
                         builder.AddResult(builder.Op("Relu", {x}));
                       })));
  absl::Status injected = absl::UnavailableError("server went away");
  injected.SetPayload("type/task", absl::Cord("ps 1"));
  store_.FailNextUpdate(injected);
  std::vector<Tensor> results;
  const Tensor argument = Tensor::FromValues<float>({2}, {1, 1});
  const absl::Status status = executable->Run({argument}, {}, &results);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("\"head/AssignAddVariable\""),
                                     HasSubstr("variable \"w\""),
                                     HasSubstr("server went away"))));
  EXPECT_EQ(status.GetPayload("type/task"), absl::Cord("ps 1"));
  EXPECT_TRUE(argument.IsSoleOwner());
  EXPECT_OK(executable->Run({argument}, {}, &results));
  EXPECT_THAT(Floats(results[0]), ElementsAre(1, 1));
}

TEST_F(ExecutableTest, KernelErrorsNameNodeAndOp) {
  EXPECT_THAT(RunOnce(
                  [](GraphBuilder& builder) {
                    GraphBuilder::NameScope scope(&builder, "loss");
                    builder.AddResult(
                        builder.Op("Fail", {FloatParameter(builder, {1})}));
                  },
                  {Tensor::Zeros(DType::kFloat32, {1})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("Fail \"loss/Fail\""),
                             HasSubstr("out of range"))));
}

TEST_F(ExecutableTest, NumericsAreCheckedOnlyIfEnabled) {
  const Graph graph = Trace([](GraphBuilder& builder) {
    GraphBuilder::NameScope scope(&builder, "dense");
    const Value x = FloatParameter(builder, {2});
    const Value square = builder.Op("Mul", {x, x});
    builder.AddResult(builder.Op("Add", {square, x}));
  });
  std::vector<Tensor> results;
  const Tensor overflowing = Tensor::FromValues<float>({2}, {1, 1e30f});
  ASSERT_OK_AND_ASSIGN(const auto unchecked, Compile(graph));
  EXPECT_OK(unchecked->Run({overflowing}, {}, &results));

  EnableCheckNumerics(true);
  const absl::Cleanup disable = [] { EnableCheckNumerics(false); };
  ASSERT_OK_AND_ASSIGN(const auto checked, Compile(graph));
  EXPECT_THAT(checked->Run({overflowing}, {}, &results),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("Mul \"dense/Mul\""),
                             HasSubstr("1 of 2 elements"),
                             HasSubstr("inf, element 1"))));
  EXPECT_THAT(
      checked->Run({Tensor::FromValues<float>({2}, {NAN, 0})}, {}, &results),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("argument 0 of graph \"test\"")));
  EXPECT_OK(
      checked->Run({Tensor::FromValues<float>({2}, {1, 2})}, {}, &results));
  EXPECT_THAT(Floats(results[0]), ElementsAre(2, 6));
}

TEST_F(ExecutableTest, RejectsArgumentsOfOtherTypes) {
  ASSERT_OK_AND_ASSIGN(
      const auto executable, Compile(Trace([](GraphBuilder& builder) {
        builder.AddResult(builder.Op("Relu", {FloatParameter(builder, {2})}));
      })));
  std::vector<Tensor> results;
  EXPECT_THAT(executable->Run({}, {}, &results),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(executable->Run({Tensor()}, {}, &results),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      executable->Run({Tensor::Zeros(DType::kFloat32, {3})}, {}, &results),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("float32[3]")));
}

TEST_F(ExecutableTest, RejectsMalformedGraphsAndOptions) {
  Graph graph = Trace([](GraphBuilder& builder) {
    builder.AddResult(builder.Op("Relu", {FloatParameter(builder, {2})}));
  });
  EXPECT_THAT(Compile(graph, {.intra_op_thread_count = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Compile(graph, {.plan_count_max = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  graph.nodes[1].inputs[0].node = 1;
  EXPECT_THAT(Compile(graph), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ExecutableTest, VariablesMustExistInTheStore) {
  const Graph graph = Trace([](GraphBuilder& builder) {
    builder.AddResult(ReadVariableForTest(builder, "unknown", {2}));
  });
  EXPECT_THAT(
      Executable::Compile(graph, TestOps(), kernels_, nullptr),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"unknown\"")));
  EXPECT_THAT(Compile(graph), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ExecutableTest, RejectsGraphsThatNeedTooMuchMemory) {
  ASSERT_OK_AND_ASSIGN(
      const auto executable,
      Compile(Trace([](GraphBuilder& builder) {
                const Value x = FloatParameter(builder, {Shape::kUnknown, 1});
                const Value y = FloatParameter(builder, {1, Shape::kUnknown});
                builder.AddResult(builder.Op("MatMul", {x, y}));
              }),
              {.plan_bytes_max = 1 << 20}));
  std::vector<Tensor> results;
  EXPECT_THAT(executable->Run({Tensor::Zeros(DType::kFloat32, {1024, 1}),
                               Tensor::Zeros(DType::kFloat32, {1, 1024})},
                              {}, &results),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("float32[1024,1024]")));
}

TEST_F(ExecutableTest, PlansAreKeptPerShapeAndBounded) {
  ASSERT_OK_AND_ASSIGN(
      const auto executable,
      Compile(Trace([](GraphBuilder& builder) {
                builder.AddResult(builder.Op(
                    "Relu", {FloatParameter(builder, {Shape::kUnknown})}));
              }),
              {.plan_count_max = 2}));
  std::vector<Tensor> results;
  for (const int64_t extent : {1, 2, 1, 3, 0, 1}) {
    EXPECT_OK(executable->Run({Tensor::Full(DType::kFloat32, {extent}, 4)}, {},
                              &results));
    EXPECT_EQ(Floats(results[0]), std::vector<float>(extent, 4));
    EXPECT_LE(executable->plan_count(), 2);
  }
}

TEST_F(ExecutableTest, StringsPassThroughKernels) {
  const auto body = [](GraphBuilder& builder) {
    const Value s = builder.Parameter("s", {DType::kString, {1}});
    const Value twice = builder.Op("Concatenate", {s, s});
    builder.AddResult(builder.Op("Concatenate", {twice, s}));
    builder.AddResult(builder.Op("Identity", {twice}));
  };
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> results,
      RunOnce(body, {Tensor::FromValues<std::string>({1}, {"ab"})}));
  EXPECT_EQ(results[0].flat<std::string>()[0], "ababab");
  EXPECT_EQ(results[1].flat<std::string>()[0], "abab");
}

// Traces a random graph over float[2,2] and returns all its values.
std::vector<Value> TraceRandomGraph(GraphBuilder& builder, uint64_t seed) {
  RandomStream random(seed);
  std::vector<Value> values = {FloatParameter(builder, {2, 2}),
                               builder.Constant(Tensor::FromValues<float>(
                                   {2, 2}, {0.5f, -0.25f, 1, 0.125f}))};
  const auto pick = [&] {
    const size_t recent = std::min<size_t>(values.size(), 6);
    return values[values.size() - 1 - random.Below(recent)];
  };
  for (int i = 0; i < 60; ++i) {
    switch (random.Below(6)) {
      case 0:
        values.push_back(builder.Op("Add", {pick(), pick()}));
        break;
      case 1:
        values.push_back(builder.Op("Mul", {pick(), pick()}));
        break;
      case 2:
        values.push_back(builder.Op("Relu", {pick()}));
        break;
      case 3:
        values.push_back(builder.Op("Identity", {pick()}));
        break;
      case 4: {
        const Value flat = builder.Op("Reshape", {pick()},
                                      {{"shape", std::vector<int64_t>{4}}});
        values.push_back(builder.Op("ReshapeLike", {flat, pick()}));
        break;
      }
      default:
        for (const Value half : builder.OpWithOutputs("Halves", {pick()})) {
          values.push_back(half);
        }
    }
  }
  return values;
}

TEST_F(ExecutableTest, RandomGraphsGiveTheSameWhenEveryValueHasItsOwnMemory) {
  const std::vector<Tensor> arguments = {
      Tensor::FromValues<float>({2, 2}, {1, -2, 0.5f, 3})};
  for (uint64_t seed = 0; seed < 100; ++seed) {
    ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> all,
        RunOnce(
            [&](GraphBuilder& builder) {
              for (Value value : TraceRandomGraph(builder, seed)) {
                builder.AddResult(value);
              }
            },
            arguments));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> last,
                         RunOnce(
                             [&](GraphBuilder& builder) {
                               const auto values =
                                   TraceRandomGraph(builder, seed);
                               builder.AddResult(values[values.size() / 2]);
                               builder.AddResult(values.back());
                             },
                             arguments));
    EXPECT_TRUE(BitwiseEqual(last[0], all[all.size() / 2])) << "seed " << seed;
    EXPECT_TRUE(BitwiseEqual(last[1], all.back())) << "seed " << seed;
  }
}

TEST_F(ExecutableTest, TheStepSeedReachesKernels) {
  ASSERT_OK_AND_ASSIGN(const auto executable,
                       Compile(Trace([](GraphBuilder& builder) {
                         builder.AddResult(builder.Op("StepSeed", {}));
                       })));
  std::vector<Tensor> results;
  EXPECT_OK(executable->Run({}, {.step_seed = 77}, &results));
  EXPECT_EQ(results[0].flat<int64_t>()[0], 77);
}

TEST_F(ExecutableTest, MissingKernelsAreNamed) {
  const KernelRegistry none;
  ASSERT_OK_AND_ASSIGN(
      const auto executable,
      Executable::Compile(Trace([](GraphBuilder& builder) {
                            builder.AddResult(builder.Op(
                                "Relu", {FloatParameter(builder, {2})}));
                          }),
                          TestOps(), none, nullptr));
  std::vector<Tensor> results;
  EXPECT_THAT(
      executable->Run({Tensor::Zeros(DType::kFloat32, {2})}, {}, &results),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("Relu \"Relu\"")));
}

}  // namespace
}  // namespace muster
