#include "common/compute/optimizers/update_rule.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/complete_optimizer.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/shape.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::SizeIs;

// tests/golden compares the numerics with Keras. These tests cover what Keras
// does not specify.

// Returns every optimizer of the table, and variants of some.
std::vector<Optimizer> AllRules() {
  std::vector<Optimizer> optimizers = {
      Sgd({.momentum = 0.9}),
      Sgd({.momentum = 0.9, .nesterov = true}),
      Adam({.amsgrad = true}),
      RmsProp({.momentum = 0.9}),
      RmsProp({.centered = true}),
      Sgd({}, {.gradient_accumulation_steps = 4}),
      Sgd({}, {.use_ema = true, .ema_overwrite_frequency = 2}),
      RmsProp({.momentum = 0.9, .centered = true}),
      Ftrl({.l1_regularization_strength = 0.01}),
      Ftrl({.learning_rate_power = -0.7, .beta = 0.1}),
  };
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    optimizers.push_back(kind->defaults());
    proto::Optimizer with_decay = kind->defaults().message();
    with_decay.set_weight_decay(0.01);
    optimizers.push_back(with_decay);
  }
  return optimizers;
}

proto::Optimizer Parse(const std::string& text) {
  proto::Optimizer optimizer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &optimizer));
  return optimizer;
}

template <typename T>
std::vector<T> RandomNumbers(uint64_t key, int64_t count) {
  RandomStream stream(key);
  std::vector<T> numbers(count);
  for (T& number : numbers) {
    const uint64_t bits = stream.Next64();
    number = static_cast<T>(UnitNormals(static_cast<uint32_t>(bits),
                                        static_cast<uint32_t>(bits >> 32))[0]);
  }
  return numbers;
}

// A variable and its slots.
template <typename T>
struct State {
  State(const UpdateRule& rule, int64_t count)
      : variable(RandomNumbers<T>(1, count)) {
    for (const SlotSpec& slot : rule.slots()) {
      slots.emplace_back(count, static_cast<T>(slot.initial_value));
      if (slot.starts_as_variable) slots.back() = variable;
    }
  }
  std::vector<T*> SlotsAt(int64_t offset) {
    std::vector<T*> pointers;
    for (std::vector<T>& slot : slots) pointers.push_back(slot.data() + offset);
    return pointers;
  }
  void Apply(const UpdateRule& rule, int64_t step, int64_t begin, int64_t end,
             const std::vector<T>& gradient) {
    rule.Apply(step, end - begin, gradient.data() + begin,
               variable.data() + begin, absl::MakeConstSpan(SlotsAt(begin)));
  }
  std::vector<T> variable;
  std::vector<std::vector<T>> slots;
};

// Compares bytes, because NaNs and the signs of zeros count.
template <typename T>
bool SameBits(const State<T>& a, const State<T>& b) {
  const auto same = [](const std::vector<T>& x, const std::vector<T>& y) {
    return std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
  };
  for (size_t i = 0; i < a.slots.size(); ++i) {
    if (!same(a.slots[i], b.slots[i])) return false;
  }
  return same(a.variable, b.variable);
}

template <typename T>
void PiecesGiveTheBitsOfTheWhole() {
  constexpr int64_t kCount = 1003;  // Not a multiple of any vector width.
  RandomStream random(7);
  for (const Optimizer& optimizer : AllRules()) {
    ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(optimizer));
    if (rule->needs_whole_variables()) continue;
    State<T> whole(*rule, kCount);
    State<T> pieces(*rule, kCount);
    for (int64_t step = 0; step < 5; ++step) {
      const auto gradient = RandomNumbers<T>(100 + step, kCount);
      whole.Apply(*rule, step, 0, kCount, gradient);
      std::vector<std::pair<int64_t, int64_t>> ranges;
      for (int64_t begin = 0; begin < kCount;) {
        const int64_t end = std::min<int64_t>(
            kCount, begin + 1 + static_cast<int64_t>(random.Below(40)));
        ranges.emplace_back(begin, end);
        begin = end;
      }
      std::reverse(ranges.begin(), ranges.end());
      for (const auto& [begin, end] : ranges) {
        pieces.Apply(*rule, step, begin, end, gradient);
      }
    }
    EXPECT_TRUE(SameBits(whole, pieces))
        << optimizer.message().ShortDebugString();
  }
}

