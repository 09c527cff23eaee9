// Replicas on simulated GPUs: variables, gradients and updates stay in the
// memory of the GPUs, and the results equal those of replicas on CPUs.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cuda/cuda_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/on_device/device_variable_store.h"
#include "common/compute/variables/replica_variables.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/learn/strategy/synchronous/replica_step.h"
#include "common/learn/strategy/synchronous/replica_threads.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/nccl/fake/fake_nccl.h"
#include "common/net/collectives/nccl/local_nccl_group.h"
#include "common/net/collectives/nccl/nccl_api.h"
#include "common/net/collectives/on_device/local_device_group.h"
#include "common/net/collectives/on_device/staged_communicator.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using StepRequest = ReplicaStep::StepRequest;
using ::testing::HasSubstr;

constexpr int64_t kWidth = 20000;  // Each variable has 80 kB.
constexpr int64_t kRows = 3;
constexpr int kReplicas = 2;

// How the gradients of the replicas are combined. kStageBesideCpu: replica 0 is
// on a GPU and the other one on the CPU.
enum class Over {
  kHost,
  kMemoryOfGpus,
  kOneSharedGpu,
  kNccl,
  kStages,
  kStageBesideCpu,
};

bool IsOnGpu(Over over, int replica) {
  return over != Over::kHost && (over != Over::kStageBesideCpu || replica == 0);
}

const VariableHandle kWeights{"weights", {DType::kFloat32, {kWidth}}};
const VariableHandle kBias{"bias", {DType::kFloat32, {kWidth}}};
const VariableHandle kMean{"mean", {DType::kFloat32, {kWidth}}};
const VariableHandle kFirst{"first", {DType::kFloat32, {2}}};
// Larger than one chunk of a staged all-reduce.
const VariableHandle kLarge{"large",
                            {DType::kFloat32, {kStagedChunkBytes / 4 + 1000}}};
const VariableHandle kTable{"table", {DType::kFloat32, {1, 2}}};

// Traces gradients that are means over rows, of the input and of a table of one
// row; a moving mean; and a value that all replicas take from the first one.
// With micro-batches, replicas exchange nothing while the step runs.
Graph TraceStep(bool has_exchange, bool weighs_data, bool has_large) {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x =
      builder.Parameter("x", {DType::kFloat32, {Shape::kUnknown, 1}});
  const Value labels =
      builder.Parameter("labels", {DType::kInt64, {Shape::kUnknown}});
  const Value weights = ReadVariable(builder, kWeights);
  const Value rows = GatherVariable(kTable, labels);
  const Value mean = Mean(x) + Mean(rows);
  const Value rows_mean = Mean(rows, {0}) * Mean(x);
  SetLossDenominator(Sum(weighs_data ? x : OnesLike(x)));
  ApplyGradient(kWeights, weights * mean);
  ApplyGradient(kBias, weights + mean);
  if (has_large) ApplyGradient(kLarge, ReadVariable(builder, kLarge) * mean);
  AssignAddVariable(kMean, weights * mean);
  if (has_exchange) AssignVariable(kFirst, rows_mean);
  builder.AddResult(Sum(x));
  return std::move(builder).Build().value();
}

std::vector<Tensor> Batch(int replica, int step) {
  // Replicas have batches of different sizes.
  Tensor x(DType::kFloat32, {kRows + replica, 1});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.mutable_flat<float>()[i] =
        static_cast<float>(FoldIn(replica * 100 + step, i) % 2001) / 1000 - 1;
  }
  return {x, Tensor::Zeros(DType::kInt64, {kRows + replica})};
}

proto::VariableSpec Spec(const VariableHandle& variable) {
  proto::VariableSpec spec;
  spec.set_name(variable.name);
  spec.set_dtype(proto::DT_FLOAT);
  *spec.mutable_shape() = EncodeShape(variable.type.shape);
  spec.mutable_initializer()->mutable_uniform()->set_minimum(-1);
  spec.mutable_initializer()->mutable_uniform()->set_maximum(1);
  spec.mutable_initializer()->set_seed(7);
  if (variable.name == "mean") {
    spec.set_aggregation(proto::AGGREGATION_MEAN);
  } else if (variable.name == "first") {
    spec.set_aggregation(proto::AGGREGATION_ONLY_FIRST_REPLICA);
  }
  return spec;
}

