#include "common/compute/variables/local_variable.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/update_rule.h"
#include "common/compute/variables/row_sums.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/core/tensor/tensor_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::unique_ptr<LocalVariable> Make(const Tensor& value) {
  proto::VariableSpec spec;
  spec.set_name("v");
  spec.set_dtype(EncodeDType(value.dtype()));
  *spec.mutable_shape() = EncodeShape(value.shape());
  *spec.mutable_initializer()->mutable_value() = EncodeTensor(value);
  auto variable = LocalVariable::Create(spec);
  EXPECT_OK(variable);
  return *std::move(variable);
}

std::shared_ptr<const UpdateRule> Rule(const Optimizer& optimizer) {
  auto rule = UpdateRule::Create(optimizer);
  EXPECT_OK(rule);
  return *std::move(rule);
}

absl::Status Update(LocalVariable* variable, UpdateKind kind,
                    const Tensor& value, const Tensor& indices = {},
                    const std::shared_ptr<const UpdateRule>& rule = nullptr) {
  RowSums row_sums;
  return variable->Update(kind, value, indices, rule, &row_sums);
}

Tensor Floats(const Shape& shape, std::initializer_list<float> values) {
  return Tensor::FromValues<float>(shape, values);
}
Tensor Indices(std::initializer_list<int64_t> values) {
  return Tensor::FromValues<int64_t>({static_cast<int64_t>(values.size())},
                                     values);
}

TEST(LocalVariable, AssignsAddsAndSubtracts) {
  const auto variable = Make(Floats({2}, {1, 2}));
  ASSERT_OK(
      Update(variable.get(), UpdateKind::kAssignAdd, Floats({2}, {10, 20})));
  ASSERT_OK(
      Update(variable.get(), UpdateKind::kAssignSub, Floats({2}, {1, 1})));
  EXPECT_THAT(variable->Read().flat<float>(), ElementsAre(10, 21));
  ASSERT_OK(variable->Assign(Floats({2}, {5, 6})));
  EXPECT_THAT(variable->Read().flat<float>(), ElementsAre(5, 6));
  EXPECT_EQ(variable->update_count(), 0);
}

TEST(LocalVariable, CountersAreIntegers) {
  const auto counter = Make(Tensor::Scalar<int64_t>(5));
  ASSERT_OK(Update(counter.get(), UpdateKind::kAssignAdd,
                   Tensor::Scalar<int64_t>(2)));
  EXPECT_EQ(counter->Read().scalar<int64_t>(), 7);
}

TEST(LocalVariable, ScatterTouchesItsRowsInOrder) {
  const auto variable = Make(Floats({3, 2}, {1, 2, 3, 4, 5, 6}));
  ASSERT_OK(Update(variable.get(), UpdateKind::kScatterAdd,
                   Floats({3, 2}, {10, 10, 1, 1, 20, 20}), Indices({2, 0, 2})));
  EXPECT_THAT(variable->Read().flat<float>(), ElementsAre(2, 3, 3, 4, 35, 36));
  ASSERT_OK(Update(variable.get(), UpdateKind::kScatterUpdate,
                   Floats({2, 2}, {7, 7, 8, 8}), Indices({1, 1})));
  ASSERT_OK(Update(variable.get(), UpdateKind::kScatterSub,
                   Floats({1, 2}, {5, 6}), Indices({2})));
  EXPECT_THAT(variable->Read().flat<float>(), ElementsAre(2, 3, 8, 8, 30, 30));
}

TEST(LocalVariable, GatherTakesIndicesOfAnyShape) {
  const auto variable = Make(Floats({3, 2}, {1, 2, 3, 4, 5, 6}));
  Tensor rows;
  ASSERT_OK(variable->Gather(Tensor::FromValues<int32_t>({2, 2}, {2, 0, 0, 1}),
                             &rows));
  EXPECT_EQ(rows.shape(), Shape({2, 2, 2}));
  EXPECT_THAT(rows.flat<float>(), ElementsAre(5, 6, 1, 2, 1, 2, 3, 4));
  const void* const memory = rows.raw_data();
  ASSERT_OK(variable->Gather(Tensor::FromValues<int32_t>({2, 2}, {0, 0, 0, 0}),
                             &rows));
  EXPECT_EQ(rows.raw_data(), memory);
  EXPECT_THAT(rows.flat<float>(), ElementsAre(1, 2, 1, 2, 1, 2, 1, 2));
}

