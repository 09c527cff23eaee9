// A step of a group that loses a replica is applied whole or not at all.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/compute/graph/graph.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/ops.h"
#include "common/compute/runtime/executable.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/compute/variables/variable_state.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/learn/strategy/synchronous/replica_step.h"
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

using ::testing::AnyOf;
using ::testing::Eq;

constexpr int kReplicas = 3;
constexpr int kLost = 2;  // The replica that is lost.
constexpr int kTables = 3;

// When a replica is lost, relative to one of its collectives.
enum class LossTime { kBefore, kAfter };

// A communicator whose process ends at one of its collectives.
class LostCommunicator final : public Communicator {
 public:
  explicit LostCommunicator(std::unique_ptr<Communicator> inner)
      : inner_(std::move(inner)) {}

  // Loses the replica at collective `number`, counted from 1 from now on.
  void LoseAt(int number, LossTime time) {
    count_ = 0;
    number_ = number;
    time_ = time;
  }
  bool is_lost() const { return number_ > 0 && count_ >= number_; }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  uint64_t generation() const override { return inner_->generation(); }
  std::string transport() const override { return inner_->transport(); }
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) override {
    return inner_->Allocate(size_bytes, call);
  }
  absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                         const CollectiveCall& call) override {
    return Pass([&] { return inner_->AllReduce(op, buffer, call); });
  }
  absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                             const CollectiveCall& call) override {
    return Pass([&] { return inner_->ReduceScatter(op, buffer, call); });
  }
  absl::Status AllGather(TensorSpan input,
                         absl::Span<const int64_t> element_counts,
                         TensorSpan output,
                         const CollectiveCall& call) override {
    return Pass(
        [&] { return inner_->AllGather(input, element_counts, output, call); });
  }
  absl::Status Broadcast(TensorSpan buffer, int root,
                         const CollectiveCall& call) override {
    return Pass([&] { return inner_->Broadcast(buffer, root, call); });
  }
  absl::Status Barrier(const CollectiveCall& call) override {
    return Pass([&] { return inner_->Barrier(call); });
  }
  void Abort(absl::Status status) override { inner_->Abort(std::move(status)); }
  CollectiveProgress Progress() const override { return inner_->Progress(); }

 private:
  template <typename Collective>
  absl::Status Pass(Collective collective) {
    const bool is_last = ++count_ == number_;
    if (is_last && time_ == LossTime::kBefore) return Loss();
    RETURN_IF_ERROR(collective());
    return is_last ? Loss() : absl::OkStatus();
  }
  static absl::Status Loss() {
    return absl::UnavailableError("the replica is lost");
  }

  const std::unique_ptr<Communicator> inner_;
  int count_ = 0;
  int number_ = 0;  // 0: it is not lost.
  LossTime time_ = LossTime::kBefore;
};

std::string TableName(int table) { return absl::StrCat("table_", table); }

proto::VariableSpec Spec(const std::string& name,
                         const std::vector<int64_t>& shape) {
  proto::VariableSpec spec;
  spec.set_name(name);
  spec.set_dtype(proto::DT_FLOAT);
  for (const int64_t dim : shape) spec.mutable_shape()->add_dim(dim);
  return spec;
}

// Applies `x` as the gradient of "before", of row 1 of each table, and of
// "after", in this order, and adds it to "total".
Graph Step() {
  GraphBuilder builder(&BuiltinOps(), "step");
  const Value x = builder.Parameter("x", {DType::kFloat32, {1}});
  const Value row = builder.Parameter("row", {DType::kInt32, {1}});
  ApplyGradient({"before", {DType::kFloat32, {1}}}, x);
  for (int table = 0; table < kTables; ++table) {
    ApplySparseGradient({TableName(table), {DType::kFloat32, {2, 1}}},
                        Reshape(x, {1, 1}), row);
  }
  AssignAddVariable({"total", {DType::kFloat32, {1}}}, x);
  ApplyGradient({"after", {DType::kFloat32, {1}}}, x);
  return std::move(builder).Build().value();
}

// Replicas on threads, with variables that SGD with momentum updates.
class Group {
 public:
  explicit Group(bool overlaps) : threads_(kReplicas) {
    auto communicators = CreateLocalGroup(kReplicas).value();
    for (int i = 0; i < kReplicas; ++i) {
      communicators_.push_back(
          std::make_unique<LostCommunicator>(std::move(communicators[i])));
      stores_.push_back(std::make_unique<LocalVariableStore>());
      EXPECT_OK(MakeVariables(stores_.back().get()));
    }
    EXPECT_OK(Compile(overlaps));
  }

  LostCommunicator& lost() { return *communicators_[kLost]; }