// The parameters: how gradients are combined, and whether steps are captured.
class DeviceReplicaStepTest
    : public ::testing::TestWithParam<std::tuple<Over, bool>> {
 protected:
  DeviceReplicaStepTest()
      : machine_({.device_count = kReplicas,
                  .order = over() == Over::kNccl ? simulated::Order::kThreads
                                                 : simulated::Order::kAtWait,
                  .seed = 3}) {
    for (int i = 0; i < kReplicas; ++i) {
      const bool is_shared = over() == Over::kOneSharedGpu;
      devices_.push_back(Device::Create(&machine_.driver(),
                                        {.name = absl::StrCat("gpu:", i),
                                         .ordinal = is_shared ? 0 : i,
                                         .memory = {.limit_bytes = 64 << 20,
                                                    .piece_bytes = 1 << 20},
                                         .captures_steps = has_graphs()})
                             .value());
      kernels_.push_back(CudaKernels(devices_.back().get()));
    }
  }

  static Over over() { return std::get<0>(GetParam()); }
  static bool has_graphs() { return std::get<1>(GetParam()); }

  absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> Connect(
      Over over) {
    std::vector<Device*> devices;
    for (const auto& device : devices_) devices.push_back(device.get());
    std::vector<std::unique_ptr<Communicator>> communicators;
    if (over == Over::kNccl) {
      ASSIGN_OR_RETURN(auto made,
                       CreateLocalNcclGroup(&nccl_.api(), devices, 1,
                                            absl::Now() + absl::Minutes(1)));
      for (auto& one : made) communicators.push_back(std::move(one));
      return communicators;
    }
    ASSIGN_OR_RETURN(communicators, CreateLocalGroup(kReplicas));
    if (over == Over::kHost || over == Over::kStages ||
        over == Over::kStageBesideCpu) {
      return communicators;
    }
    ASSIGN_OR_RETURN(auto made,
                     CreateLocalDeviceGroup(devices, std::move(communicators),
                                            DeviceReduction::kByParts));
    communicators.clear();
    for (auto& one : made) communicators.push_back(std::move(one));
    return communicators;
  }

  absl::Status Compile(Over over, int micro_batch_count = 0) {
    executables_.clear();
    steps_.clear();
    results_.assign(kReplicas, {});
    stores_.clear();
    ASSIGN_OR_RETURN(communicators_, Connect(over));
    for (int i = 0; i < kReplicas; ++i) {
      Device* const device = IsOnGpu(over, i) ? devices_[i].get() : nullptr;
      if (device == nullptr) {
        stores_.push_back(std::make_unique<LocalVariableStore>());
      } else {
        ASSIGN_OR_RETURN(stores_.emplace_back(),
                         DeviceVariableStore::Create(device));
      }
      RETURN_IF_ERROR(
          stores_.back()->SetOptimizer(Adam({.learning_rate = 0.01})));
      for (const VariableHandle& variable :
           {kWeights, kBias, kMean, kFirst, kTable}) {
        RETURN_IF_ERROR(stores_.back()->Create(Spec(variable)));
      }
      if (has_large_) RETURN_IF_ERROR(stores_.back()->Create(Spec(kLarge)));
      Leaves leaves{.count = micro_batch_count};
      if (micro_batch_count > 0) leaves.count_of_rank = {1, 1};
      const Graph graph = TraceStep(has_exchange_ && micro_batch_count == 0,
                                    weighs_data_, has_large_);
      ASSIGN_OR_RETURN(
          steps_.emplace_back(),
          ReplicaStep::Create({.communicator = communicators_[i].get(),
                               .variables = stores_[i].get(),
                               .bytes_per_pack = 100000,
                               .timeout = absl::Seconds(60),
                               .overlaps = over == Over::kNccl,
                               .leaves = leaves,
                               .expected_weight = 2 * kRows + 1,
                               .result_types = {{DType::kFloat32, {}}}}));
      ExecutableOptions options{.replica_link = steps_[i]->link()};
      options.device = device;
      if (device != nullptr) options.host_kernels = &CpuKernels();
      ASSIGN_OR_RETURN(
          executables_.emplace_back(),
          Executable::Compile(graph, BuiltinOps(),
                              device == nullptr ? CpuKernels() : kernels_[i],
                              steps_[i]->variables(), options));
    }
    return absl::OkStatus();
  }

  // Runs a step with these batches.
  absl::Status Run(absl::Span<const std::vector<Tensor>> batches,
                   StepRequest request = StepRequest::kContinue) {
    return threads_.Run(
        [&](int replica) -> absl::Status {
          ReplicaStep& step = *steps_[replica];
          RETURN_IF_ERROR(step.Begin(request));
          step.BeginLeaf(0, /*has_data=*/true);
          RETURN_IF_ERROR(executables_[replica]->Run(batches[replica], {},
                                                     &results_[replica]));
          RETURN_IF_ERROR(step.EndLeaf(0, results_[replica]));
          return step.Finish();
        },
        [&](const absl::Status& status) { Abort(status); });
  }

  // Begins a step with these batches. An empty batch means no data.
  absl::Status Begin(absl::Span<const std::vector<Tensor>> batches) {
    return threads_.Run(
        [&](int replica) -> absl::Status {
          ReplicaStep& step = *steps_[replica];
          const bool has_data = !batches[replica].empty();
          RETURN_IF_ERROR(step.Begin(StepRequest::kContinue));
          step.BeginLeaf(0, has_data);
          absl::Span<const Tensor> results;
          if (has_data) {
            Executable& executable = *executables_[replica];
            RETURN_IF_ERROR(executable.Start(batches[replica], {}));
            results = executable.StartedResults();
          }
          RETURN_IF_ERROR(step.EndLeaf(0, results));
          return step.Commit();
        },
        [&](const absl::Status& status) { Abort(status); });
  }

  // Finishes the oldest unfinished step.
  absl::Status Finish() {
    return threads_.Run(
        [&](int replica) -> absl::Status {
          if (executables_[replica]->started_count() > 0) {
            RETURN_IF_ERROR(executables_[replica]->Finish(&results_[replica]));
          }
          return steps_[replica]->Await();
        },
        [&](const absl::Status& status) { Abort(status); });
  }

  // Runs steps of which two overlap.
  absl::Status RunOverlapping(int begin, int end) {
    RETURN_IF_ERROR(Begin({Batch(0, begin), Batch(1, begin)}));
    for (int step = begin + 1; step < end; ++step) {
      RETURN_IF_ERROR(Begin({Batch(0, step), Batch(1, step)}));
      RETURN_IF_ERROR(Finish());
    }
    return Finish();
  }

  void Abort(const absl::Status& status) {
    for (const auto& communicator : communicators_) communicator->Abort(status);
  }

  absl::Status RunSteps(int begin, int end) {
    for (int step = begin; step < end; ++step) {
      RETURN_IF_ERROR(Run({Batch(0, step), Batch(1, step)}));
    }
    return absl::OkStatus();
  }

  // Returns the variables of all replicas, one replica after another.
  std::vector<Tensor> Values() {
    std::vector<Tensor> values;
    for (const auto& store : stores_) {
      for (const VariableHandle& variable : {kWeights, kBias, kMean, kFirst}) {
        values.push_back(store->Read(variable.name).value());
      }
      if (has_large_) values.push_back(store->Read(kLarge.name).value());
    }
    return values;
  }

  static void ExpectNear(const std::vector<Tensor>& got,
                         const std::vector<Tensor>& wanted, double tolerance) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      for (int64_t j = 0; j < got[i].element_count(); ++j) {
        ASSERT_NEAR(got[i].ElementAsDouble(j), wanted[i].ElementAsDouble(j),
                    tolerance)
            << "variable " << i << ", element " << j;
      }
    }
  }

  SimulatedMachine machine_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<KernelRegistry> kernels_;
  FakeNccl nccl_{FakeNccl::Options()};
  ReplicaThreads threads_{kReplicas};
  std::vector<std::unique_ptr<ReplicaVariables>> stores_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<std::unique_ptr<ReplicaStep>> steps_;
  std::vector<std::unique_ptr<Executable>> executables_;
  std::vector<std::vector<Tensor>> results_;
  bool has_exchange_ = true;
  bool weighs_data_ = false;
  bool has_large_ = false;
};

