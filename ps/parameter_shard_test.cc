#include "ps/parameter_shard.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/message.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/parameter_server.pb.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

proto::ShardSpec Spec(const std::string& name, DType dtype, const Shape& shape,
                      double value = 0) {
  proto::ShardSpec spec;
  spec.mutable_variable()->set_name(name);
  spec.mutable_variable()->set_dtype(EncodeDType(dtype));
  *spec.mutable_variable()->mutable_shape() = EncodeShape(shape);
  spec.mutable_variable()->set_trainable(true);
  spec.mutable_variable()->mutable_initializer()->mutable_constant()->set_value(
      value);
  spec.set_shard_name(name);
  spec.set_row_end(shape.rank() == 0 ? 1 : shape.dim(0));
  return spec;
}

proto::Optimizer Sgd(double learning_rate) {
  proto::Optimizer optimizer;
  optimizer.mutable_sgd()->set_learning_rate(learning_rate);
  return optimizer;
}

// Builds an exchange as a client does.
struct Call {
  proto::ExchangeRequest request;
  std::vector<ReceivedTensor> tensors;
  proto::ExchangeResponse response;
  std::vector<Tensor> answers;
  std::vector<AnswerPlace> places;

  Call& Step(uint64_t step_id, uint32_t exchange_index = 0) {
    request.set_step_id(step_id);
    request.set_exchange_index(exchange_index);
    return *this;
  }
  Call& Update(uint32_t handle, proto::UpdateKind kind, const Tensor& value) {
    request.add_update_handles(handle);
    request.add_update_kinds(kind);
    tensors.push_back(ReceivedTensor::FromTensor(value));
    return *this;
  }
  Call& Sparse(uint32_t handle, proto::UpdateKind kind,
               std::vector<int64_t> rows, const Tensor& value) {
    AddRows(std::move(rows));
    return Update(handle, kind, value);
  }
  Call& Gather(uint32_t handle, std::vector<int64_t> rows) {
    request.add_gather_handles(handle);
    AddRows(std::move(rows));
    return *this;
  }
  Call& Pull(uint32_t handle, int64_t held_version = 0) {
    request.add_pull_handles(handle);
    request.add_pull_held_versions(held_version);
    return *this;
  }
  void AddRows(std::vector<int64_t> rows) {
    tensors.push_back(ReceivedTensor::FromTensor(Tensor::FromSpan<int64_t>(
        Shape({static_cast<int64_t>(rows.size())}), rows)));
  }
  // Sets the place of the next answer. Either all answers or none have a place.
  Call& At(void* data, size_t size_bytes) {
    places.push_back({static_cast<uint8_t*>(data), size_bytes});
    return *this;
  }
  absl::Status Run(ParameterShard& shard) {
    response.Clear();
    answers.clear();
    return shard.Exchange(request, tensors, &response, &answers, places);
  }
};

std::vector<float> Values(ParameterShard& shard, uint32_t handle) {
  Call call;
  EXPECT_OK(call.Pull(handle).Run(shard));
  const auto flat = call.answers.at(0).flat<float>();
  return std::vector<float>(flat.begin(), flat.end());
}

Tensor Floats(const Shape& shape, std::vector<float> values) {
  return Tensor::FromSpan<float>(shape, values);
}

class ParameterShardTest : public testing::Test {
 protected:
  ParameterShardTest() : shard_({.thread_count = 2}) {}

  uint32_t Create(const std::string& name, const Shape& shape,
                  double value = 0) {
    return shard_.Create(Spec(name, DType::kFloat32, shape, value)).value();
  }

  ParameterShard shard_;
};

TEST_F(ParameterShardTest, CreateIsIdempotent) {
  const uint32_t x = Create("x", Shape({2}), 3);
  ASSERT_OK(Call().Update(x, proto::ASSIGN, Floats({2}, {5, 6})).Run(shard_));
  EXPECT_EQ(Create("x", Shape({2}), 3), x);
  EXPECT_THAT(Values(shard_, x), ElementsAre(5, 6));
  EXPECT_THAT(shard_.Create(Spec("x", DType::kFloat32, Shape({3}))),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("exists as float32[2]")));
}