TEST(LocalVariable, AValueThatWasReadNeverChanges) {
  const auto variable = Make(Floats({2}, {1, 2}));
  {
    const Tensor before = variable->Read();
    ASSERT_OK(
        Update(variable.get(), UpdateKind::kAssignAdd, Floats({2}, {1, 1})));
    EXPECT_THAT(before.flat<float>(), ElementsAre(1, 2));
    EXPECT_THAT(variable->Read().flat<float>(), ElementsAre(2, 3));
  }
  const void* const memory = variable->Read().raw_data();
  ASSERT_OK(
      Update(variable.get(), UpdateKind::kAssignAdd, Floats({2}, {1, 1})));
  EXPECT_EQ(variable->Read().raw_data(), memory) << "no tensor held it";
}

TEST(LocalVariable, TwoBuffersTakeTurns) {
  const auto variable = Make(Floats({2}, {0, 0}));
  std::vector<const void*> memory;
  for (int step = 0; step < 4; ++step) {
    const Tensor held = variable->Read();
    memory.push_back(held.raw_data());
    ASSERT_OK(
        Update(variable.get(), UpdateKind::kAssignAdd, Floats({2}, {1, 1})));
  }
  EXPECT_EQ(memory[0], memory[2]);
  EXPECT_EQ(memory[1], memory[3]);
  EXPECT_THAT(variable->Read().flat<float>(), Each(4));
}

TEST(LocalVariable, GradientsGoThroughTheOptimizer) {
  const auto variable = Make(Floats({2}, {1, 2}));
  const auto rule = Rule(Sgd({.learning_rate = 0.5, .momentum = 0.5}));
  ASSERT_OK(Update(variable.get(), UpdateKind::kApplyGradient,
                   Floats({2}, {2, 4}), {}, rule));
  EXPECT_THAT(variable->Read().flat<float>(), ElementsAre(0, 0));
  ASSERT_OK(Update(variable.get(), UpdateKind::kApplyGradient,
                   Floats({2}, {2, 4}), {}, rule));
  EXPECT_THAT(variable->Read().flat<float>(), ElementsAre(-1.5, -3));
  EXPECT_EQ(variable->update_count(), 2);
  ASSERT_THAT(variable->ReadSlots(), SizeIs(1));
  EXPECT_EQ(variable->ReadSlots()[0].name, "momentum");
}

TEST(LocalVariable, Float64Trains) {
  const auto variable = Make(Tensor::FromValues<double>({1}, {1}));
  ASSERT_OK(Update(variable.get(), UpdateKind::kApplyGradient,
                   Tensor::FromValues<double>({1}, {1}), {},
                   Rule(Sgd({.learning_rate = 0.25}))));
  EXPECT_EQ(variable->Read().flat<double>()[0], 0.75);
}

TEST(LocalVariable, RowsThatRepeatInAGradientAreOneUpdate) {
  // Adagrad distinguishes (1 + 1)^2 from 1^2 + 1^2.
  const auto rule =
      Rule(Adagrad({.learning_rate = 1.0, .initial_accumulator_value = 0}));
  const auto sparse = Make(Floats({2, 1}, {0, 0}));
  ASSERT_OK(Update(sparse.get(), UpdateKind::kApplySparseGradient,
                   Floats({2, 1}, {1, 1}), Indices({1, 1}), rule));
  EXPECT_THAT(sparse->ReadSlots()[0].value.flat<float>(), ElementsAre(0, 4));
  EXPECT_EQ(sparse->update_count(), 1);
}

TEST(LocalVariable, SlotsOutliveAChangeOfHyperparameters) {
  const auto variable = Make(Floats({1}, {0}));
  const Tensor gradient = Floats({1}, {1});
  ASSERT_OK(Update(variable.get(), UpdateKind::kApplyGradient, gradient, {},
                   Rule(Adam())));
  const float momentum = variable->ReadSlots()[0].value.flat<float>()[0];
  ASSERT_OK(Update(variable.get(), UpdateKind::kApplyGradient, gradient, {},
                   Rule(Adam({.beta_1 = 0.5, .amsgrad = true}))));
  ASSERT_THAT(variable->ReadSlots(), SizeIs(3));
  EXPECT_FLOAT_EQ(variable->ReadSlots()[0].value.flat<float>()[0],
                  momentum + (1 - momentum) * 0.5f);
}

