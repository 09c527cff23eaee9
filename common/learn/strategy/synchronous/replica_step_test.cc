#include "common/learn/strategy/synchronous/replica_step.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/allocations/allocation_counter.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/replica_threads.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/tensor.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

proto::VariableSpec Spec(const std::string& name, int rows, int columns) {
  proto::VariableSpec spec;
  spec.set_name(name);
  spec.set_dtype(proto::DT_FLOAT);
  spec.mutable_shape()->add_dim(rows);
  if (columns > 0) spec.mutable_shape()->add_dim(columns);
  return spec;
}

// Replicas on threads, each with variables "w" [2] and "table" [4,1] of zeros,
// which plain SGD with a learning rate of 1 updates.
class ReplicaStepTest : public ::testing::Test {
 protected:
  // The input of a replica: its arguments, and whether it has data.
  struct ReplicaInput {
    std::vector<Tensor> arguments;
    bool has_data = true;
    ReplicaStep::StepRequest request = ReplicaStep::StepRequest::kContinue;
  };

  void Start(int replica_count) {
    threads_ = std::make_unique<ReplicaThreads>(replica_count);
    communicators_ = CreateLocalGroup(replica_count).value();
    proto::Optimizer sgd;
    sgd.mutable_sgd()->set_learning_rate(1);
    for (int i = 0; i < replica_count; ++i) {
      stores_.push_back(std::make_unique<LocalVariableStore>());
      ASSERT_OK(stores_.back()->SetOptimizer(sgd));
      ASSERT_OK(stores_.back()->Create(Spec("w", 2, 0)));
      ASSERT_OK(stores_.back()->Create(Spec("table", 4, 1)));
    }
  }

  void CreateVariable(const proto::VariableSpec& spec) {
    for (const auto& store : stores_) ASSERT_OK(store->Create(spec));
  }

  absl::Status Compile(
      const Graph& graph,
      const std::function<void(ReplicaStep::Options*)>& edit =
          [](ReplicaStep::Options*) {}) {
    steps_.clear();
    executables_.clear();
    results_.resize(stores_.size());
    for (size_t i = 0; i < stores_.size(); ++i) {
      ReplicaStep::Options options{.communicator = communicators_[i].get(),
                                   .variables = stores_[i].get(),
                                   .timeout = absl::Seconds(60)};
      for (const NodeOutput& result : graph.results) {
        options.result_types.push_back(graph.TypeOf(result));
      }
      edit(&options);
      ASSIGN_OR_RETURN(auto step, ReplicaStep::Create(std::move(options)));
      executables_.emplace_back();
      for (int e = 0; e < step->executable_count(); ++e) {
        ASSIGN_OR_RETURN(executables_.back().emplace_back(),
                         Executable::Compile(graph, BuiltinOps(), CpuKernels(),
                                             step->variables(),
                                             {.replica_link = step->link(e)}));
      }
      steps_.push_back(std::move(step));
    }
    return absl::OkStatus();
  }

  absl::Status Run(absl::Span<const ReplicaInput> brought) {
    return threads_->Run(
        [&](int replica) -> absl::Status {
          const ReplicaInput& own = brought[replica];
          ReplicaStep& step = *steps_[replica];
          RETURN_IF_ERROR(step.Begin(own.request));
          step.BeginLeaf(0, own.has_data);
          if (own.has_data || step.MustRun()) {
            RETURN_IF_ERROR(executables_[replica][0]->Run(own.arguments, {},
                                                          &results_[replica]));
          }
          RETURN_IF_ERROR(step.EndLeaf(0, results_[replica]));
          return step.Finish();
        },
        [&](const absl::Status& status) {
          for (const auto& communicator : communicators_) {
            communicator->Abort(status);
          }
        });
  }

  // As Run(), with fixed leaves that all have data: leaf i runs with
  // arguments[i].
  absl::Status RunLeaves(absl::Span<const std::vector<Tensor>> arguments) {
    std::vector<std::vector<Tensor>> results(arguments.size());
    return threads_->Run(
        [&](int replica) -> absl::Status {
          ReplicaStep& step = *steps_[replica];
          const int64_t begin = PartOf(arguments.size(), replica).begin;
          RETURN_IF_ERROR(step.Begin(ReplicaStep::StepRequest::kContinue));
          RETURN_IF_ERROR(step.RunLeaves([&](int leaf) -> absl::Status {
            auto& executables = executables_[replica];
            step.BeginLeaf(leaf, true);
            RETURN_IF_ERROR(
                executables[executables.size() == 1 ? 0 : leaf]->Run(
                    arguments[begin + leaf], {}, &results[begin + leaf]));
            return step.EndLeaf(leaf, results[begin + leaf]);
          }));
          return step.Finish();
        },
        [&](const absl::Status& status) {
          for (const auto& communicator : communicators_) {
            communicator->Abort(status);
          }
        });
  }

