// Random numbers of common/core/base/philox.h: Philox4x32-10 in StableHLO.

#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/compute/stablehlo/hlo_operators.h"
#include "common/compute/stablehlo/translations.h"

namespace muster {
namespace {

constexpr absl::string_view kWord = "ui32";
constexpr absl::string_view kWide = "ui64";

HloValue Wide(HloBuilder& builder, uint64_t value) {
  return builder.Constant64(kWide, value);
}

HloValue ShiftRight(const HloValue& x, uint64_t bits) {
  return Binary("stablehlo.shift_right_logical", x,
                x.builder->Constant64(x.type.element, bits));
}

HloValue ShiftLeft(const HloValue& x, uint64_t bits) {
  return Binary("stablehlo.shift_left", x,
                x.builder->Constant64(x.type.element, bits));
}

HloValue Xor(const HloValue& a, const HloValue& b) {
  return Binary("stablehlo.xor", a, b);
}

HloValue LowWord(const HloValue& wide) { return Convert(wide, kWord); }
HloValue HighWord(const HloValue& wide) {
  return Convert(ShiftRight(wide, 32), kWord);
}

// PhiloxAt() for each element of `position`; all are ui64.
std::array<HloValue, 4> PhiloxAt(const HloValue& key, const HloValue& position,
                                 uint64_t position_high) {
  HloBuilder& builder = *key.builder;
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint64_t kWeyl0 = 0x9E3779B9;
  constexpr uint64_t kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  HloValue key0 = LowWord(key);
  HloValue key1 = HighWord(key);
  const HloValue high =
      BroadcastTo(Wide(builder, position_high), position.shape());
  std::array<HloValue, 4> c = {LowWord(position), HighWord(position),
                               LowWord(high), HighWord(high)};
  for (int round = 0; round < kRounds; ++round) {
    const HloValue product0 =
        Convert(c[0], kWide) * Wide(builder, kMultiplier0);
    const HloValue product1 =
        Convert(c[2], kWide) * Wide(builder, kMultiplier1);
    c = {Xor(Xor(HighWord(product1), c[1]), key0), LowWord(product1),
         Xor(Xor(HighWord(product0), c[3]), key1), LowWord(product0)};
    key0 = key0 + builder.Constant64(kWord, kWeyl0);
    key1 = key1 + builder.Constant64(kWord, kWeyl1);
  }
  return c;
}

// FoldInWord() of ui64 scalars.
HloValue FoldIn(const HloValue& key, const HloValue& data) {
  const std::array<HloValue, 4> words = PhiloxAt(key, data, ~uint64_t{0});
  return Binary("stablehlo.or", ShiftLeft(Convert(words[1], kWide), 32),
                Convert(words[0], kWide));
}

// Element `index` of a seed, as ui64.
HloValue SeedWord(const HloValue& seed, int64_t index) {
  return Convert(Reshape(Slice(seed, {index}, {1}), Shape()), kWide);
}

HloValue UniformOf(const HloValue& bits) {
  return Convert(ShiftRight(bits, 8), "f32") * 0x1.0p-24;
}

// Draws the numbers of the node's output. `draw` makes four arrays of numbers
// of four arrays of words. Word n % 4 at position n / 4 becomes number n.
template <typename Draw>
HloValue FillByFour(const HloNode& node, Draw draw) {
  HloBuilder& builder = node.builder();
  const HloType& output = node.output();
  const int64_t count = output.shape.element_count();
  if (count == 0) return builder.Constant(output, 0);
  const HloValue key =
      FoldIn(SeedWord(node.input(0), 0), SeedWord(node.input(0), 1));
  // The output may begin and end between two positions.
  const int64_t position_count = count / 4 + 2;
  HloValue positions = builder.Iota({kWide, {position_count}}, 0);
  HloValue skipped = Wide(builder, 0);
  if (node.input_count() == 2 && output.shape.rank() > 0) {
    const int64_t row = count / output.shape.dim(0);
    const HloValue first = Convert(node.step().example_offset, kWide) *
                           Wide(builder, static_cast<uint64_t>(row));
    positions = positions + ShiftRight(first, 2);
    skipped = Binary("stablehlo.and", first, Wide(builder, 3));
  }
  HloValues numbers;
  for (const HloValue& drawn : draw(PhiloxAt(key, positions, 0))) {
    numbers.push_back(Reshape(drawn, {position_count, 1}));
  }
  const HloValue all = Reshape(Concat(numbers, 1), {position_count * 4});
  const HloValue wanted =
      builder.Emit("stablehlo.dynamic_slice", {all, Convert(skipped, "i64")},
                   {all.type.element, {count}},
                   absl::StrCat("slice_sizes = ", HloArray({count})));
  return Convert(Reshape(wanted, output.shape), output.element);
}

}  // namespace

HloValue StepSeedToHlo(const HloNode& node) {
  const HloValue seed = Reshape(node.step().step_seed, {1});
  return Concat({seed, FilledLike(seed, 0)}, 0);
}

HloValue FoldInSeedToHlo(const HloNode& node) {
  const HloValue folded =
      FoldIn(SeedWord(node.input(0), 0),
             Wide(node.builder(),
                  static_cast<uint64_t>(node.Attribute<int64_t>("data", 0))));
  return Concat(
      {Reshape(Convert(folded, "i64"), {1}), Slice(node.input(0), {1}, {1})},
      0);
}

HloValue RandomUniformToHlo(const HloNode& node) {
  return FillByFour(node, [&](const std::array<HloValue, 4>& words) {
    std::array<HloValue, 4> numbers;
    for (int i = 0; i < 4; ++i) {
      // No more bits than the type has, so that rounding does not reach 1.
      const absl::string_view element = node.output().element;
      if (element == "bf16") {
        numbers[i] = Convert(ShiftRight(words[i], 24), "f32") * 0x1p-8;
      } else if (element == "f16") {
        numbers[i] = Convert(ShiftRight(words[i], 21), "f32") * 0x1p-11;
      } else {
        numbers[i] = UniformOf(words[i]);
      }
    }
    return numbers;
  });
}

HloValue RandomNormalToHlo(const HloNode& node) {
  return FillByFour(node, [](const std::array<HloValue, 4>& words) {
    std::array<HloValue, 4> numbers;
    for (int i = 0; i < 4; i += 2) {
      // 1 - u is in (0, 1], so the logarithm is finite.
      const HloValue radius = sqrt(Log(1.0 - UniformOf(words[i])) * -2.0);
      const HloValue angle = UniformOf(words[i + 1]) * 6.28318530717958647692;
      numbers[i] = radius * Unary("stablehlo.cosine", angle);
      numbers[i + 1] = radius * Unary("stablehlo.sine", angle);
    }
    return numbers;
  });
}

}  // namespace muster
