#include "ps/parameter_shard.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/parameter_server.pb.h"
#include "ps/testing/shard_call.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ParameterShardTest = ShardFixture;

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
  ASSERT_OK(shard_.SetOptimizer(SgdOf(0.5)));
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
  ASSERT_OK(shard_.SetOptimizer(SgdOf(1)));
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
  ASSERT_OK(shard_.SetOptimizer(SgdOf(1)));
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
  ASSERT_OK(shard_.SetOptimizer(SgdOf(1)));
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
