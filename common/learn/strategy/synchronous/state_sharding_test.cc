#include "common/learn/strategy/synchronous/state_sharding.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/compute/functions/gradient_clipping.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/replica_step.h"
#include "common/learn/strategy/synchronous/replica_threads.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/message/message_communicator.h"
#include "common/net/collectives/message/testing/memory_lane.h"
#include "common/net/collectives/message/two_level_communicator.h"
#include "common/net/collectives/schedule.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/tensor.pb.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Group = std::vector<std::unique_ptr<Communicator>>;

const VariableHandle kKernel{"kernel", {DType::kFloat32, {37, 5}}};
const VariableHandle kBias{"bias", {DType::kFloat32, {5}}};
const VariableHandle kScale{"scale", {DType::kFloat32, {}}};
const VariableHandle kLarge{"large", {DType::kFloat32, {1201}}};
const VariableHandle kTable{"table", {DType::kFloat32, {6, 3}}};
const VariableHandle kFrozen{"frozen", {DType::kFloat32, {9}}};
const VariableHandle kMean{"mean", {DType::kFloat32, {7}}};

constexpr int64_t kIndexCount = 4;

proto::VariableSpec SpecOf(const VariableHandle& handle) {
  proto::VariableSpec spec;
  spec.set_name(handle.name);
  spec.set_dtype(proto::DT_FLOAT);
  for (const int64_t extent : handle.type.shape.dims()) {
    spec.mutable_shape()->add_dim(extent);
  }
  spec.mutable_initializer()->mutable_constant()->set_value(0.5);
  spec.set_trainable(handle.name != "mean");
  if (handle.name == "mean") spec.set_aggregation(proto::AGGREGATION_MEAN);
  return spec;
}

Tensor Drawn(const TensorType& type, uint64_t stream) {
  Tensor drawn(type.dtype, type.shape);
  for (int64_t i = 0; i < drawn.element_count(); ++i) {
    drawn.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(stream, i) % 2001) / 997 - 1;
  }
  return drawn;
}

// How the optimizer treats the gradients of a test.
struct Case {
  const char* name;
  Optimizer optimizer;
  GradientClipping clipping = {};
  int micro_batches = 0;
  int64_t bytes_per_pack = 0;
  // The optimizer or the step needs all elements of a gradient, so that a rank
  // may have more elements than another.
  bool balances = true;
};

std::vector<Case> Cases() {
  const OptimizerOptions accumulates = {.gradient_accumulation_steps = 2};
  return {
      {"adam", Adam({.learning_rate = 0.01})},
      {"two packs", Adam({.learning_rate = 0.01}), {}, 0, 1000},
      {"micro-batches", Adam({.learning_rate = 0.01}), {}, 4},
      {"amsgrad with decay",
       AdamW({.learning_rate = 0.01, .amsgrad = true}, {.weight_decay = 0.1})},
      {"momentum", Sgd({.learning_rate = 0.1, .momentum = 0.9})},
      {"no slots", Sgd({.learning_rate = 0.1})},
      {"value", Adam({.learning_rate = 0.01}), {.clipvalue = 0.3}},
      {"norm", Adam({.learning_rate = 0.01}), {.clipnorm = 0.7}},
      {"global norm", Adam({.learning_rate = 0.01}), {.global_clipnorm = 0.9}},
      {"accumulated", Adam({.learning_rate = 0.01}, accumulates)},
      {"accumulated and limited",
       Adam({.learning_rate = 0.01}, accumulates),
       {.global_clipnorm = 0.9}},
      {"average",
       Adam({.learning_rate = 0.01}, {.use_ema = true,
                                      .ema_momentum = 0.5,
                                      .ema_overwrite_frequency = 2})},
      {"schedule free", ScheduleFreeAdamW({.learning_rate = 0.01})},
      {"lamb", Lamb({.learning_rate = 0.01}), {}, 0, 0, false},
      {"muon", Muon({.learning_rate = 0.01}), {}, 0, 0, false},
      {"adafactor", Adafactor({.learning_rate = 0.01}), {}, 0, 1000, false},
  };
}

using Variables = std::vector<const VariableHandle*>;

const Variables& Trained() {
  static const Variables* const all =
      new Variables{&kLarge, &kKernel, &kBias, &kScale};
  return *all;
}