TEST(UpdateRule, IsBitIdenticalForPartsInAnyOrder) {
  PiecesGiveTheBitsOfTheWhole<float>();
  PiecesGiveTheBitsOfTheWhole<double>();
}

TEST(UpdateRule, RowUpdatesMatchWholeUpdatesAndLeaveOtherRows) {
  constexpr int64_t kRows = 30;
  constexpr int64_t kRowElements = 17;
  const std::vector<int64_t> rows = {4, 29, 0, 17, 5, 12};
  for (const Optimizer& optimizer : AllRules()) {
    ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(optimizer));
    // Rules that change all rows do not leave the other rows unchanged.
    if (rule->needs_whole_variables() || rule->ChangesAllRows(6)) continue;
    State<float> expected(*rule, kRows * kRowElements);
    State<float> actual(*rule, kRows * kRowElements);
    const auto gradients = RandomNumbers<float>(3, rows.size() * kRowElements);
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t offset = rows[i] * kRowElements;
      rule->Apply(6, kRowElements, gradients.data() + i * kRowElements,
                  expected.variable.data() + offset,
                  absl::MakeConstSpan(expected.SlotsAt(offset)));
    }
    rule->ApplyRows(6, kRowElements, rows, gradients.data(),
                    actual.variable.data(),
                    absl::MakeConstSpan(actual.SlotsAt(0)));
    EXPECT_TRUE(SameBits(expected, actual))
        << optimizer.message().ShortDebugString();
  }
}

TEST(UpdateRule, SchedulesCountGradientsAndRulesCountUpdates) {
  const LearningRateSchedule schedule = InverseTimeDecay(
      {.initial_learning_rate = 1, .decay_steps = 1, .decay_rate = 1});
  ASSERT_OK_AND_ASSIGN(
      const auto rule,
      UpdateRule::Create(Sgd({.learning_rate = schedule},
                             {.gradient_accumulation_steps = 2})));
  State<double> state(*rule, 1);
  state.variable[0] = 0;
  std::vector<double> values;
  for (int64_t step = 0; step < 4; ++step) {
    EXPECT_FLOAT_EQ(rule->LearningRate(step), 1.0 / (1 + step));
    state.Apply(*rule, step, 0, 1, {step % 2 == 0 ? -1.0 : -3.0});
    values.push_back(state.variable[0]);
  }
  // The mean of -1 and -3, at the rates of gradients 1 and 3.
  const std::vector<double> expected = {0, 1.0, 1.0, 1.5};
  EXPECT_THAT(values, Pointwise(DoubleNear(1e-7), expected));
}

TEST(UpdateRule, MinimizesAParabola) {
  for (const Optimizer& any : AllRules()) {
    proto::Optimizer optimizer = any.message();
    SetConstantLearningRate(0.05, &optimizer);
    optimizer.set_weight_decay(0);
    if (optimizer.has_ftrl()) {
      optimizer.mutable_ftrl()->set_l1_regularization_strength(0);
      optimizer.mutable_ftrl()->set_beta(0);
    }
    ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const UpdateRule> rule,
                         UpdateRule::Create(optimizer));
    const auto update = UpdateRuleFor(rule, "x", {1});
    State<double> state(*update, 1);
    state.variable[0] = 0;
    for (int64_t step = 0; step < 20'000; ++step) {
      state.Apply(*update, step, 0, 1, {2 * (state.variable[0] - 1)});
    }
    EXPECT_NEAR(state.variable[0], 1, 0.1) << optimizer.ShortDebugString();
  }
}

