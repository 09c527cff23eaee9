// Steps that several replicas run synchronously, each on its own thread.

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/compute/autodiff/gradients.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/ops.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/runtime/testing/test_ops.h"
#include "common/compute/runtime/testing/thread_replicas.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TensorType kAnyRows = {DType::kFloat32, {Shape::kUnknown, 2}};

Tensor Rows(const std::vector<float>& elements) {
  return Tensor::FromSpan<float>({static_cast<int64_t>(elements.size()) / 2, 2},
                                 elements);
}

Graph Trace(const TensorType& parameter,
            const std::function<void(Value)>& body) {
  GraphBuilder builder(&BuiltinOps(), "step");
  body(builder.Parameter("x", parameter));
  auto graph = std::move(builder).Build();
  EXPECT_OK(graph);
  return *std::move(graph);
}

struct Outcome {
  absl::Status status;
  std::vector<Tensor> results;
};

// One executable for each replica.
class Replicas {
 public:
  Replicas(const Graph& graph, int count) : group_(count) {
    for (int r = 0; r < count; ++r) {
      auto executable =
          Executable::Compile(graph, BuiltinOps(), CpuKernels(), nullptr,
                              {.replica_link = group_.link(r)});
      EXPECT_OK(executable);
      executables_.push_back(*std::move(executable));
    }
  }