TEST_F(ParameterShardTest, RejectsInvalidSpecs) {
  proto::ShardSpec spec = Spec("x", DType::kFloat32, Shape({4}));
  spec.set_row_end(5);
  EXPECT_THAT(shard_.Create(spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rows 0 to 5 of a variable with 4 rows")));
  spec.set_row_end(3);
  spec.mutable_variable()->mutable_constraint()->mutable_unit_norm();
  EXPECT_THAT(shard_.Create(spec), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("norms over all rows")));
  spec.set_row_begin(-1);
  EXPECT_THAT(shard_.Create(spec),
              StatusIs(absl::StatusCode::kInvalidArgument));
  spec = Spec("x", DType::kFloat32, Shape({4}));
  spec.set_shard_name("");
  EXPECT_THAT(shard_.Create(spec),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(ParameterShardTest, MemoryBudgetIncludesFutureSlots) {
  ParameterShard shard({.memory_bytes_max = 1000});
  ASSERT_OK(shard.Create(Spec("x", DType::kFloat32, Shape({100}))));
  EXPECT_THAT(shard.Create(Spec("y", DType::kFloat32, Shape({200}))),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("may use 1000")));
  proto::Optimizer adam;
  adam.mutable_adam()->set_learning_rate(0.1);
  EXPECT_THAT(shard.SetOptimizer(adam),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("their slots 800")));
}

TEST_F(ParameterShardTest, DenseUpdatesOfOneExchangeApplyInOrder) {
  const uint32_t x = Create("x", Shape({2}), 1);
  ASSERT_OK(shard_.SetOptimizer(Sgd(0.5)));
  Call call;
  call.Update(x, proto::ASSIGN_ADD, Floats({2}, {1, 2}))
      .Update(x, proto::APPLY_GRADIENT, Floats({2}, {2, 2}))
      .Update(x, proto::ASSIGN_SUB, Floats({2}, {3, 3}))
      .Pull(x);
  ASSERT_OK(call.Run(shard_));
  EXPECT_THAT(call.answers.at(0).flat<float>(), ElementsAre(-2, -1));
}

TEST_F(ParameterShardTest, ScatterAppliesRepeatedRowsInOrder) {
  const uint32_t x = Create("x", Shape({4, 1}));
  ASSERT_OK(
      Call()
          .Sparse(x, proto::SCATTER_UPDATE, {3, 1, 3},
                  Floats({3, 1}, {7, 8, 9}))
          .Sparse(x, proto::SCATTER_ADD, {1, 0, 1}, Floats({3, 1}, {1, 2, 3}))
          .Sparse(x, proto::SCATTER_SUB, {3}, Floats({1, 1}, {4}))
          .Run(shard_));
  EXPECT_THAT(Values(shard_, x), ElementsAre(2, 12, 0, 5));
}

TEST_F(ParameterShardTest, SparseGradientsSumRepeatedRows) {
  const uint32_t x = Create("x", Shape({3, 2}));
  proto::Optimizer adagrad;
  adagrad.mutable_adagrad()->set_learning_rate(1);
  adagrad.mutable_adagrad()->set_initial_accumulator_value(0);
  ASSERT_OK(shard_.SetOptimizer(adagrad));
  // Adagrad's first step depends on the gradient's sign only: 2 moves as far as
  // 1.
  ASSERT_OK(Call()
                .Sparse(x, proto::APPLY_SPARSE_GRADIENT, {2, 0, 2},
                        Floats({3, 2}, {1, 1, 5, 5, 1, 1}))
                .Run(shard_));
  EXPECT_THAT(Values(shard_, x), ElementsAre(-1, -1, 0, 0, -1, -1));
}

// Covers dense gradients and gradients of some rows, which leave the other rows
// unchanged.
TEST_F(ParameterShardTest, EveryOptimizerMatchesItsRule) {
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    proto::Optimizer absent;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat(OptimizerName(kind->defaults().message()), " {}"),
        &absent));
    ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(kind->defaults()));
    if (rule->needs_whole_variables()) {
      shard_.Clear();
      EXPECT_THAT(shard_.SetOptimizer(absent),
                  StatusIs(absl::StatusCode::kUnimplemented,
                           HasSubstr("needs whole variables")));
      continue;
    }
    std::vector<float> wanted(6, 1.0f);
    std::vector<std::vector<float>> slots;
    std::vector<float*> pointers;
    slots.reserve(rule->slots().size());
    for (const SlotSpec& slot : rule->slots()) {
      slots.emplace_back(6, static_cast<float>(slot.initial_value));
      if (slot.starts_as_variable) slots.back() = wanted;
      pointers.push_back(slots.back().data());
    }
    const std::vector<float> dense = {1, -2, 3, -4, 5, -6};
    const std::vector<float> sparse = {0.5f, -0.5f};
    rule->Apply(0, 6, dense.data(), wanted.data(),
                absl::MakeConstSpan(pointers));
    rule->ApplyRows(1, 2, {1}, sparse.data(), wanted.data(),
                    absl::MakeConstSpan(pointers));

    shard_.Clear();
    const uint32_t x = Create("x", Shape({3, 2}), 1);
    ASSERT_OK(shard_.SetOptimizer(absent));
    ASSERT_OK(Call()
                  .Update(x, proto::APPLY_GRADIENT, Floats({3, 2}, dense))
                  .Sparse(x, proto::APPLY_SPARSE_GRADIENT, {1},
                          Floats({1, 2}, sparse))
                  .Run(shard_));
    EXPECT_THAT(Values(shard_, x), ElementsAreArray(wanted))
        << absent.ShortDebugString();
    EXPECT_NE(wanted, std::vector<float>(6, 1.0f)) << absent.ShortDebugString();
  }
}