TEST(UpdateRule, SlotsFollowTheNameAndTheShapeOfTheVariable) {
  const auto slots_of = [](const Optimizer& optimizer, absl::string_view name,
                           const Shape& shape) {
    const std::shared_ptr<const UpdateRule> rule =
        UpdateRule::Create(optimizer).value();
    std::vector<std::string> slots;
    const auto own_rule = UpdateRuleFor(rule, name, shape);
    for (const SlotSpec& slot : own_rule->slots()) {
      slots.push_back(
          absl::StrCat(slot.name, slot.shape.value_or(shape).ToString()));
    }
    return slots;
  };
  EXPECT_THAT(slots_of(Adam(), "x", {2, 3}),
              ElementsAre("momentum[2,3]", "velocity[2,3]"));
  EXPECT_THAT(slots_of(Adafactor(), "x", {5}), ElementsAre("velocity[5]"));
  EXPECT_THAT(slots_of(Adafactor(), "x", {4, 2, 3}),
              ElementsAre("r[4,2]", "c[4,3]", "velocity[4,2,3]"));
  EXPECT_THAT(
      slots_of(Adafactor({}, {.gradient_accumulation_steps = 2}), "x", {2, 3}),
      ElementsAre("r[2]", "c[3]", "velocity[2,3]",
                  "gradient_accumulator[2,3]"));
  const Optimizer muon = Muon({.exclude_layers = {"out.*kernel"}});
  EXPECT_THAT(slots_of(muon, "dense/kernel", {2, 3}),
              ElementsAre("momentum[2,3]"));
  EXPECT_THAT(slots_of(muon, "output/kernel", {2, 3}), SizeIs(2));
  EXPECT_THAT(slots_of(muon, "Embedding/embeddings", {2, 3}), SizeIs(2));
  EXPECT_THAT(slots_of(muon, "dense/bias", {3}), SizeIs(2));
  EXPECT_THAT(UpdateRule::Create(Muon({.exclude_layers = {"("}})).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("muon: exclude_layers has \"(\"")));
}

TEST(UpdateRule, ErrorsNameTheRuleAndTheHyperparameter) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<Optimizer, std::string>> cases = {
      {Optimizer(), "expected one of sgd, adam, adamw, adagrad"},
      {Sgd({.momentum = 1.5}), "sgd: momentum is 1.5"},
      {Sgd({.learning_rate = -0.5}), "sgd: learning_rate is -0.5"},
      {Sgd({}, {.weight_decay = -1}), "sgd: weight_decay is -1"},
      {Sgd({}, {.clipvalue = -1}), "sgd: clipvalue is -1"},
      {Sgd({}, {.clipnorm = 1, .global_clipnorm = 1}), "sgd: only one of"},
      {Sgd({}, {.gradient_accumulation_steps = 1}),
       "sgd: gradient_accumulation_steps is 1; expected at least 2"},
      {Sgd({}, {.use_ema = true, .ema_momentum = 1.5}),
       "sgd: ema_momentum is 1.5"},
      {Sgd({}, {.use_ema = true, .ema_overwrite_frequency = -1}),
       "sgd: ema_overwrite_frequency is -1"},
      {Lamb({.beta_2 = 1}), "lamb: beta_2 is 1"},
      {ScheduleFreeAdamW({.beta_1 = 0}), "schedule_free_adamw: beta_1 is 0"},
      {ScheduleFreeAdamW({.warmup_steps = -1}),
       "schedule_free_adamw: warmup_steps is -1"},
      {Sgd({.learning_rate = CosineDecay({.initial_learning_rate = 1})}),
       "sgd: cosine_decay: decay_steps is 0"},
      {Adam({.beta_1 = 1}), "adam: beta_1 is 1"},
      {AdamW({.beta_1 = 1}), "adamw: beta_1 is 1"},
      {Adam({.beta_2 = -0.1}), "adam: beta_2 is -0.1"},
      {Adam({.epsilon = infinity}), "adam: epsilon is inf"},
      {Adagrad({.initial_accumulator_value = -1}),
       "adagrad: initial_accumulator_value is -1"},
      {RmsProp({.rho = 2}), "rmsprop: rho is 2"},
      {Ftrl({.learning_rate_power = 0.5}), "ftrl: learning_rate_power is 0.5"},
      {Ftrl({.learning_rate = 0.0}), "ftrl: learning_rate is 0"},
      {Ftrl({.l1_regularization_strength = -1}),
       "ftrl: l1_regularization_strength is -1"},
  };
  for (const auto& [optimizer, message] : cases) {
    EXPECT_THAT(
        UpdateRule::Create(optimizer),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

TEST(UpdateRule, InitializesSlotsAsKeras) {
  ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(Adagrad()));
  ASSERT_EQ(rule->slots().size(), 1u);
  EXPECT_EQ(rule->slots()[0].name, "accumulator");
  EXPECT_EQ(rule->slots()[0].initial_value, 0.1);
}

// Returns the value of an element that starts at 1 after three updates with the
// gradient 0.5.
double AfterThreeSteps(const Optimizer& optimizer) {
  const auto rule = UpdateRule::Create(optimizer);
  EXPECT_OK(rule.status()) << optimizer.message().ShortDebugString();
  State<double> state(**rule, 1);
  state.variable[0] = 1;
  for (int64_t step = 0; step < 3; ++step) {
    state.Apply(**rule, step, 0, 1, {0.5});
  }
  return state.variable[0];
}

TEST(UpdateRule, AbsentFieldsHaveKerasDefaults) {
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    const proto::Optimizer full = kind->defaults().message();
    const std::string name = OptimizerName(full);
    EXPECT_EQ(AfterThreeSteps(Parse(name + " {}")), AfterThreeSteps(full));
  }
  EXPECT_EQ(AfterThreeSteps(Parse("rmsprop { momentum: 0.5 }")),
            AfterThreeSteps(RmsProp({.momentum = 0.5})));
}