  // Runs replica r with arguments[r].
  std::vector<Outcome> Run(const std::vector<std::vector<Tensor>>& arguments) {
    std::vector<Outcome> outcomes(arguments.size());
    std::vector<std::thread> threads;
    for (size_t r = 0; r < arguments.size(); ++r) {
      threads.emplace_back([&, r] {
        outcomes[r].status = executables_[r]->Run(
            arguments[r], {.step_seed = 1}, &outcomes[r].results);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }

  const Executable& executable(int replica) { return *executables_[replica]; }

 private:
  ThreadReplicas group_;
  std::vector<std::unique_ptr<Executable>> executables_;
};

std::vector<float> Floats(const Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  return {flat.begin(), flat.end()};
}

TEST(ReplicaExecutionTest, ReplicaIdDiffersPerReplica) {
  Replicas replicas(Trace(kAnyRows,
                          [](Value x) {
                            x.builder()->AddResult(ReplicaId(*x.builder()));
                            x.builder()->AddResult(ReplicaCount(*x.builder()));
                          }),
                    3);
  const auto outcomes = replicas.Run({{Rows({})}, {Rows({})}, {Rows({})}});
  for (int r = 0; r < 3; ++r) {
    ASSERT_OK(outcomes[r].status);
    EXPECT_EQ(outcomes[r].results[0].scalar<int32_t>(), r);
    EXPECT_EQ(outcomes[r].results[1].scalar<int32_t>(), 3);
  }
}

TEST(ReplicaExecutionTest, ReducesWhatAllBring) {
  Replicas replicas(
      Trace(kAnyRows,
            [](Value x) {
              for (const char* reduction :
                   {"sum", "mean", "min", "max", "prod"}) {
                x.builder()->AddResult(AllReduce(x, reduction));
              }
              // Constants are reduced when the step runs, not while it is
              // planned.
              x.builder()->AddResult(AllReduce(
                  x.builder()->Constant(Tensor::Scalar(2.0f)), "sum"));
            }),
      2);
  for (int step = 0; step < 3; ++step) {
    const auto outcomes = replicas.Run({{Rows({1, 8})}, {Rows({3, -2})}});
    for (const Outcome& outcome : outcomes) {
      ASSERT_OK(outcome.status);
      EXPECT_THAT(Floats(outcome.results[0]), ElementsAre(4, 6));
      EXPECT_THAT(Floats(outcome.results[1]), ElementsAre(2, 3));
      EXPECT_THAT(Floats(outcome.results[2]), ElementsAre(1, -2));
      EXPECT_THAT(Floats(outcome.results[3]), ElementsAre(3, 8));
      EXPECT_THAT(Floats(outcome.results[4]), ElementsAre(3, -16));
    }
  }
}

// Replicas plan when they first see a combination of shapes, which is at
// different times.
TEST(ReplicaExecutionTest, NothingIsExchangedWhileAStepIsPlanned) {
  Replicas replicas(
      Trace(kAnyRows,
            [](Value x) {
              x.builder()->AddResult(Sum(x));
              x.builder()->AddResult(AllReduce(
                  x.builder()->Constant(Tensor::Scalar(2.0f)), "sum"));
            }),
      2);
  for (const std::vector<float>& rows :
       std::vector<std::vector<float>>{{1, 2}, {1, 2, 3, 4}, {}}) {
    const auto outcomes = replicas.Run({{Rows(rows)}, {Rows({1, 2})}});
    for (const Outcome& outcome : outcomes) {
      ASSERT_OK(outcome.status);
      EXPECT_EQ(outcome.results[1].scalar<float>(), 4);
    }
  }
}

TEST(ReplicaExecutionTest, GathersUnevenRowsInReplicaOrder) {
  Replicas replicas(Trace(kAnyRows,
                          [](Value x) {
                            x.builder()->AddResult(AllGather(x, 0));
                            // The size of a gathered value is known, also to
                            // nodes that read it.
                            const Value twice = AllGather(AllGather(x, 0), 0);
                            x.builder()->AddResult(Sum(twice * twice));
                          }),
                    3);
  for (int step = 0; step < 2; ++step) {
    const auto outcomes =
        replicas.Run({{Rows({1, 2})}, {Rows({})}, {Rows({3, 4, 5, 6})}});
    for (const Outcome& outcome : outcomes) {
      ASSERT_OK(outcome.status);
      EXPECT_EQ(outcome.results[0].shape(), (Shape{3, 2}));
      EXPECT_THAT(Floats(outcome.results[0]), ElementsAre(1, 2, 3, 4, 5, 6));
      EXPECT_EQ(outcome.results[1].scalar<float>(), 3 * 91);
    }
  }
  // This replica's rows are unchanged; another replica's are not.
  const auto outcomes =
      replicas.Run({{Rows({1, 2})}, {Rows({7, 8})}, {Rows({3, 4, 5, 6})}});
  ASSERT_OK(outcomes[0].status);
  EXPECT_THAT(Floats(outcomes[0].results[0]),
              ElementsAre(1, 2, 7, 8, 3, 4, 5, 6));
  EXPECT_EQ(replicas.executable(0).plan_count(), 2);
}

TEST(ReplicaExecutionTest, GathersColumnsToo) {
  Replicas replicas(
      Trace({DType::kFloat32, {2, Shape::kUnknown}},
            [](Value x) { x.builder()->AddResult(AllGather(x, 1)); }),
      2);
  const auto outcomes =
      replicas.Run({{Tensor::FromValues<float>({2, 1}, {1, 4})},
                    {Tensor::FromValues<float>({2, 2}, {2, 3, 5, 6})}});
  for (const Outcome& outcome : outcomes) {
    ASSERT_OK(outcome.status);
    EXPECT_EQ(outcome.results[0].shape(), (Shape{2, 3}));
    EXPECT_THAT(Floats(outcome.results[0]), ElementsAre(1, 2, 3, 4, 5, 6));
  }
}

// Each replica weights the rows of all replicas by its own id, so that all
// losses differ. The sum of the losses is differentiated.
TEST(ReplicaExecutionTest, GradientsSumOverAllReplicas) {
  Replicas replicas(
      Trace(kAnyRows,
            [](Value x) {
              const Value weight =
                  Cast(ReplicaId(*x.builder()), DType::kFloat32) + 1.0;
              const Value gathered = AllGather(x, 0);
              const Value loss = Sum(gathered * gathered) * weight;
              x.builder()->AddResult(Gradients(loss, {x})[0].dense);
              const Value mean = AllReduce(Sum(x), "mean");
              x.builder()->AddResult(Gradients(mean * weight, {x})[0].dense);
            }),
      2);
  const auto outcomes = replicas.Run({{Rows({1, 2})}, {Rows({3, 4, 5, 6})}});
  ASSERT_OK(outcomes[0].status);
  ASSERT_OK(outcomes[1].status);
  // The weights of both replicas add up to 3.
  EXPECT_THAT(Floats(outcomes[0].results[0]), ElementsAre(6, 12));
  EXPECT_THAT(Floats(outcomes[1].results[0]), ElementsAre(18, 24, 30, 36));
  EXPECT_THAT(Floats(outcomes[0].results[1]), ElementsAre(1.5, 1.5));
  EXPECT_THAT(Floats(outcomes[1].results[1]), ElementsAre(1.5, 1.5, 1.5, 1.5));
}

// The mean over all examples is differentiated. Replica 0 has one example,
// replica 1 has three. The gradient of each replica, weighted by its own number
// of examples, yields the gradient of that mean.
TEST(ReplicaExecutionTest, GradientsOfMeansCountByExamples) {
  Replicas replicas(
      Trace(kAnyRows,
            [](Value x) {
              const Value id = Cast(ReplicaId(*x.builder()), DType::kFloat32);
              SetLossDenominator(id * 2.0 + 1.0);
              const Value factor = id + 1.0;
              const Value gathered = AllGather(x, 0);
              x.builder()->AddResult(
                  Gradients(Sum(gathered) * factor, {x})[0].dense);
              const Value sum = AllReduce(Sum(x), "sum");
              x.builder()->AddResult(Gradients(sum * factor, {x})[0].dense);
            }),
      2);
  const auto outcomes = replicas.Run({{Rows({1, 2})}, {Rows({3, 4})}});
  for (int r = 0; r < 2; ++r) {
    ASSERT_OK(outcomes[r].status);
    // The sum over all examples is 1 x 1 + 3 x 2.
    const float each = r == 0 ? 7.0f : 7.0f / 3;
    for (const Tensor& gradient : outcomes[r].results) {
      EXPECT_THAT(Floats(gradient), ElementsAre(each, each));
    }
  }
}

// A replica without examples has the undefined gradient of an empty mean.
TEST(ReplicaExecutionTest, GradientsOfAnEmptyReplicaAreIgnored) {
  Replicas replicas(
      Trace(kAnyRows,
            [](Value x) {
              const Value count = CountAlong(x, {0});
              SetLossDenominator(count);
              const Value loss = AllReduce(Sum(x), "sum") / count;
              x.builder()->AddResult(Gradients(loss, {x})[0].dense);
            }),
      2);
  const auto outcomes = replicas.Run({{Rows({1, 2, 3, 4})}, {Rows({})}});
  ASSERT_OK(outcomes[0].status);
  EXPECT_THAT(Floats(outcomes[0].results[0]), ElementsAre(0.5, 0.5, 0.5, 0.5));
}

TEST(ReplicaExecutionTest, SecondDerivativesPassThroughAGather) {
  Replicas replicas(
      Trace(kAnyRows,
            [](Value x) {
              const Value gathered = AllGather(x, 0);
              const Value first =
                  Gradients(Sum(gathered * gathered * gathered), {x})[0].dense;
              x.builder()->AddResult(Gradients(Sum(first), {x})[0].dense);
            }),
      2);
  const auto outcomes = replicas.Run({{Rows({1, 2})}, {Rows({3, 4})}});
  ASSERT_OK(outcomes[0].status);
  ASSERT_OK(outcomes[1].status);
  // There are two losses, each the sum of x^3 over all replicas.
  EXPECT_THAT(Floats(outcomes[0].results[0]), ElementsAre(12, 24));
  EXPECT_THAT(Floats(outcomes[1].results[0]), ElementsAre(36, 48));
}

TEST(ReplicaExecutionTest, UnreadCollectivesAreNotDropped) {
  const Graph graph = Trace(kAnyRows, [](Value x) {
    AllReduce(x, "sum");
    x.builder()->AddResult(x);
  });
  Replicas replicas(graph, 1);
  const auto& nodes = replicas.executable(0).graph().nodes;
  EXPECT_EQ(nodes.back().op, "AllReduce");
}

TEST(ReplicaExecutionTest, AnErrorOfTheLinkNamesTheNode) {
  Replicas replicas(
      Trace(kAnyRows,
            [](Value x) { x.builder()->AddResult(AllReduce(x, "sum")); }),
      2);
  const auto outcomes = replicas.Run({{Rows({1, 2})}, {Rows({})}});
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.status, StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("AllReduce \"AllReduce\"")));
  }
}