proto::Optimizer SgdWith(const std::string& options) {
  proto::Optimizer optimizer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "sgd { learning_rate: 1 } " + options, &optimizer));
  return optimizer;
}

TEST_F(ParameterShardTest, AppliesTheMeanOfAccumulatedGradients) {
  const uint32_t x = Create("x", Shape({3, 2}));
  ASSERT_OK(shard_.SetOptimizer(SgdWith("gradient_accumulation_steps: 3")));
  ASSERT_OK(
      Call()
          .Update(x, proto::APPLY_GRADIENT, Floats({3, 2}, {3, 3, 3, 3, 3, 3}))
          .Run(shard_));
  // Row 0 has a gradient in an earlier push only. The last push of the group
  // applies it nevertheless.
  ASSERT_OK(
      Call()
          .Sparse(x, proto::APPLY_SPARSE_GRADIENT, {0}, Floats({1, 2}, {6, 9}))
          .Run(shard_));
  EXPECT_THAT(Values(shard_, x), ElementsAre(0, 0, 0, 0, 0, 0));
  ASSERT_OK(Call()
                .Sparse(x, proto::APPLY_SPARSE_GRADIENT, {2, 2},
                        Floats({2, 2}, {1, 2, 5, 4}))
                .Run(shard_));
  EXPECT_THAT(Values(shard_, x), ElementsAre(-3, -4, -1, -1, -3, -3));
  // The next update begins with an empty sum.
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(Call()
                  .Sparse(x, proto::APPLY_SPARSE_GRADIENT, {1},
                          Floats({1, 2}, {1, 1}))
                  .Run(shard_));
  }
  EXPECT_THAT(Values(shard_, x), ElementsAre(-3, -4, -2, -2, -3, -3));
}