// Applies the gradients of `variables` and, with `has_rows`, rows of kTable.
// Assigns kMean. Its result is a sum.
Graph StepOf(const Variables& variables, bool has_rows,
             const GradientClipping& clipping) {
  GraphBuilder builder(&BuiltinOps(), "step");
  for (const VariableHandle* variable : variables) {
    const Value gradient = builder.Parameter(variable->name, variable->type);
    ApplyGradient(*variable, gradient, clipping);
    if (variable == &kKernel) builder.AddResult(Sum(gradient, {0}));
  }
  if (has_rows) {
    const Value rows =
        builder.Parameter("rows", {DType::kFloat32, {kIndexCount, 3}});
    const Value indices =
        builder.Parameter("indices", {DType::kInt64, {kIndexCount}});
    ApplySparseGradient(kTable, rows, indices, clipping);
  }
  AssignVariable(kMean, builder.Parameter("mean_now", kMean.type));
  return std::move(builder).Build().value();
}

// Replicas on threads that train the same variables.
class Replicas {
 public:
  Replicas(Group group, const Case& of, bool shards)
      : case_(of), group_(std::move(group)), threads_(size()) {
    Leaves leaves{.count = of.micro_batches};
    for (int rank = 0; rank < size() && leaves.count > 0; ++rank) {
      const Communicator::Range part =
          Communicator::PartOf(leaves.count, rank, size());
      leaves.count_of_rank.push_back(static_cast<int>(part.end - part.begin));
    }
    for (int rank = 0; rank < size(); ++rank) {
      stores_.push_back(std::make_unique<LocalVariableStore>());
      EXPECT_OK(stores_.back()->SetOptimizer(of.optimizer));
      for (const VariableHandle* variable :
           {&kKernel, &kBias, &kScale, &kLarge, &kTable, &kFrozen, &kMean}) {
        EXPECT_OK(stores_.back()->Create(SpecOf(*variable)));
      }
      options_.push_back({.communicator = group_[rank].get(),
                          .variables = stores_.back().get(),
                          .shards_optimizer_state = shards,
                          .bytes_per_pack = of.bytes_per_pack,
                          .timeout = absl::Seconds(60),
                          .leaves = leaves});
    }
    Compile(Trained(), /*has_rows=*/true);
  }

  int size() const { return static_cast<int>(group_.size()); }
  LocalVariableStore& store(int rank) { return *stores_[rank]; }

  void Compile(const Variables& variables, bool has_rows) {
    variables_ = variables;
    has_rows_ = has_rows;
    const Graph graph = StepOf(variables, has_rows, case_.clipping);
    steps_.clear();
    executables_.clear();
    for (ReplicaStep::Options options : options_) {
      for (const NodeOutput& result : graph.results) {
        options.result_types.push_back(graph.TypeOf(result));
      }
      steps_.push_back(ReplicaStep::Create(std::move(options)).value());
      executables_.push_back(
          Executable::Compile(graph, BuiltinOps(), CpuKernels(),
                              steps_.back()->variables(),
                              {.replica_link = steps_.back()->link()})
              .value());
    }
  }

  absl::Status Run(int number) {
    return threads_.Run(
        [&](int rank) -> absl::Status {
          ReplicaStep& step = *steps_[rank];
          RETURN_IF_ERROR(step.Begin(ReplicaStep::StepRequest::kContinue));
          RETURN_IF_ERROR(step.RunLeaves([&](int leaf) -> absl::Status {
            step.BeginLeaf(leaf, true);
            int global = rank;
            if (case_.micro_batches > 0) {
              global =
                  leaf + static_cast<int>(Communicator::PartOf(
                                              case_.micro_batches, rank, size())
                                              .begin);
            }
            std::vector<Tensor> results;
            RETURN_IF_ERROR(executables_[rank]->Run(Arguments(number, global),
                                                    {}, &results));
            return step.EndLeaf(leaf, results);
          }));
          return step.Finish();
        },
        [&](const absl::Status& status) {
          for (const auto& member : group_) member->Abort(status);
        });
  }

  // The largest state of a rank, relative to the average.
  double LargestShare() {
    int64_t largest = 0, total = 0;
    for (const auto& store : stores_) {
      const int64_t size_bytes = store->StateBytes().value();
      largest = std::max(largest, size_bytes);
      total += size_bytes;
    }
    return static_cast<double>(largest) * size() / static_cast<double>(total);
  }