  Communicator::Range PartOf(int64_t leaf_count, int replica) const {
    return Communicator::PartOf(leaf_count, replica,
                                static_cast<int>(stores_.size()));
  }
  Leaves FixedLeaves(int count) const {
    Leaves fixed{.count = count};
    for (size_t i = 0; i < stores_.size(); ++i) {
      const Communicator::Range part = PartOf(count, static_cast<int>(i));
      fixed.count_of_rank.push_back(static_cast<int>(part.end - part.begin));
    }
    return fixed;
  }

  std::vector<float> Values(int replica, const std::string& variable) {
    const Tensor value = stores_[replica]->Read(variable).value();
    const absl::Span<const float> flat = value.flat<float>();
    return {flat.begin(), flat.end()};
  }

  std::unique_ptr<ReplicaThreads> threads_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<std::unique_ptr<LocalVariableStore>> stores_;
  std::vector<std::unique_ptr<ReplicaStep>> steps_;
  std::vector<std::vector<std::unique_ptr<Executable>>> executables_;
  std::vector<std::vector<Tensor>> results_;
};

const VariableHandle kW{"w", {DType::kFloat32, {2}}};
const VariableHandle kTable{"table", {DType::kFloat32, {4, 1}}};

Graph Trace(absl::FunctionRef<void(GraphBuilder&)> body) {
  GraphBuilder builder(&BuiltinOps(), "step");
  body(builder);
  return std::move(builder).Build().value();
}

// Applies x as the gradient of w; its result is the sum of x.
Graph GradientStep() {
  return Trace([](GraphBuilder& builder) {
    const Value x = builder.Parameter("x", {DType::kFloat32, {2}});
    ApplyGradient(kW, x);
    builder.AddResult(Sum(x, {0}));
  });
}

// As GradientStep(), with a gradient that is a mean over `weight` examples.
Graph WeightedStep() {
  return Trace([](GraphBuilder& builder) {
    const Value x = builder.Parameter("x", {DType::kFloat32, {2}});
    const Value weight = builder.Parameter("weight", {DType::kFloat32, {}});
    SetLossDenominator(weight);
    ApplyGradient(kW, x);
  });
}

Tensor Pair(float a, float b) { return Tensor::FromValues<float>({2}, {a, b}); }

TEST_F(ReplicaStepTest, GradientsWithoutAWeightAreSummed) {
  Start(3);
  ASSERT_OK(Compile(GradientStep()));
  for (int step = 1; step <= 2; ++step) {
    ASSERT_OK(Run({{{Pair(1, 10)}}, {{Pair(2, 20)}}, {{Pair(4, 40)}}}));
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(Values(i, "w"), ElementsAre(-7 * step, -70 * step));
      EXPECT_EQ(steps_[i]->outcome().leaves_with_data, 3);
      EXPECT_FLOAT_EQ(steps_[i]->results()[0].scalar<float>(), 77);
    }
  }
  EXPECT_EQ(stores_[0]->UpdateCount("w").value(), 2);
}

TEST_F(ReplicaStepTest, WeightedGradientsBecomeTheMeanOverAllExamples) {
  for (const double expected_weight : {1.0, 4.0, 64.0}) {
    stores_.clear();
    Start(2);
    ASSERT_OK(Compile(WeightedStep(), [&](ReplicaStep::Options* options) {
      options->expected_weight = expected_weight;
    }));
    ASSERT_OK(Run({{{Pair(1, 8), Tensor::Scalar<float>(3)}},
                   {{Pair(5, 4), Tensor::Scalar<float>(1)}}}));
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(Values(i, "w"), ElementsAre(-2, -7)) << expected_weight;
    }
  }
}