TEST_F(ParameterShardTest, AveragesAllRowsAndAssignsTheAverages) {
  const uint32_t x = Create("x", Shape({2, 1}));
  const uint32_t without = Create("without", Shape({1}), 7);
  ASSERT_OK(shard_.SetOptimizer(SgdWith("use_ema: true ema_momentum: 0.5")));
  ASSERT_OK(Call()
                .Update(x, proto::APPLY_GRADIENT, Floats({2, 1}, {-4, -8}))
                .Run(shard_));
  // The average is 4, 8; row 1 becomes 16, and the average 4, 12.
  ASSERT_OK(
      Call()
          .Sparse(x, proto::APPLY_SPARSE_GRADIENT, {1}, Floats({1, 1}, {-8}))
          .Run(shard_));
  EXPECT_THAT(Values(shard_, x), ElementsAre(4, 16));
  const int64_t version = shard_.Describe().shards(0).version();
  shard_.AssignAverages();
  EXPECT_THAT(Values(shard_, x), ElementsAre(4, 12));
  EXPECT_GT(shard_.Describe().shards(0).version(), version);
  EXPECT_THAT(Values(shard_, without), ElementsAre(7));
}

TEST_F(ParameterShardTest, PullsReturnOnlyChangedValues) {
  const uint32_t x = Create("x", Shape({1}));
  const uint32_t y = Create("y", Shape({1}));
  Call first;
  ASSERT_OK(first.Pull(x).Pull(y).Run(shard_));
  EXPECT_EQ(first.answers.size(), 2);
  ASSERT_OK(Call().Update(y, proto::ASSIGN, Floats({1}, {4})).Run(shard_));
  Call second;
  ASSERT_OK(second.Pull(x, first.response.pull_versions(0))
                .Pull(y, first.response.pull_versions(1))
                .Run(shard_));
  ASSERT_EQ(second.answers.size(), 1);
  EXPECT_THAT(second.answers[0].flat<float>(), ElementsAre(4));
  EXPECT_EQ(second.response.pull_versions(0), first.response.pull_versions(0));
}

TEST_F(ParameterShardTest, GathersReturnRowsInRequestedOrder) {
  const uint32_t x = Create("x", Shape({3, 2}));
  ASSERT_OK(Call()
                .Update(x, proto::ASSIGN, Floats({3, 2}, {0, 1, 2, 3, 4, 5}))
                .Run(shard_));
  Call call;
  ASSERT_OK(call.Gather(x, {2, 0, 2}).Run(shard_));
  EXPECT_EQ(call.answers[0].shape(), Shape({3, 2}));
  EXPECT_THAT(call.answers[0].flat<float>(), ElementsAre(4, 5, 0, 1, 4, 5));
}

TEST_F(ParameterShardTest, WritesAnswersToTheirPlaces) {
  const uint32_t x = Create("x", Shape({3}), 1);
  const uint32_t y = Create("y", Shape({2}), 5);
  ASSERT_OK(shard_.SetOptimizer(Sgd(1)));
  std::vector<float> rows(2), changed(3), unchanged(2, -1);
  Call call;
  call.Update(x, proto::APPLY_GRADIENT, Floats({3}, {1, 2, 3}))
      .Gather(x, {2, 0})
      .Pull(x)
      .Pull(y)
      .Pull(y, 1)
      .At(rows.data(), 8)
      .At(changed.data(), 12)
      .At(nullptr, 0)
      .At(unchanged.data(), 8);
  ASSERT_OK(call.Run(shard_));
  EXPECT_THAT(rows, ElementsAre(-2, 0));
  EXPECT_THAT(changed, ElementsAre(0, -1, -2));
  EXPECT_THAT(unchanged, ElementsAre(-1, -1));
  ASSERT_EQ(call.answers.size(), 1);
  EXPECT_THAT(call.answers[0].flat<float>(), ElementsAre(5, 5));
  EXPECT_THAT(call.response.pull_versions(), ElementsAre(2, 1, 1));
}