  absl::Status RunStep() {
    const std::vector<Tensor> arguments = {
        Tensor::FromValues<float>({1}, {3}),
        Tensor::FromValues<int32_t>({1}, {1})};
    std::vector<std::vector<Tensor>> results(kReplicas);
    return threads_.Run(
        [&](int replica) -> absl::Status {
          ReplicaStep& step = *steps_[replica];
          RETURN_IF_ERROR(step.Begin(ReplicaStep::StepRequest::kContinue));
          step.BeginLeaf(0, true);
          RETURN_IF_ERROR(
              executables_[replica]->Run(arguments, {}, &results[replica]));
          RETURN_IF_ERROR(step.EndLeaf(0, results[replica]));
          return step.Finish();
        },
        [&](const absl::Status& status) {
          for (const auto& communicator : communicators_) {
            communicator->Abort(status);
          }
        });
  }

  // Returns the values, slots and update counts of all variables.
  std::vector<float> State(int replica) {
    std::vector<float> all;
    for (const proto::VariableSpec& spec : stores_[replica]->List()) {
      const VariableState state =
          stores_[replica]->ReadState(spec.name()).value();
      Append(state.value, &all);
      for (const VariableState::Slot& slot : state.slots) {
        Append(slot.value, &all);
      }
      all.push_back(static_cast<float>(state.update_count));
    }
    return all;
  }

 private:
  static absl::Status MakeVariables(LocalVariableStore* store) {
    proto::Optimizer sgd;
    sgd.mutable_sgd()->set_learning_rate(1);
    sgd.mutable_sgd()->set_momentum(0.5);
    RETURN_IF_ERROR(store->SetOptimizer(sgd));
    RETURN_IF_ERROR(store->Create(Spec("before", {1})));
    for (int table = 0; table < kTables; ++table) {
      RETURN_IF_ERROR(store->Create(Spec(TableName(table), {2, 1})));
    }
    proto::VariableSpec total = Spec("total", {1});
    total.set_aggregation(proto::AGGREGATION_SUM);
    RETURN_IF_ERROR(store->Create(total));
    return store->Create(Spec("after", {1}));
  }

  absl::Status Compile(bool overlaps) {
    for (int i = 0; i < kReplicas; ++i) {
      ASSIGN_OR_RETURN(auto step, ReplicaStep::Create(
                                      {.communicator = communicators_[i].get(),
                                       .variables = stores_[i].get(),
                                       .bytes_per_pack = 1,
                                       .timeout = absl::Seconds(60),
                                       .overlaps = overlaps}));
      ASSIGN_OR_RETURN(auto executable,
                       Executable::Compile(Step(), BuiltinOps(), CpuKernels(),
                                           step->variables(), {}));
      steps_.push_back(std::move(step));
      executables_.push_back(std::move(executable));
    }
    return absl::OkStatus();
  }

  static void Append(const Tensor& tensor, std::vector<float>* all) {
    const absl::Span<const float> values = tensor.flat<float>();
    all->insert(all->end(), values.begin(), values.end());
  }

  ReplicaThreads threads_;
  std::vector<std::unique_ptr<LostCommunicator>> communicators_;
  std::vector<std::unique_ptr<LocalVariableStore>> stores_;
  std::vector<std::unique_ptr<ReplicaStep>> steps_;
  std::vector<std::unique_ptr<Executable>> executables_;
};

// Loses a replica at each collective of the second step, before or after it.
void LoseAtEachCollective(bool overlaps, LossTime time) {
  Group undisturbed(overlaps);
  ASSERT_OK(undisturbed.RunStep());
  const std::vector<float> before = undisturbed.State(0);
  ASSERT_OK(undisturbed.RunStep());
  const std::vector<float> after = undisturbed.State(0);
  ASSERT_NE(before, after);
  int number = 1;
  for (;; ++number) {
    SCOPED_TRACE(absl::StrCat("collective ", number));
    Group group(overlaps);
    ASSERT_OK(group.RunStep());
    group.lost().LoseAt(number, time);
    const absl::Status status = group.RunStep();
    if (!group.lost().is_lost()) {
      EXPECT_OK(status);
      break;
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
    for (int replica = 0; replica < kReplicas; ++replica) {
      EXPECT_THAT(group.State(replica), AnyOf(Eq(before), Eq(after)))
          << "replica " << replica;
    }
  }
  // The packs, and three collectives for each table.
  EXPECT_GT(number, 1 + 3 * kTables);
}

TEST(WholeStepTest, AReplicaIsLostBeforeACollective) {
  for (const bool overlaps : {false, true}) {
    LoseAtEachCollective(overlaps, LossTime::kBefore);
  }
}

TEST(WholeStepTest, AReplicaIsLostAfterACollective) {
  for (const bool overlaps : {false, true}) {
    LoseAtEachCollective(overlaps, LossTime::kAfter);
  }
}

}  // namespace
}  // namespace muster
