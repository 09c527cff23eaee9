#include "common/compute/optimizers/update_rule.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/core/base/random.h"
#include "common/core/base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

// That the numbers are Keras' is checked in tests/golden; here is what Keras
// does not promise.

std::vector<proto::Optimizer> AllRules() {
  return {
      Sgd(),
      Sgd({.momentum = 0.9}),
      Sgd({.momentum = 0.9, .nesterov = true, .weight_decay = 0.01}),
      Adam(),
      Adam({.amsgrad = true}),
      AdamW(),
      Adagrad(),
      RmsProp(),
      RmsProp({.momentum = 0.9}),
      RmsProp({.centered = true}),
      RmsProp({.momentum = 0.9, .centered = true}),
      Ftrl({.l1_regularization_strength = 0.01}),
      Ftrl({.learning_rate_power = -0.7, .beta = 0.1}),
  };
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

// A variable with its slots.
template <typename T>
struct State {
  State(const UpdateRule& rule, int64_t count)
      : variable(RandomNumbers<T>(1, count)) {
    for (const SlotSpec& slot : rule.slots()) {
      slots.emplace_back(count, static_cast<T>(slot.initial_value));
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

// NaNs and signs of zero count, so bytes are compared.
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
  constexpr int64_t kCount = 1003;  // No multiple of any vector.
  RandomStream random(7);
  for (const proto::Optimizer& optimizer : AllRules()) {
    ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(optimizer));
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
    EXPECT_TRUE(SameBits(whole, pieces)) << optimizer.ShortDebugString();
  }
}

TEST(UpdateRule, PiecesInAnyOrderGiveTheBitsOfTheWhole) {
  PiecesGiveTheBitsOfTheWhole<float>();
  PiecesGiveTheBitsOfTheWhole<double>();
}

TEST(UpdateRule, RowsGetWhatTheWholeWouldGiveThemAndOthersStay) {
  constexpr int64_t kRows = 30;
  constexpr int64_t kRowElements = 17;
  const std::vector<int64_t> rows = {4, 29, 0, 17, 5, 12};
  for (const proto::Optimizer& optimizer : AllRules()) {
    ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(optimizer));
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
    EXPECT_TRUE(SameBits(expected, actual)) << optimizer.ShortDebugString();
  }
}

TEST(UpdateRule, EveryRuleFindsTheMinimumOfAParabola) {
  for (proto::Optimizer optimizer : AllRules()) {
    optimizer.mutable_learning_rate()->set_constant(0.05);
    optimizer.set_weight_decay(0);
    if (optimizer.has_ftrl()) {
      optimizer.mutable_ftrl()->set_l1_regularization_strength(0);
      optimizer.mutable_ftrl()->set_beta(0);
    }
    ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(optimizer));
    State<double> state(*rule, 1);
    state.variable[0] = 0;
    for (int64_t step = 0; step < 20'000; ++step) {
      state.Apply(*rule, step, 0, 1, {2 * (state.variable[0] - 1)});
    }
    EXPECT_NEAR(state.variable[0], 1, 0.1) << optimizer.ShortDebugString();
  }
}

TEST(UpdateRule, MistakesNameTheRuleAndTheHyperparameter) {
  const double infinity = std::numeric_limits<double>::infinity();
  proto::Optimizer none;
  none.mutable_learning_rate()->set_constant(1);
  const std::vector<std::pair<proto::Optimizer, std::string>> cases = {
      {none, "no rule is set"},
      {Sgd({.momentum = 1.5}), "sgd: momentum is 1.5"},
      {Sgd({.learning_rate = -0.5}), "sgd: learning_rate is -0.5"},
      {Sgd({.weight_decay = -1}), "sgd: weight_decay is -1"},
      {Adam({.beta_1 = 1}), "adam: beta_1 is 1"},
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

TEST(UpdateRule, SlotsStartWhereKerasStartsThem) {
  ASSERT_OK_AND_ASSIGN(const auto rule, UpdateRule::Create(Adagrad()));
  ASSERT_EQ(rule->slots().size(), 1u);
  EXPECT_EQ(rule->slots()[0].name, "accumulator");
  EXPECT_EQ(rule->slots()[0].initial_value, 0.1);
}

}  // namespace
}  // namespace muster