TEST_F(ParameterShardTest, RejectsAnswersThatDoNotFitTheirPlaces) {
  const uint32_t x = Create("x", Shape({3}));
  const Tensor ones = Tensor::Full(DType::kFloat32, Shape({3}), 1);
  std::vector<float> place(3);
  Call small;
  small.Update(x, proto::ASSIGN_ADD, ones).Pull(x).At(place.data(), 11);
  EXPECT_THAT(small.Run(shard_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 12 bytes, and 11 are left")));
  Call rows;
  rows.Gather(x, {0, 1, 2, 0}).At(place.data(), 12);
  EXPECT_THAT(rows.Run(shard_), StatusIs(absl::StatusCode::kInvalidArgument));
  Call many;
  many.Update(x, proto::ASSIGN_ADD, ones).Pull(x);
  many.At(place.data(), 12).At(place.data(), 12);
  EXPECT_THAT(many.Run(shard_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("asks for 1 answers but has 2")));
  EXPECT_THAT(Values(shard_, x), Each(0.0f));
}

// Values are copied stripe by stripe during updates, concurrently with updates
// of other threads. A copy with the newest version must contain all of it.
TEST_F(ParameterShardTest, CopyIsNeverOlderThanItsVersion) {
  constexpr int kRows = 4096;
  constexpr int kRounds = 200;
  const Shape shape({kRows, 64});
  const uint32_t x = Create("x", shape);
  const Tensor ones = Tensor::Full(DType::kFloat32, shape, 1);
  std::vector<Tensor> copies;
  for (int i = 0; i < 2; ++i) copies.emplace_back(DType::kFloat32, shape);
  std::vector<int64_t> versions(2);
  const auto push = [&](int worker, int round) {
    Call call;
    call.Step(1 + 2 * round + worker)
        .Update(x, proto::ASSIGN_ADD, ones)
        .Pull(x)
        .At(copies[worker].mutable_raw_data(), ones.size_bytes());
    EXPECT_OK(call.Run(shard_));
    versions[worker] = call.response.pull_versions(0);
  };
  int newest_count = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::thread other([&] { push(1, round); });
    push(0, round);
    other.join();
    const int64_t newest = shard_.Describe().shards(0).version();
    for (int worker = 0; worker < 2; ++worker) {
      if (versions[worker] != newest) continue;
      ++newest_count;
      for (float value : copies[worker].flat<float>()) {
        ASSERT_EQ(value, 2 * (round + 1)) << "round " << round;
      }
    }
  }
  EXPECT_GE(newest_count, kRounds);
}

TEST_F(ParameterShardTest, RejectsInvalidExchangesWithoutApplyingThem) {
  const uint32_t x = Create("x", Shape({2}));
  const uint32_t y = Create("y", Shape({3, 2}));
  ASSERT_OK(shard_.SetOptimizer(Sgd(1)));
  const Tensor good = Floats({2}, {1, 1});
  const auto refused = [&](Call call, absl::StatusCode code,
                           const std::string& words) {
    // The first update is valid but must not be applied.
    Call whole;
    whole.Update(x, proto::ASSIGN_ADD, good);
    for (uint32_t handle : call.request.update_handles()) {
      whole.request.add_update_handles(handle);
    }
    for (int kind : call.request.update_kinds()) {
      whole.request.add_update_kinds(static_cast<proto::UpdateKind>(kind));
    }
    for (const auto& tensor : call.tensors) whole.tensors.push_back(tensor);
    EXPECT_THAT(whole.Run(shard_), StatusIs(code, HasSubstr(words)));
    EXPECT_THAT(Values(shard_, x), Each(0.0f)) << words;
  };
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  refused(Call().Update(9, proto::ASSIGN, good), absl::StatusCode::kNotFound,
          "no variable with handle 9");
  refused(Call().Update(y, proto::ASSIGN, good), kInvalid,
          "\"y\" expected a value float32[3,2]; got float32[2]");
  refused(Call().Update(x, proto::ASSIGN, Tensor::Zeros(DType::kInt32, {2})),
          kInvalid, "got int32[2]");
  refused(Call().Sparse(y, proto::SCATTER_ADD, {3}, Floats({1, 2}, {1, 1})),
          kInvalid, "row 3 of variable \"y\" does not exist; it has 3 rows");
  refused(Call().Sparse(y, proto::SCATTER_ADD, {-1}, Floats({1, 2}, {1, 1})),
          kInvalid, "row -1");
  refused(Call().Sparse(y, proto::SCATTER_ADD, {1}, Floats({1, 1}, {1})),
          kInvalid, "expected a value float32[1,2]");
  refused(Call().Update(x, static_cast<proto::UpdateKind>(77), good), kInvalid,
          "no update of kind 77");
  Call too_many;
  too_many.tensors.push_back(ReceivedTensor::FromTensor(good));
  refused(too_many, kInvalid, "too many tensors");
  Call too_few;
  too_few.request.add_update_handles(x);
  too_few.request.add_update_kinds(proto::ASSIGN);
  refused(too_few, kInvalid, "too few tensors");
  Call lopsided;
  lopsided.request.add_update_handles(x);
  refused(lopsided, kInvalid, "2 updates but 1 kinds");
}

TEST_F(ParameterShardTest, GradientNeedsAnOptimizerAndAFloatVariable) {
  const uint32_t x = Create("x", Shape({1}));
  Call call;
  call.Update(x, proto::APPLY_GRADIENT, Floats({1}, {1}));
  EXPECT_THAT(call.Run(shard_), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("no optimizer was set")));
  const uint32_t n =
      shard_.Create(Spec("n", DType::kInt64, Shape({1}))).value();
  ASSERT_OK(shard_.SetOptimizer(Sgd(1)));
  EXPECT_THAT(
      Call()
          .Update(n, proto::APPLY_GRADIENT,
                  Tensor::FromValues<int64_t>({1}, {1}))
          .Run(shard_),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is of int64")));
}

TEST_F(ParameterShardTest, OptimizerCannotChangeItsKindDuringAJob) {
  Create("x", Shape({2}));
  ASSERT_OK(shard_.SetOptimizer(Sgd(1)));
  EXPECT_OK(shard_.SetOptimizer(Sgd(0.5)));
  proto::Optimizer momentum = Sgd(1);
  momentum.mutable_sgd()->set_momentum(0.9);
  EXPECT_THAT(shard_.SetOptimizer(momentum),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("during a job")));
  shard_.Clear();
  EXPECT_OK(shard_.SetOptimizer(momentum));
}