TEST_F(ReplicaStepTest, AReplicaWithoutDataContributesNothing) {
  Start(2);
  ASSERT_OK(Compile(WeightedStep()));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ASSERT_OK(Run({{{Pair(1, 2), Tensor::Scalar<float>(3)}},
                 {{Pair(nan, nan), Tensor::Scalar<float>(0)}, false}}));
  EXPECT_THAT(Values(0, "w"), ElementsAre(-1, -2));
  EXPECT_THAT(Values(1, "w"), ElementsAre(-1, -2));
  // A replica whose rows have no weight contributes nothing, either.
  ASSERT_OK(Run({{{Pair(1, 2), Tensor::Scalar<float>(3)}},
                 {{Pair(nan, nan), Tensor::Scalar<float>(0)}}}));
  EXPECT_THAT(Values(1, "w"), ElementsAre(-2, -4));
  EXPECT_EQ(steps_[0]->outcome().leaves_with_data, 2);
}

TEST_F(ReplicaStepTest, AReplicaThatMustRunWithoutDataContributesNothing) {
  Start(2);
  proto::VariableSpec spec = Spec("total", 2, 0);
  spec.set_aggregation(proto::AGGREGATION_SUM);
  CreateVariable(spec);
  ASSERT_OK(Compile(Trace([](GraphBuilder& builder) {
    const Value x = builder.Parameter("x", {DType::kFloat32, {2}});
    const VariableHandle total = {"total", {DType::kFloat32, {2}}};
    AssignAddVariable(total, x);
    ApplyGradient(kW, x);
    builder.AddResult(Sum(ReadVariable(builder, total), {0}));
  })));
  EXPECT_TRUE(steps_[0]->MustRun());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ASSERT_OK(Run({{{Pair(nan, nan)}, false}, {{Pair(1, 2)}}}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Values(i, "w"), ElementsAre(-1, -2));
    EXPECT_THAT(Values(i, "total"), ElementsAre(1, 2));
    EXPECT_FLOAT_EQ(steps_[i]->results()[0].scalar<float>(), 3);
  }
}

TEST_F(ReplicaStepTest, AStepWithoutDataChangesNothing) {
  Start(2);
  ASSERT_OK(Compile(GradientStep()));
  ASSERT_OK(Run({{{}, false}, {{}, false}}));
  EXPECT_EQ(steps_[1]->outcome().leaves_with_data, 0);
  EXPECT_THAT(Values(0, "w"), ElementsAre(0, 0));
  EXPECT_EQ(stores_[0]->UpdateCount("w").value(), 0);
}

TEST_F(ReplicaStepTest, AStepWithAStopRequestChangesNothing) {
  Start(2);
  ASSERT_OK(Compile(GradientStep()));
  ASSERT_OK(
      Run({{{Pair(1, 1)}}, {{}, false, ReplicaStep::StepRequest::kStop}}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(steps_[i]->outcome().stop_requested);
    EXPECT_THAT(Values(i, "w"), ElementsAre(0, 0));
  }
}

TEST_F(ReplicaStepTest, RowsOfAllReplicasAreApplied) {
  Start(3);
  ASSERT_OK(Compile(Trace([](GraphBuilder& builder) {
    const Value rows =
        builder.Parameter("rows", {DType::kFloat32, {Shape::kUnknown, 1}});
    const Value indices =
        builder.Parameter("indices", {DType::kInt32, {Shape::kUnknown}});
    ApplySparseGradient(kTable, rows, indices);
  })));
  const auto rows = [](std::initializer_list<int32_t> indices) {
    const int64_t count = static_cast<int64_t>(indices.size());
    return std::vector<Tensor>{Tensor::Full(DType::kFloat32, {count, 1}, 1),
                               Tensor::FromValues<int32_t>({count}, indices)};
  };
  ASSERT_OK(Run({{rows({0, 2})}, {rows({})}, {rows({2, 2, 3})}}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Values(i, "table"), ElementsAre(-1, 0, -3, -1));
  }
  ASSERT_OK(Run({{rows({1})}, {rows({}), false}, {rows({1})}}));
  EXPECT_THAT(Values(2, "table"), ElementsAre(-1, -2, -3, -1));
}

// w += x, whichever aggregation combines the replicas' values.
Graph AssignAddStep() {
  return Trace([](GraphBuilder& builder) {
    const Value x = builder.Parameter("x", {DType::kFloat32, {2}});
    const VariableHandle total{"total", {DType::kFloat32, {2}}};
    AssignAddVariable(total, x);
    builder.AddResult(Sum(ReadVariable(builder, total), {0}));
  });
}

TEST_F(ReplicaStepTest, AssignmentsFollowTheVariablesAggregation) {
  const struct {
    proto::VariableAggregation aggregation;
    float wanted;
  } cases[] = {{proto::AGGREGATION_SUM, 5},
               {proto::AGGREGATION_MEAN, 2.5},
               {proto::AGGREGATION_ONLY_FIRST_REPLICA, 1}};
  for (const auto& [aggregation, wanted] : cases) {
    stores_.clear();
    Start(3);
    proto::VariableSpec spec = Spec("total", 2, 0);
    spec.set_aggregation(aggregation);
    CreateVariable(spec);
    ASSERT_OK(Compile(AssignAddStep()));
    EXPECT_TRUE(steps_[0]->MustRun());
    // The last replica has no data: a mean is over the replicas with data.
    ASSERT_OK(Run({{{Pair(1, 1)}}, {{Pair(4, 4)}}, {{Pair(100, 100)}, false}}));
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(Values(i, "total"), ElementsAre(wanted, wanted));
    }
    // The step has read its own write.
    EXPECT_FLOAT_EQ(steps_[0]->results()[0].scalar<float>(), 4 * wanted);
  }
}