std::string NameOf(Over over) {
  switch (over) {
    case Over::kMemoryOfGpus:
      return "MemoryOfGpus";
    case Over::kOneSharedGpu:
      return "OneSharedGpu";
    case Over::kNccl:
      return "Nccl";
    default:
      return "Stages";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, DeviceReplicaStepTest,
    ::testing::Combine(::testing::Values(Over::kMemoryOfGpus,
                                         Over::kOneSharedGpu, Over::kNccl,
                                         Over::kStages),
                       ::testing::Bool()),
    [](const auto& info) {
      return NameOf(std::get<0>(info.param)) +
             (std::get<1>(info.param) ? "Graphs" : "");
    });

TEST_P(DeviceReplicaStepTest, StepsGiveTheVariablesOfReplicasOnCpus) {
  for (const int micro_batch_count : {0, kReplicas}) {
    ASSERT_OK(Compile(Over::kHost, micro_batch_count));
    ASSERT_OK(RunSteps(0, 5));
    const std::vector<Tensor> wanted = Values();
    const float wanted_result = steps_[0]->results()[0].scalar<float>();
    ASSERT_OK(Compile(over(), micro_batch_count));
    ASSERT_OK(RunSteps(0, 5));
    ExpectNear(Values(), wanted, 1e-5);
    for (const auto& step : steps_) {
      EXPECT_NEAR(step->results()[0].scalar<float>(), wanted_result, 1e-5);
      EXPECT_EQ(step->outcome().leaves_with_data, kReplicas);
    }
    // The variables of replicas stay bit-identical.
    const std::vector<Tensor> values = Values();
    ExpectNear({values.begin(), values.begin() + 4},
               {values.begin() + 4, values.end()}, 0);
  }
}

TEST_P(DeviceReplicaStepTest, LargePacksMayBeStagedBesideReplicasOnCpus) {
  if (over() != Over::kStages) GTEST_SKIP() << "they are not staged";
  has_large_ = true;
  ASSERT_OK(Compile(Over::kHost));
  ASSERT_OK(RunSteps(0, 2));
  const std::vector<Tensor> wanted = Values();
  for (const Over staged : {Over::kStages, Over::kStageBesideCpu}) {
    ASSERT_OK(Compile(staged));
    ASSERT_OK(RunSteps(0, 2));
    ExpectNear(Values(), wanted, 1e-5);
  }
}

TEST_P(DeviceReplicaStepTest, SteadyStepCopiesNoVariableThroughTheHost) {
  if (over() == Over::kStages) GTEST_SKIP() << "stages are on the host";
  ASSERT_OK(Compile(over()));
  ASSERT_OK(RunSteps(0, 4));
  const int64_t bytes_before = machine_.host_copy_bytes();
  const auto before = machine_.counts();
  ASSERT_OK(RunSteps(4, 5));
  // Allows arguments, results and trailers, but no variable (80 kB).
  EXPECT_LT(machine_.host_copy_bytes() - bytes_before, 2000);
  auto calls = machine_.counts();
  for (const char* function :
       {"cuMemCreate", "cuMemHostAlloc", "cuStreamCreateWithPriority",
        "cuStreamSynchronize"}) {
    EXPECT_EQ(calls[function],
              before.contains(function) ? before.at(function) : 0)
        << function;
  }
}

TEST_P(DeviceReplicaStepTest, InvalidDataOfOneReplicaChangesNothingAnywhere) {
  has_exchange_ = false;  // Exchanged values are applied at once.
  ASSERT_OK(Compile(over()));
  ASSERT_OK(RunSteps(0, 2));
  const std::vector<Tensor> before = Values();
  std::vector<Tensor> wrong = Batch(1, 2);
  wrong[1].mutable_flat<int64_t>()[2] = 5;  // The table has only row 0.
  EXPECT_THAT(Run({Batch(0, 2), wrong}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("5")));
  ExpectNear(Values(), before, 0);
  for (const auto& store : stores_) {
    EXPECT_EQ(store->UpdateCount("weights").value(), 2);
  }
}

TEST_P(DeviceReplicaStepTest, AStepThatAReplicaStopsChangesNothing) {
  has_exchange_ = false;  // As in the previous test.
  ASSERT_OK(Compile(over()));
  ASSERT_OK(RunSteps(0, 2));
  const std::vector<Tensor> before = Values();
  ASSERT_OK(Run({Batch(0, 2), Batch(1, 2)}, StepRequest::kStop));
  EXPECT_TRUE(steps_[1]->outcome().stop_requested);
  ExpectNear(Values(), before, 0);
  ASSERT_OK(RunSteps(2, 3));
}

TEST_P(DeviceReplicaStepTest, StepsUnderWayGiveTheVariablesOfReplicasOnCpus) {
  constexpr int kSteps = 100;
  has_exchange_ = false;
  ASSERT_OK(Compile(Over::kHost));
  EXPECT_FALSE(steps_[0]->overlaps_steps());
  ASSERT_OK(RunSteps(0, kSteps));
  const std::vector<Tensor> wanted = Values();
  const float wanted_result = steps_[0]->results()[0].scalar<float>();
  ASSERT_OK(Compile(over()));
  EXPECT_TRUE(steps_[0]->overlaps_steps());
  ASSERT_OK(RunOverlapping(0, kSteps));
  ExpectNear(Values(), wanted, 1e-4);
  const std::vector<Tensor> values = Values();
  ExpectNear({values.begin(), values.begin() + 4},
             {values.begin() + 4, values.end()}, 0);
  for (int replica = 0; replica < kReplicas; ++replica) {
    EXPECT_NEAR(steps_[replica]->results()[0].scalar<float>(), wanted_result,
                1e-5);
    EXPECT_EQ(steps_[replica]->outcome().leaves_with_data, kReplicas);
    EXPECT_EQ(stores_[replica]->UpdateCount("weights").value(), kSteps);
  }
}

TEST_P(DeviceReplicaStepTest, ToBeginAStepWaitsForNoDevice) {
  if (over() == Over::kStages) GTEST_SKIP() << "stages are on the host";
  has_exchange_ = false;
  ASSERT_OK(Compile(over()));
  ASSERT_OK(RunOverlapping(0, 4));
  ASSERT_OK(Begin({Batch(0, 4), Batch(1, 4)}));
  const auto before = machine_.counts();
  const int64_t pageable_before = machine_.pageable_copy_count();
  ASSERT_OK(Begin({Batch(0, 5), Batch(1, 5)}));
  auto calls = machine_.counts();
  for (const auto& [function, count] : before) calls[function] -= count;
  for (const char* function :
       {"cuMemCreate", "cuMemMap", "cuMemHostAlloc", "cuEventCreate",
        "cuStreamCreateWithPriority", "cuStreamSynchronize"}) {
    EXPECT_EQ(calls[function], 0) << function;
  }
  EXPECT_EQ(machine_.pageable_copy_count(), pageable_before);
  // For two replicas.
  EXPECT_LE(calls["cuLaunchKernelEx"], 44);
  if (has_graphs()) {
    EXPECT_GE(calls["cuGraphLaunch"], 4);
    EXPECT_LE(calls["cuLaunchKernelEx"] + calls["cuGraphLaunch"], 22);
  }
  EXPECT_LE(calls["cuMemcpyAsync"] + calls["cuMemcpyPeerAsync"], 18);
  // The thread of NCCL polls events continuously.
  if (over() != Over::kNccl) {
    EXPECT_EQ(calls["cuEventQuery"], 0);
  }
  ASSERT_OK(Finish());
  ASSERT_OK(Finish());
}

TEST_P(DeviceReplicaStepTest, InvalidDataCancelsOverlappingStepsOnAllReplicas) {
  has_exchange_ = false;
  std::vector<Tensor> wrong = Batch(1, 3);
  wrong[1].mutable_flat<int64_t>()[2] = 5;  // The table has only row 0.
  ASSERT_OK(Compile(Over::kHost));
  const absl::Status on_cpus = Run({Batch(0, 3), wrong});
  ASSERT_OK(Compile(over()));
  ASSERT_OK(RunOverlapping(0, 3));
  const std::vector<Tensor> before = Values();
  ASSERT_OK(Begin({Batch(0, 3), wrong}));
  ASSERT_OK(Begin({Batch(0, 4), Batch(1, 4)}));
  const absl::Status status = Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), on_cpus.message());
  ExpectNear(Values(), before, 0);
  for (const auto& store : stores_) {
    EXPECT_EQ(store->UpdateCount("weights").value(), 3);
  }
}