TEST(ReplicaExecutionTest, ReplicasThatCannotGatherAllHearIt) {
  Replicas replicas(
      Trace({DType::kFloat32, {Shape::kUnknown, Shape::kUnknown}},
            [](Value x) { x.builder()->AddResult(AllGather(x, 0)); }),
      2);
  const auto outcomes = replicas.Run(
      {{Rows({1, 2})}, {Tensor::FromValues<float>({1, 3}, {1, 2, 3})}});
  for (const Outcome& outcome : outcomes) {
    EXPECT_THAT(outcome.status, StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("float32[1,3]")));
  }
}

absl::StatusOr<std::vector<std::string>> EventsOfWeightedStep(float weight) {
  FakeVariableStore store({{"v", Tensor::FromValues<float>({2}, {1, 2})}});
  const VariableHandle v = {"v", {DType::kFloat32, {2}}};
  const Graph graph = Trace({DType::kFloat32, {}}, [&](Value weight) {
    const Value early =
        weight.builder()->Constant(Tensor::FromValues<float>({2}, {5, 5}));
    const Value half = weight * 0.5;
    SetLossDenominator(half * 2.0);
    ApplyGradient(v, early);
  });
  ASSIGN_OR_RETURN(
      const auto executable,
      Executable::Compile(graph, BuiltinOps(), CpuKernels(), &store));
  std::vector<Tensor> results;
  RETURN_IF_ERROR(executable->Run({Tensor::Scalar(weight)}, {}, &results));
  return store.events();
}