TEST_F(ReplicaStepTest, UnreadAssignmentsAreAppliedAtTheEnd) {
  const struct {
    proto::VariableAggregation aggregation;
    Tensor assigned;
    std::vector<float> wanted;
  } cases[] = {{proto::AGGREGATION_SUM, Pair(5, 10), {10 + 5, 20 + 10}},
               {proto::AGGREGATION_MEAN, Pair(10, 20), {10 + 2.5, 20 + 5}}};
  for (const auto& tried : cases) {
    stores_.clear();
    Start(3);
    proto::VariableSpec spec = Spec("total", 2, 0);
    spec.set_aggregation(tried.aggregation);
    CreateVariable(spec);
    // Both updates, in this order.
    ASSERT_OK(Compile(Trace([&](GraphBuilder& builder) {
      const Value x = builder.Parameter("x", {DType::kFloat32, {2}});
      const VariableHandle total = {"total", {DType::kFloat32, {2}}};
      AssignVariable(total, builder.Constant(tried.assigned));
      ApplyGradient(kW, x);
      AssignAddVariable(total, x);
    })));
    EXPECT_FALSE(steps_[0]->MustRun());
    // This step is discarded.
    ASSERT_OK(Run({{{Pair(1, 2)}},
                   {{Pair(4, 8)}},
                   {{}, false, ReplicaStep::StepRequest::kStop}}));
    EXPECT_THAT(Values(1, "total"), ElementsAre(0, 0));
    ASSERT_OK(Run({{{Pair(1, 2)}}, {{Pair(4, 8)}}, {{}, false}}));
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(Values(i, "total"), tried.wanted);
      EXPECT_THAT(Values(i, "w"), ElementsAre(-5, -10));
    }
  }
}

TEST_F(ReplicaStepTest, AssignmentsNeedAnAggregation) {
  Start(2);
  CreateVariable(Spec("total", 2, 0));
  EXPECT_THAT(Compile(AssignAddStep()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"total\""),
                             HasSubstr("set its aggregation"))));
}

TEST_F(ReplicaStepTest, VariablesSynchronizedOnReadTakeTheirReplicasUpdates) {
  Start(2);
  proto::VariableSpec spec = Spec("total", 2, 0);
  spec.set_synchronization(proto::SYNCHRONIZATION_ON_READ);
  spec.set_aggregation(proto::AGGREGATION_SUM);
  CreateVariable(spec);
  ASSERT_OK(Compile(AssignAddStep()));
  EXPECT_FALSE(steps_[0]->MustRun());
  ASSERT_OK(Run({{{Pair(1, 2)}}, {{Pair(4, 8)}}}));
  EXPECT_THAT(Values(0, "total"), ElementsAre(1, 2));
  EXPECT_THAT(Values(1, "total"), ElementsAre(4, 8));
}