TEST(UpdateRule, ReadsWeightDecayFromTheOptimizer) {
  const double wanted = AfterThreeSteps(AdamW({}, {.weight_decay = 0.25}));
  EXPECT_EQ(AfterThreeSteps(Parse("adamw {} weight_decay: 0.25")), wanted);
  EXPECT_EQ(AfterThreeSteps(Parse("adam {} weight_decay: 0.25")), wanted);
  EXPECT_NE(AfterThreeSteps(Parse("adamw {}")), wanted);
  EXPECT_EQ(AfterThreeSteps(Parse("adamw {}")),
            AfterThreeSteps(Adam({}, {.weight_decay = 0.004})));
  EXPECT_EQ(AfterThreeSteps(Parse("adamw {} weight_decay: 0")),
            AfterThreeSteps(Adam()));
}

TEST(UpdateRule, RejectsALearningRateWithASchedule) {
  for (const std::string name : {"sgd", "adamw"}) {
    EXPECT_THAT(UpdateRule::Create(Parse(
                    name + " { learning_rate: 0.125 } learning_rate_schedule { "
                           "cosine_decay { initial_learning_rate: 1 "
                           "decay_steps: 9 } }")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(name + ": both learning_rate (0.125) and "
                                          "learning_rate_schedule are given")));
  }
}

TEST(UpdateRule, ReadsAndSetsConstantLearningRatesOnly) {
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    proto::Optimizer optimizer = kind->defaults().message();
    const std::string name = OptimizerName(optimizer);
    EXPECT_EQ(ConstantLearningRate(Parse(name + " {}")),
              ConstantLearningRate(optimizer));
    EXPECT_TRUE(ConstantLearningRate(optimizer).has_value());
    SetConstantLearningRate(0.75, &optimizer);
    EXPECT_EQ(ConstantLearningRate(optimizer), 0.75);
    ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(optimizer));
    EXPECT_EQ(rule->LearningRate(3), 0.75);
  }
  EXPECT_EQ(
      ConstantLearningRate(Sgd({.learning_rate = CosineDecay({})}).message()),
      std::nullopt);
  EXPECT_EQ(ConstantLearningRate(proto::Optimizer()), std::nullopt);
}

// An optimizer as written by builds that stored a constant learning rate with
// the schedules.
TEST(UpdateRule, ReadsOptimizersOfCheckpointsOfEarlierBuilds) {
  proto::Optimizer saved;
  ASSERT_TRUE(saved.ParseFromString(absl::HexStringToBytes(
      "0a0909fca9f1d24d62403f11fca9f1d24d62703f221b09cdccccccccccec"
      "3f112b8716d9cef7ef3f1948afbc9af2d77a3e49000000000000f03f")));
  EXPECT_EQ(ConstantLearningRate(saved), 0.0005);
  EXPECT_EQ(FindOptimizerKind(saved)->rule_name, "adam");
  EXPECT_EQ(FindOptimizerKind(AdamW().message())->rule_name, "adam");
  EXPECT_EQ(saved.adam().beta_2(), 0.999);
  EXPECT_EQ(saved.weight_decay(), 0.004);
  EXPECT_EQ(saved.clipnorm(), 1);

  ASSERT_TRUE(saved.ParseFromString(absl::HexStringToBytes(
      "0a172a1509fca9f1d24d62603f10c60a199a9999999999a93f1a00")));
  EXPECT_EQ(ConstantLearningRate(saved), std::nullopt);
  ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(saved));
  EXPECT_EQ(rule->name(), "sgd");
  EXPECT_FLOAT_EQ(rule->LearningRate(1350), 0.0001f);
}

}  // namespace
}  // namespace muster