TEST(GradientWeightTest, IsSaidBeforeTheGradientsHoweverEarlyTheyAre) {
  EXPECT_THAT(
      EventsOfWeightedStep(24),
      IsOkAndHolds(ElementsAre("begin 0", "weight 24", "update v", "commit")));
  EXPECT_THAT(
      EventsOfWeightedStep(0),
      IsOkAndHolds(ElementsAre("begin 0", "weight 0", "update v", "commit")));
}

TEST(GradientWeightTest, MustBeANumberOfExamples) {
  for (const float weight : {-1.0f, std::nanf(""), 1.0f / 0.0f}) {
    EXPECT_THAT(
        EventsOfWeightedStep(weight),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("SetLossDenominator \"SetLossDenominator\"")));
  }
}

TEST(GradientWeightTest, HasNoEffectWithoutVariables) {
  const Graph graph = Trace({DType::kFloat32, {}}, [](Value weight) {
    SetLossDenominator(weight);
    weight.builder()->AddResult(weight + 1.0);
  });
  ASSERT_OK_AND_ASSIGN(
      const auto executable,
      Executable::Compile(graph, BuiltinOps(), CpuKernels(), nullptr));
  std::vector<Tensor> results;
  ASSERT_OK(executable->Run({Tensor::Scalar(1.0f)}, {}, &results));
  EXPECT_EQ(results[0].scalar<float>(), 2);
}

TEST(ExampleOffsetTest, RandomNumbersDoNotDependOnTheDivisionOfABatch) {
  // The same holds if all operands are constant, so that the numbers could be
  // drawn once.
  const Graph graph = Trace(kAnyRows, [](Value x) {
    const Value seed = ConstantSeed(*x.builder(), 4);
    x.builder()->AddResult(RandomUniformLike(seed, x));
    x.builder()->AddResult(RandomUniformLike(
        seed, x.builder()->Constant(Tensor::Zeros(DType::kFloat32, {1, 2}))));
  });
  ASSERT_OK_AND_ASSIGN(
      const auto executable,
      Executable::Compile(graph, BuiltinOps(), CpuKernels(), nullptr));
  std::vector<Tensor> whole;
  ASSERT_OK(
      executable->Run({Tensor::Zeros(DType::kFloat32, {5, 2})}, {}, &whole));
  for (const int64_t begin : {0, 1, 3}) {
    std::vector<Tensor> part;
    ASSERT_OK(executable->Run({Tensor::Zeros(DType::kFloat32, {5 - begin, 2})},
                              {.example_offset = begin}, &part));
    EXPECT_TRUE(BitwiseEqual(part[0], whole[0].SliceRows(begin, 5))) << begin;
    EXPECT_TRUE(BitwiseEqual(part[1], whole[0].SliceRows(begin, begin + 1)))
        << begin;
  }
  std::vector<Tensor> results;
  EXPECT_THAT(executable->Run({Tensor::Zeros(DType::kFloat32, {1, 2})},
                              {.example_offset = -1}, &results),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("example_offset is -1")));
}

}  // namespace
}  // namespace muster