TEST_P(DeviceReplicaStepTest, AWeightThatIsNoneStopsTheStepOnAllReplicas) {
  has_exchange_ = false;
  weighs_data_ = true;
  std::vector<Tensor> negative = Batch(0, 0);
  for (float& x : negative[0].mutable_flat<float>()) x = -2;
  std::vector<Tensor> positive = Batch(1, 0);
  for (float& x : positive[0].mutable_flat<float>()) x = 7;
  ASSERT_OK(Compile(Over::kHost));
  const absl::Status on_cpus = Run({negative, positive});
  EXPECT_THAT(on_cpus, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("means over -6 examples")));
  ASSERT_OK(Compile(over()));
  const std::vector<Tensor> before = Values();
  ASSERT_OK(Begin({negative, positive}));
  EXPECT_EQ(Finish().message(), on_cpus.message());
  ExpectNear(Values(), before, 0);
}

TEST_P(DeviceReplicaStepTest, AReplicaWithoutDataContributesNothing) {
  has_exchange_ = false;
  const std::vector<Tensor> none;
  std::vector<Tensor> wanted;
  for (const Over over : {Over::kHost, over()}) {
    ASSERT_OK(Compile(over));
    if (over == Over::kHost) {
      for (const int step : {0, 1, 2}) {
        const bool is_partial = step == 1;
        ASSERT_OK(threads_.Run(
            [&](int replica) -> absl::Status {
              const bool has_data = replica == 0 || !is_partial;
              RETURN_IF_ERROR(steps_[replica]->Begin(StepRequest::kContinue));
              steps_[replica]->BeginLeaf(0, has_data);
              if (has_data) {
                RETURN_IF_ERROR(executables_[replica]->Run(
                    Batch(replica, step), {}, &results_[replica]));
              }
              RETURN_IF_ERROR(steps_[replica]->EndLeaf(0, results_[replica]));
              return steps_[replica]->Finish();
            },
            [&](const absl::Status& status) { Abort(status); }));
      }
      wanted = Values();
      continue;
    }
    ASSERT_OK(Begin({Batch(0, 0), Batch(1, 0)}));
    ASSERT_OK(Begin({Batch(0, 1), none}));
    ASSERT_OK(Finish());
    EXPECT_EQ(steps_[0]->outcome().leaves_with_data, 2);
    ASSERT_OK(Finish());
    EXPECT_EQ(steps_[0]->outcome().leaves_with_data, 1);
    // A step without data changes nothing, and training continues.
    ASSERT_OK(Begin({none, none}));
    ASSERT_OK(Begin({none, none}));
    ASSERT_OK(Finish());
    EXPECT_EQ(steps_[0]->outcome().leaves_with_data, 0);
    EXPECT_EQ(steps_[0]->unfinished_count(), 0);
    ASSERT_OK(RunOverlapping(2, 3));
  }
  ExpectNear(Values(), wanted, 1e-5);
  EXPECT_EQ(stores_[1]->UpdateCount("weights").value(), 3);
}

TEST_P(DeviceReplicaStepTest, UpdatesBehindACollectiveThatFailsAreNotApplied) {
  if (over() != Over::kNccl) {
    GTEST_SKIP() << "other collectives do not fail once they are started";
  }
  has_exchange_ = false;
  ASSERT_OK(Compile(Over::kNccl));
  ASSERT_OK(RunOverlapping(0, 3));
  const std::vector<Tensor> before = Values();
  nccl_.FailCollective(nccl::kRemoteError);
  // The failure may occur before all collectives of the step have started.
  absl::Status status = Begin({Batch(0, 3), Batch(1, 3)});
  const absl::Status finished = Finish();
  if (status.ok()) status = finished;
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  ExpectNear(Values(), before, 0);
  for (const auto& store : stores_) {
    EXPECT_EQ(store->UpdateCount("weights").value(), 3);
  }
}

}  // namespace
}  // namespace muster