TEST_F(ParameterShardTest, RejectsRequestsForAnswersThatAreTooLarge) {
  ParameterShard shard({.answer_bytes_max = 1 << 20});
  const uint32_t x =
      shard.Create(Spec("x", DType::kFloat32, Shape({1000}))).value();
  Call call;
  for (int i = 0; i < 1000; ++i) call.Pull(x);
  EXPECT_THAT(call.Run(shard), StatusIs(absl::StatusCode::kResourceExhausted,
                                        HasSubstr("more than 1048576 bytes")));
  EXPECT_THAT(Call().Gather(x, std::vector<int64_t>(1 << 19, 0)).Run(shard),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(ParameterShardTest, RepeatedPushIsAcknowledgedAndAnswered) {
  const uint32_t x = Create("x", Shape({1}));
  Call push;
  push.Step(7).Update(x, proto::ASSIGN_ADD, Floats({1}, {1})).Pull(x);
  ASSERT_OK(push.Run(shard_));
  EXPECT_FALSE(push.response.was_repeat());
  ASSERT_OK(push.Run(shard_));
  EXPECT_TRUE(push.response.was_repeat());
  EXPECT_THAT(push.answers.at(0).flat<float>(), ElementsAre(1));
  push.Step(7, 1);
  ASSERT_OK(push.Run(shard_));
  EXPECT_THAT(push.answers.at(0).flat<float>(), ElementsAre(2));
}

TEST_F(ParameterShardTest, LostAcknowledgementDoesNotApplyTwice) {
  const uint32_t x = Create("x", Shape({1}));
  SetFaults({{.point = "ps.after_apply_before_ack",
              .occurrence = 1,
              .action = FaultAction::kFail},
             {.point = "ps.before_apply",
              .occurrence = 3,
              .action = FaultAction::kFail}});
  Call push;
  push.Step(7).Update(x, proto::ASSIGN_ADD, Floats({1}, {1}));
  EXPECT_THAT(push.Run(shard_), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_OK(push.Run(shard_));
  // A push that was lost before it was applied counts once.
  push.Step(8);
  EXPECT_THAT(push.Run(shard_), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_OK(push.Run(shard_));
  EXPECT_EQ(FaultPointPassCount("ps.before_apply"), 4);
  SetFaults({});
  EXPECT_THAT(Values(shard_, x), ElementsAre(2));
}

TEST_F(ParameterShardTest, LowWaterMarkForgetsPushes) {
  const uint32_t x = Create("x", Shape({1}));
  for (uint64_t step = 1; step <= 20; ++step) {
    Call push;
    push.Step(step).Update(x, proto::ASSIGN_ADD, Floats({1}, {1}));
    push.request.set_low_water_mark(step > 5 ? step - 5 : 0);
    ASSERT_OK(push.Run(shard_));
  }
  EXPECT_EQ(shard_.Describe().remembered_exchange_count(), 6);
  ASSERT_OK(Call()
                .Step(3)
                .Update(x, proto::ASSIGN_ADD, Floats({1}, {1}))
                .Run(shard_));
  EXPECT_THAT(Values(shard_, x), ElementsAre(20));
}

// Two threads push each step over variables of many stripes. Sums of whole
// numbers are exact, so a lost or repeated update is visible.
TEST_F(ParameterShardTest, ConcurrentRepeatsApplyEachUpdateOnce) {
  constexpr int kRows = 3000;
  constexpr int kSteps = 60;
  const uint32_t dense = Create("dense", Shape({kRows, 64}));
  const uint32_t table = Create("table", Shape({kRows, 64}));
  ASSERT_OK(shard_.SetOptimizer(Sgd(1)));
  const Tensor gradient = Tensor::Full(DType::kFloat32, Shape({kRows, 64}), -1);
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < kRows; row += 2) rows.push_back(row);
  const Tensor row_gradient =
      gradient.SliceRows(0, static_cast<int64_t>(rows.size()));
  const auto push_all = [&](int first, int stride) {
    for (int i = 0; i < kSteps; ++i) {
      const int step = 1 + (first + i * stride) % kSteps;
      EXPECT_OK(
          Call()
              .Step(step)
              .Update(dense, proto::APPLY_GRADIENT, gradient)
              .Sparse(table, proto::APPLY_SPARSE_GRADIENT, rows, row_gradient)
              .Run(shard_));
    }
  };
  // Coprime strides visit every step in different orders.
  std::thread other([&] { push_all(0, 1); });
  std::thread third([&] { push_all(0, 1); });
  push_all(5, 7);
  other.join();
  third.join();
  EXPECT_THAT(Values(shard_, dense), Each(float{kSteps}));
  const std::vector<float> values = Values(shard_, table);
  for (int64_t i = 0; i < kRows * 64; ++i) {
    ASSERT_EQ(values[i], (i / 64) % 2 == 0 ? float{kSteps} : 0.0f) << i;
  }
}

}  // namespace
}  // namespace muster