TEST_F(ReplicaStepTest, RowsAreScatteredByTheAggregation) {
  Start(2);
  proto::VariableSpec spec = Spec("rows", 3, 1);
  spec.set_aggregation(proto::AGGREGATION_MEAN);
  CreateVariable(spec);
  const Graph add = Trace([](GraphBuilder& builder) {
    const Value x = builder.Parameter("x", {DType::kFloat32, {1, 1}});
    const Value index = builder.Parameter("index", {DType::kInt64, {1}});
    ScatterAddVariable({"rows", {DType::kFloat32, {3, 1}}}, index, x);
  });
  ASSERT_OK(Compile(add));
  const auto row = [](int64_t index, float value) {
    return std::vector<Tensor>{Tensor::FromValues<float>({1, 1}, {value}),
                               Tensor::FromValues<int64_t>({1}, {index})};
  };
  ASSERT_OK(Run({{row(2, 6)}, {row(0, 4)}}));
  EXPECT_THAT(Values(0, "rows"), ElementsAre(2, 0, 3));
  EXPECT_THAT(Values(1, "rows"), ElementsAre(2, 0, 3));

  const Graph set = Trace([](GraphBuilder& builder) {
    const Value x = builder.Parameter("x", {DType::kFloat32, {1, 1}});
    const Value index = builder.Parameter("index", {DType::kInt64, {1}});
    ScatterUpdateVariable({"rows", {DType::kFloat32, {3, 1}}}, index, x);
  });
  EXPECT_THAT(Compile(set), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("ONLY_FIRST_REPLICA")));
}

TEST_F(ReplicaStepTest, FixedLeavesGiveTheSameBitsToAnyNumberOfReplicas) {
  const std::vector<Tensor> leaves = {Pair(0.1f, 1e8f), Pair(0.2f, 1),
                                      Pair(0.3f, -1e8f), Pair(0.4f, 1)};
  std::vector<float> wanted;
  for (int replica_count = 1; replica_count <= 4; ++replica_count) {
    stores_.clear();
    Start(replica_count);
    proto::VariableSpec moving = Spec("moving", 2, 0);
    moving.set_aggregation(proto::AGGREGATION_MEAN);
    CreateVariable(moving);
    const Graph graph = Trace([](GraphBuilder& builder) {
      const Value x = builder.Parameter("x", {DType::kFloat32, {2}});
      AssignAddVariable({"moving", {DType::kFloat32, {2}}}, x);
      ApplyGradient(kW, x);
    });
    ASSERT_OK(Compile(graph, [&](ReplicaStep::Options* options) {
      options->leaves = FixedLeaves(4);
    }));
    ASSERT_OK(RunLeaves({{leaves[0]}, {leaves[1]}, {leaves[2]}, {leaves[3]}}));
    if (replica_count == 1) wanted = Values(0, "w");
    for (int i = 0; i < replica_count; ++i) {
      EXPECT_EQ(Values(i, "w"), wanted);
      EXPECT_EQ(Values(i, "moving")[1], -wanted[1] / 4);
      EXPECT_EQ(steps_[i]->outcome().leaves_with_data, 4);
    }
  }
  // In float32: ((1e8 + 1) - 1e8) + 1.
  EXPECT_EQ(wanted[1], -1);
}

// Traces gradients before and after collectives, packs in transit during
// collectives, and rows whose sum depends on their order.
Graph StepWithReplicaOps() {
  return Trace([](GraphBuilder& builder) {
    const Value x = builder.Parameter("x", {DType::kFloat32, {2}});
    const Value rows =
        builder.Parameter("rows", {DType::kFloat32, {Shape::kUnknown, 1}});
    const Value sum = AllReduce(x, "sum");
    AssignAddVariable({"moving", {DType::kFloat32, {2}}}, sum);
    ApplyGradient(kW, x + sum);
    const Value gathered = AllGather(rows, 0);
    const Value id = Cast(ReplicaId(builder), DType::kFloat32);
    const Value index = ZerosLike(Cast(ReplicaId(builder), DType::kInt64));
    ApplySparseGradient(kTable, Reshape(Sum(gathered) * id, {1, 1}),
                        Reshape(index, {1}));
    builder.AddResult(AllReduce(Sum(gathered) * id, "max"));
    builder.AddResult(ReplicaCount(builder));
  });
}