 private:
  std::vector<Tensor> Arguments(int number, int part) const {
    const uint64_t stream = 1000 * number + part;
    std::vector<Tensor> arguments;
    for (const VariableHandle* variable : variables_) {
      arguments.push_back(Drawn(variable->type, FoldIn(stream, 1)));
    }
    if (has_rows_) {
      arguments.push_back(Drawn({DType::kFloat32, {kIndexCount, 3}}, stream));
      arguments.push_back(Tensor::FromValues<int64_t>(
          {kIndexCount}, {part % 6, (part + number) % 6, 2, 2}));
    }
    arguments.push_back(Drawn(kMean.type, FoldIn(stream, 2)));
    return arguments;
  }

  const Case case_;
  const Group group_;
  ReplicaThreads threads_;
  std::vector<std::unique_ptr<LocalVariableStore>> stores_;
  std::vector<ReplicaStep::Options> options_;
  Variables variables_;  // Of the current step.
  bool has_rows_ = false;
  std::vector<std::unique_ptr<ReplicaStep>> steps_;
  std::vector<std::unique_ptr<Executable>> executables_;
};

bool HaveSameBits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() &&
         std::memcmp(a.raw_data(), b.raw_data(), a.size_bytes()) == 0;
}

void ExpectSameValues(Replicas& sharded, Replicas& wanted) {
  for (const proto::VariableSpec& spec : wanted.store(0).List()) {
    const Tensor value = wanted.store(0).Read(spec.name()).value();
    for (int rank = 0; rank < sharded.size(); ++rank) {
      EXPECT_TRUE(
          HaveSameBits(sharded.store(rank).Read(spec.name()).value(), value))
          << spec.name() << " on rank " << rank;
      EXPECT_EQ(sharded.store(rank).UpdateCount(spec.name()).value(),
                wanted.store(0).UpdateCount(spec.name()).value());
    }
  }
}

absl::StatusOr<Group> OverMessages(int size, Algorithm algorithm) {
  auto lanes = MakeMemoryLanes(size);
  Group group;
  for (int rank = 0; rank < size; ++rank) {
    ASSIGN_OR_RETURN(
        group.emplace_back(),
        MakeMessageCommunicator(
            {.rank = rank, .generation = 1, .lanes = std::move(lanes[rank])},
            [algorithm](int, size_t) { return algorithm; }));
  }
  return group;
}

// Hosts of two ranks; the last one may have one.
absl::StatusOr<Group> InTwoLevels(int size) {
  std::vector<std::vector<int>> hosts;
  for (int rank = 0; rank < size; ++rank) {
    if (rank % 2 == 0) hosts.emplace_back();
    hosts.back().push_back(rank);
  }
  std::vector<TwoLevelGroup> parts(size);
  for (const std::vector<int>& ranks : hosts) {
    Group local = CreateLocalGroup(static_cast<int>(ranks.size())).value();
    for (size_t i = 0; i < ranks.size(); ++i) {
      parts[ranks[i]].rank = ranks[i];
      parts[ranks[i]].hosts = hosts;
      parts[ranks[i]].local = std::move(local[i]);
    }
  }
  const bool is_even = size % 2 == 0;
  for (int i = 0; i < (is_even ? 2 : 1); ++i) {
    ASSIGN_OR_RETURN(Group across, OverMessages(static_cast<int>(hosts.size()),
                                                Algorithm::kRing));
    for (size_t host = 0; host < hosts.size(); ++host) {
      parts[hosts[host][i]].across = std::move(across[host]);
    }
  }
  Group group;
  for (TwoLevelGroup& part : parts) {
    ASSIGN_OR_RETURN(group.emplace_back(),
                     MakeTwoLevelCommunicator(std::move(part)));
  }
  return group;
}

struct Transport {
  const char* name;
  std::function<absl::StatusOr<Group>(int size)> make;
};

class StateShardingTest
    : public ::testing::TestWithParam<std::tuple<Transport, int>> {
 protected:
  static int size() { return std::get<1>(GetParam()); }
  static Group MakeGroup() {
    return std::get<0>(GetParam()).make(size()).value();
  }
};

