#ifndef COMMON_COMPUTE_STABLEHLO_HLO_BUILDER_H_
#define COMMON_COMPUTE_STABLEHLO_HLO_BUILDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {

class HloBuilder;

// The type of a value of a StableHLO function. Every extent is known.
struct HloType {
  // "f32", "bf16", "i64", "ui32", "i1", ...: a literal.
  absl::string_view element;
  Shape shape;

  bool operator==(const HloType&) const = default;
  bool is_float() const { return element[0] == 'f' || element[0] == 'b'; }
  std::string ToString() const;  // "tensor<2x3xf32>"
};

// The element type of tensors of `dtype`; empty for strings.
absl::string_view HloElementOf(DType dtype);
HloType HloTypeOf(const TensorType& type);

// A value of the function that `builder` writes. The operators of
// hlo_operators.h compute with values. Not thread-safe.
struct HloValue {
  HloBuilder* builder = nullptr;
  std::string name;  // "%7"
  HloType type;

  const Shape& shape() const { return type.shape; }
  int rank() const { return type.shape.rank(); }

  // Found by the functions of common/compute/functions, and does not hide the
  // function of that name for numbers.
  friend HloValue sqrt(const HloValue& x) { return SquareRoot(x); }

 private:
  static HloValue SquareRoot(const HloValue& x);
};
using HloValues = std::vector<HloValue>;

// How Reduce() and AllReduce() combine elements.
enum class HloReduction { kSum, kProduct, kMax, kMin, kAnd };

// Writes one StableHLO function, operation by operation, as text of MLIR in the
// generic form. Operands must have the types that the operation requires; the
// compiler reports others.
//
// Specification: https://openxla.org/stablehlo/spec
//
// Not thread-safe. Values must not outlive their builder.
class HloBuilder {
 public:
  // `prefix` begins the names of the values; functions and the regions in them
  // need different ones.
  explicit HloBuilder(absl::string_view prefix = "") : prefix_(prefix) {}
  HloBuilder(const HloBuilder&) = delete;
  HloBuilder& operator=(const HloBuilder&) = delete;

  static constexpr int kNoResult = -1;

  // Adds a parameter. Its memory becomes that of the result `donated_to`, if
  // any, which has the same type; callers cannot use the argument afterwards.
  HloValue AddParameter(const HloType& type, int donated_to = kNoResult);
  int parameter_count() const { return parameter_count_; }

  // Adds an operation. `op` is its full name, "stablehlo.add". `attributes` are
  // without braces, `region` without parentheses; both may be empty.
  HloValue Emit(absl::string_view op, absl::Span<const HloValue> operands,
                const HloType& result, absl::string_view attributes = "",
                absl::string_view region = "");
  HloValues EmitMany(absl::string_view op, absl::Span<const HloValue> operands,
                     absl::Span<const HloType> results,
                     absl::string_view attributes = "",
                     absl::string_view region = "");

  // Constants. The second form has `value` in every element.
  HloValue Constant(const Tensor& tensor);
  HloValue Constant(const HloType& type, double value);
  HloValue Constant64(absl::string_view element, uint64_t value);
  HloValue Iota(const HloType& type, int axis);

  // Returns the region of a reduction of `element`.
  std::string ReductionRegion(HloReduction reduction,
                              absl::string_view element);
  // The result of reducing no elements.
  HloValue InitialValue(HloReduction reduction, absl::string_view element);
  // Returns a name that no other value has, for regions.
  std::string NewName();

  // Returns the module, whose function "main" returns `results`, for
  // `replica_count` replicas.
  std::string Build(absl::string_view name, int replica_count,
                    absl::Span<const HloValue> results) const;
  // Returns the region with the same parameters, which returns `results`.
  std::string BuildRegion(absl::Span<const HloValue> results) const;

 private:
  const std::string prefix_;
  std::string parameters_;
  int parameter_count_ = 0;
  int name_count_ = 0;
  std::string body_;
};

// "array<i64: 1, 2>" and "[1, 2]".
std::string HloArray(absl::Span<const int64_t> values);
std::string HloList(absl::Span<const int64_t> values);

}  // namespace muster

#endif  // COMMON_COMPUTE_STABLEHLO_HLO_BUILDER_H_