TEST_F(ReplicaStepTest, ReplicaOpsGiveTheSameBitsToAnyNumberOfReplicas) {
  const auto rows = [](int64_t count, float value) {
    return Tensor::Full(DType::kFloat32, {count, 1}, value);
  };
  const std::vector<std::vector<Tensor>> leaves = {
      {Pair(0.1f, 1e8f), rows(2, 0.1f)},
      {Pair(0.2f, 1), rows(0, 0)},
      {Pair(0.3f, -1e8f), rows(1, 1e8f)},
      {Pair(0.4f, 1), rows(3, 0.7f)}};
  std::vector<float> wanted;
  for (const bool overlaps : {false, true}) {
    for (int replica_count = 1; replica_count <= 4; ++replica_count) {
      SCOPED_TRACE(replica_count);
      stores_.clear();
      Start(replica_count);
      proto::VariableSpec moving = Spec("moving", 2, 0);
      moving.set_aggregation(proto::AGGREGATION_MEAN);
      CreateVariable(moving);
      ASSERT_OK(
          Compile(StepWithReplicaOps(), [&](ReplicaStep::Options* options) {
            options->leaves = FixedLeaves(4);
            options->has_replica_ops = true;
            options->overlaps = overlaps;
            options->bytes_per_pack = 1;
          }));
      for (int step = 0; step < 3; ++step) ASSERT_OK(RunLeaves(leaves));
      for (int i = 0; i < replica_count; ++i) {
        std::vector<float> got;
        for (const char* variable : {"w", "table", "moving"}) {
          const std::vector<float> values = Values(i, variable);
          got.insert(got.end(), values.begin(), values.end());
        }
        if (wanted.empty()) wanted = got;
        EXPECT_EQ(got, wanted) << "replica " << i;
        // Summed over the leaves, like all results.
        EXPECT_EQ(steps_[i]->results()[0].scalar<float>(), 4 * 3e8f);
        EXPECT_EQ(steps_[i]->results()[1].scalar<int32_t>(), 16);
      }
    }
  }
}

TEST_F(ReplicaStepTest, ReplicaOpsOfTheGraphMayStandBetweenGradients) {
  for (const bool overlaps : {false, true}) {
    stores_.clear();
    Start(2);
    const Graph graph = Trace([](GraphBuilder& builder) {
      const Value x = builder.Parameter("x", {DType::kFloat32, {2}});
      ApplyGradient(kW, x);
      ApplyGradient(kTable,
                    Reshape(Concat({x, AllReduce(x, "max")}, 0), {4, 1}));
    });
    ASSERT_OK(Compile(graph, [&](ReplicaStep::Options* options) {
      options->overlaps = overlaps;
      options->bytes_per_pack = 1;
    }));
    ASSERT_OK(Run({{{Pair(1, 9)}}, {{Pair(4, 3)}}}));
    EXPECT_THAT(Values(0, "w"), ElementsAre(-5, -12));
    EXPECT_THAT(Values(1, "table"), ElementsAre(-5, -12, -8, -18));
  }
}

TEST_F(ReplicaStepTest, AVariableCannotBeReadBetweenItsGradientAndTheEnd) {
  Start(2);
  ASSERT_OK(Compile(Trace([](GraphBuilder& builder) {
    const Value x = builder.Parameter("x", {DType::kFloat32, {2}});
    ApplyGradient(kW, x);
    builder.AddResult(ReadVariable(builder, kW));
  })));
  EXPECT_THAT(Run({{{Pair(1, 9)}}, {{Pair(4, 3)}}}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("reads it after applying its gradient")));
}

TEST_F(ReplicaStepTest, ResultsMustAddUp) {
  Start(2);
  EXPECT_THAT(Compile(Trace([](GraphBuilder& builder) {
                builder.AddResult(builder.Parameter(
                    "x", {DType::kFloat32, {Shape::kUnknown}}));
              })),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("results are summed over replicas")));
}

TEST_F(ReplicaStepTest, ASteadyStepAllocatesNothing) {
  for (const bool overlaps : {false, true}) {
    stores_.clear();
    Start(2);
    ASSERT_OK(Compile(WeightedStep(), [&](ReplicaStep::Options* options) {
      options->overlaps = overlaps;
      options->bytes_per_pack = 4;
    }));
    const std::vector<ReplicaInput> brought = {
        {{Pair(1, 8), Tensor::Scalar<float>(3)}},
        {{Pair(5, 4), Tensor::Scalar<float>(1)}}};
    for (int i = 0; i < 3; ++i) ASSERT_OK(Run(brought));
    const int64_t before = AllocationCount();
    absl::Status status;  // Matchers allocate.
    for (int i = 0; i < 10; ++i) status.Update(Run(brought));
    EXPECT_EQ(AllocationCount(), before) << "overlap: " << overlaps;
    EXPECT_OK(status);
  }
}

}  // namespace
}  // namespace muster