TEST_P(StateShardingTest, TrainsTheSameBitsWithASharedState) {
  for (const Case& of : Cases()) {
    SCOPED_TRACE(of.name);
    Replicas wanted(MakeGroup(), of, /*shards=*/false);
    Replicas sharded(MakeGroup(), of, /*shards=*/true);
    for (int step = 0; step < 5; ++step) {
      ASSERT_OK(wanted.Run(step));
      ASSERT_OK(sharded.Run(step));
    }
    ExpectSameValues(sharded, wanted);
    if (of.balances) {
      EXPECT_LT(sharded.LargestShare(), 1.1);
    }
    const bool has_slots = std::string(of.name) != "no slots";
    EXPECT_EQ(sharded.store(0).StateBytes().value() <
                  wanted.store(0).StateBytes().value(),
              has_slots);
  }
}

TEST_P(StateShardingTest, AStepWithOtherPacksTrainsTheSameVariables) {
  const Case adam = Cases()[0];
  Replicas wanted(MakeGroup(), adam, /*shards=*/false);
  Replicas sharded(MakeGroup(), adam, /*shards=*/true);
  for (Replicas* const replicas : {&wanted, &sharded}) {
    ASSERT_OK(replicas->Run(0));
    replicas->Compile({&kFrozen, &kKernel, &kLarge, &kBias},
                      /*has_rows=*/true);
    for (int step = 1; step < 4; ++step) ASSERT_OK(replicas->Run(step));
    replicas->Compile(Trained(), /*has_rows=*/false);
    ASSERT_OK(replicas->Run(4));
  }
  ExpectSameValues(sharded, wanted);
  EXPECT_LT(sharded.LargestShare(), 1.1);
}

INSTANTIATE_TEST_SUITE_P(
    Transports, StateShardingTest,
    ::testing::Combine(
        ::testing::Values(
            Transport{"SharedMemory",
                      [](int size) -> absl::StatusOr<Group> {
                        return CreateLocalGroup(size);
                      }},
            Transport{"Direct",
                      [](int size) {
                        return OverMessages(size, Algorithm::kDirect);
                      }},
            Transport{
                "Ring",
                [](int size) { return OverMessages(size, Algorithm::kRing); }},
            Transport{"OneShot",
                      [](int size) {
                        return OverMessages(size, Algorithm::kOneShot);
                      }},
            Transport{"HalvingDoubling",
                      [](int size) {
                        return OverMessages(size, Algorithm::kHalvingDoubling);
                      }},
            Transport{"TwoLevels", InTwoLevels}),
        ::testing::Values(2, 3, 4)),
    [](const auto& info) {
      return std::string(std::get<0>(info.param).name) +
             std::to_string(std::get<1>(info.param));
    });

TEST(StateShardingErrorsTest, AStepCannotUpdateADividedVariableByRows) {
  const Case adam = Cases()[0];
  Replicas replicas(CreateLocalGroup(2).value(), adam, /*shards=*/true);
  replicas.Compile({&kTable, &kKernel}, /*has_rows=*/false);
  ASSERT_OK(replicas.Run(0));
  replicas.Compile({&kKernel}, /*has_rows=*/true);
  EXPECT_THAT(
      replicas.Run(1),
      StatusIs(absl::StatusCode::kUnimplemented,
               AllOf(HasSubstr("\"table\""), HasSubstr("a gradient of rows"))));
}

TEST(StateShardingErrorsTest, VariablesThatAlsoTakeRowsStayWhole) {
  const Case adam = Cases()[0];
  Replicas wanted(CreateLocalGroup(3).value(), adam, /*shards=*/false);
  Replicas sharded(CreateLocalGroup(3).value(), adam, /*shards=*/true);
  for (Replicas* const replicas : {&wanted, &sharded}) {
    replicas->Compile({&kTable, &kKernel}, /*has_rows=*/true);
    for (int step = 0; step < 3; ++step) ASSERT_OK(replicas->Run(step));
  }
  ExpectSameValues(sharded, wanted);
  EXPECT_FALSE(sharded.store(0).Describe("table")->shares.is_divided());
  EXPECT_TRUE(sharded.store(0).Describe("kernel")->shares.is_divided());
}

}  // namespace
}  // namespace muster
