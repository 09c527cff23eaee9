#include <utility>

#include "absl/strings/string_view.h"
#include "common/compute/stablehlo/hlo_operators.h"
#include "common/compute/stablehlo/translations.h"
#include "common/core/base/check.h"

namespace muster {
namespace {

using Names = std::pair<absl::string_view, absl::string_view>;

constexpr Names kUnaryOps[] = {{"Ceil", "stablehlo.ceil"},
                               {"Cos", "stablehlo.cosine"},
                               {"Erf", "chlo.erf"},
                               {"Exp", "stablehlo.exponential"},
                               {"Expm1", "stablehlo.exponential_minus_one"},
                               {"Floor", "stablehlo.floor"},
                               {"Log", "stablehlo.log"},
                               {"Log1p", "stablehlo.log_plus_one"},
                               {"LogicalNot", "stablehlo.not"},
                               {"Neg", "stablehlo.negate"},
                               {"Round", "stablehlo.round_nearest_even"},
                               {"Rsqrt", "stablehlo.rsqrt"},
                               {"Sin", "stablehlo.sine"},
                               {"Sqrt", "stablehlo.sqrt"},
                               {"Tanh", "stablehlo.tanh"}};

constexpr Names kBinaryOps[] = {
    {"Add", "stablehlo.add"},         {"Div", "stablehlo.divide"},
    {"LogicalAnd", "stablehlo.and"},  {"LogicalOr", "stablehlo.or"},
    {"Maximum", "stablehlo.maximum"}, {"Minimum", "stablehlo.minimum"},
    {"Mul", "stablehlo.multiply"},    {"Pow", "stablehlo.power"},
    {"Sub", "stablehlo.subtract"}};

constexpr Names kComparisons[] = {{"Equal", "EQ"},        {"Greater", "GT"},
                                  {"GreaterEqual", "GE"}, {"Less", "LT"},
                                  {"LessEqual", "LE"},    {"NotEqual", "NE"}};

template <size_t kCount>
absl::string_view NameIn(const Names (&names)[kCount], absl::string_view op) {
  for (const auto& [ours, theirs] : names) {
    if (ours == op) return theirs;
  }
  MUSTER_CHECK(false);
  return "";
}

// The quotient of integers, rounded down.
HloValue FloorOfQuotient(const HloValue& a, const HloValue& b) {
  const HloValue quotient = a / b;
  if (a.type.element == "ui8") return quotient;
  const HloValue is_exact = Compare("EQ", quotient * b, a);
  const HloValue same_sign = Compare("EQ", Convert(Compare("LT", a, 0), "i32"),
                                     Convert(Compare("LT", b, 0), "i32"));
  return Select(Binary("stablehlo.or", is_exact, same_sign), quotient,
                quotient - 1);
}

}  // namespace

HloValue UnaryToHlo(const HloNode& node) {
  if (node.op() == "Abs") return Abs(node.input(0));
  return Unary(NameIn(kUnaryOps, node.op()), node.input(0));
}

HloValue BinaryToHlo(const HloNode& node) {
  return Binary(NameIn(kBinaryOps, node.op()), node.input(0), node.input(1));
}

HloValue ComparisonToHlo(const HloNode& node) {
  return Compare(NameIn(kComparisons, node.op()), node.input(0), node.input(1));
}

HloValue CastToHlo(const HloNode& node) {
  return Convert(node.input(0), node.output().element);
}

HloValue ForwardToHlo(const HloNode& node) { return node.input(0); }

HloValue FloorDivToHlo(const HloNode& node) {
  if (!node.output().is_float()) {
    return FloorOfQuotient(node.input(0), node.input(1));
  }
  return Unary("stablehlo.floor", node.input(0) / node.input(1));
}

HloValue ModToHlo(const HloNode& node) {
  const HloValue& b = node.input(1);
  const HloValue remainder = Binary("stablehlo.remainder", node.input(0), b);
  if (node.output().element == "ui8") return remainder;
  const HloValue other_sign =
      Binary("stablehlo.xor", Compare("LT", b, 0), Compare("LT", remainder, 0));
  return Select(
      Binary("stablehlo.and", Compare("NE", remainder, 0), other_sign),
      remainder + b, remainder);
}

HloValue IsFiniteToHlo(const HloNode& node) {
  return node.builder().Emit("stablehlo.is_finite", {node.input(0)},
                             {"i1", node.input(0).shape()});
}

HloValue IsNanToHlo(const HloNode& node) {
  return Compare("NE", node.input(0), node.input(0));
}

HloValue ReciprocalToHlo(const HloNode& node) { return 1.0 / node.input(0); }

HloValue SelectToHlo(const HloNode& node) {
  return Select(node.input(0), node.input(1), node.input(2));
}

HloValue SignToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  if (x.type.element == "ui8") {
    return Convert(Compare("NE", x, 0), x.type.element);
  }
  return Unary("stablehlo.sign", x);
}

HloValue SquareToHlo(const HloNode& node) {
  return node.input(0) * node.input(0);
}

HloValue SquaredDifferenceToHlo(const HloNode& node) {
  const HloValue difference = node.input(0) - node.input(1);
  return difference * difference;
}

}  // namespace muster