TEST(LocalVariable, RestoreContinuesWhereAnotherStopped) {
  const auto rule = Rule(Adam({.learning_rate = 0.1}));
  const auto original = Make(Floats({2}, {1, 2}));
  const Tensor gradient = Floats({2}, {0.5, -1});
  for (int step = 0; step < 3; ++step) {
    ASSERT_OK(
        Update(original.get(), UpdateKind::kApplyGradient, gradient, {}, rule));
  }
  const auto copy = Make(original->Read());
  ASSERT_OK(copy->Restore(original->update_count(), original->ReadSlots()));
  for (LocalVariable* variable : {original.get(), copy.get()}) {
    ASSERT_OK(Update(variable, UpdateKind::kApplyGradient, gradient, {}, rule));
  }
  EXPECT_TRUE(BitwiseEqual(original->Read(), copy->Read()));
  EXPECT_THAT(
      copy->Restore(0, {{"momentum", Tensor::Scalar<int64_t>(3)}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("int64[]")));
  // The slot must have the shape that the rule expects.
  ASSERT_OK(copy->Restore(0, {{"momentum", Floats({3}, {1, 2, 3})}}));
  const Tensor before = copy->Read().Clone();
  EXPECT_THAT(
      Update(copy.get(), UpdateKind::kApplyGradient, gradient, {}, rule),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("\"momentum\" was restored as float32[3]; adam needs "
                         "float32[2]")));
  EXPECT_TRUE(BitwiseEqual(copy->Read(), before));
}

TEST(LocalVariable, InvalidUpdateNamesExpectationAndChangesNothing) {
  const auto variable = Make(Floats({3, 2}, {1, 2, 3, 4, 5, 6}));
  const auto rule = Rule(Sgd());
  const Tensor before = variable->Read().Clone();
  const struct {
    UpdateKind kind;
    Tensor value;
    Tensor indices;
    std::string message;
  } cases[] = {
      {UpdateKind::kAssign,
       Floats({2, 3}, {1, 2, 3, 4, 5, 6}),
       {},
       "float32[2,3]; expected float32[3,2]"},
      {UpdateKind::kAssign, Tensor(), {}, "none"},
      {UpdateKind::kApplyGradient,
       Tensor::Zeros(DType::kFloat64, {3, 2}),
       {},
       "the gradient is float64[3,2]"},
      {UpdateKind::kScatterAdd, Floats({2, 2}, {1, 1, 1, 1}), Indices({0, 3}),
       "index 3 at position 1"},
      {UpdateKind::kScatterAdd, Floats({1, 2}, {1, 1}), Indices({-1}),
       "index -1"},
      {UpdateKind::kScatterAdd, Floats({1, 3}, {1, 1, 1}), Indices({1}),
       "float32[1,3]"},
      {UpdateKind::kApplySparseGradient, Floats({1, 2}, {1, 1}),
       Floats({1}, {0}), "expected int32 or int64"},
      {UpdateKind::kApplySparseGradient, Floats({1, 2}, {1, 1}), Tensor(),
       "indices are"},
  };
  for (const auto& [kind, value, indices, message] : cases) {
    EXPECT_THAT(
        Update(variable.get(), kind, value, indices, rule),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 testing::AllOf(HasSubstr("\"v\""), HasSubstr(message))));
  }
  EXPECT_TRUE(BitwiseEqual(variable->Read(), before));
  EXPECT_EQ(variable->update_count(), 0);
}

TEST(LocalVariable, GradientsNeedAnOptimizerAndAFloat) {
  EXPECT_THAT(Update(Make(Floats({1}, {1})).get(), UpdateKind::kApplyGradient,
                     Floats({1}, {1})),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("SetOptimizer")));
  EXPECT_THAT(
      Update(Make(Tensor::Scalar<int32_t>(1)).get(), UpdateKind::kApplyGradient,
             Tensor::Scalar<int32_t>(1), {}, Rule(Sgd())),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("int32")));
}

TEST(LocalVariable, ManyThreadsLoseNoUpdate) {
  const auto variable = Make(Tensor::Zeros(DType::kFloat32, {64}));
  constexpr int kThreads = 4;
  constexpr int kUpdates = 200;
  const Tensor one = Tensor::Full(DType::kFloat32, {64}, 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kUpdates; ++i) {
        EXPECT_OK(Update(variable.get(), UpdateKind::kAssignAdd, one));
        const Tensor value = variable->Read();
        EXPECT_THAT(value.flat<float>(), Each(value.flat<float>()[0]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(variable->Read().flat<float>(), Each(kThreads * kUpdates));
}

}  // namespace
}  // namespace muster
