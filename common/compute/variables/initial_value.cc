#include "common/compute/variables/initial_value.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/compute/variables/constraint.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor_codec.h"
#include "proto/variable.pb.h"

namespace muster {
namespace {

// The compiler may not reorder a floating-point sum; eight separate sums fill a
// vector register.
constexpr int64_t kPartialSums = 8;

double Dot(const double* a, const double* b, int64_t count) {
  std::array<double, kPartialSums> sums = {};
  int64_t i = 0;
  for (; i + kPartialSums <= count; i += kPartialSums) {
    for (int64_t k = 0; k < kPartialSums; ++k) sums[k] += a[i + k] * b[i + k];
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

// Makes `count` consecutive vectors of `length` orthonormal, in order (modified
// Gram-Schmidt). Each vector keeps a positive component along its original
// direction, so the result is the unique Q for an R with a positive diagonal.
void Orthonormalize(int64_t count, int64_t length, double* vectors) {
  for (int64_t i = 0; i < count; ++i) {
    double* const unit = vectors + i * length;
    const double norm = std::sqrt(Dot(unit, unit, length));
    for (int64_t k = 0; k < length; ++k) unit[k] /= norm;
    for (int64_t j = i + 1; j < count; ++j) {
      double* const other = vectors + j * length;
      const double along = Dot(unit, other, length);
      for (int64_t k = 0; k < length; ++k) other[k] -= along * unit[k];
    }
  }
}

std::vector<double> NormalNumbers(int64_t count, uint64_t key) {
  std::vector<double> numbers;
  numbers.reserve(count + 3);
  for (int64_t block = 0; static_cast<int64_t>(numbers.size()) < count;
       ++block) {
    const auto words = Philox(key, static_cast<uint64_t>(block));
    for (int word = 0; word < 4; word += 2) {
      for (const float normal : UnitNormals(words[word], words[word + 1])) {
        numbers.push_back(normal);
      }
    }
  }
  return numbers;
}

}  // namespace

absl::Status CheckOrthogonal(const Shape& shape, double gain) {
  if (shape.rank() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "orthogonal: expected two axes or more, not ", shape.ToString()));
  }
  if (!std::isfinite(gain)) {
    return absl::InvalidArgumentError(
        absl::StrCat("orthogonal: gain is ", gain));
  }
  if (shape.element_count() > kOrthogonalElementsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("orthogonal: ", shape.ToString(), " has more than ",
                     kOrthogonalElementsMax, " elements"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> OrthogonalValues(const Shape& shape,
                                                    double gain, uint64_t key) {
  RETURN_IF_ERROR(CheckOrthogonal(shape, gain));
  const int rank = shape.rank();
  const int64_t rows = shape.ElementCountInRange(0, rank - 1);
  const int64_t columns = shape.dim(rank - 1);
  const int64_t count = std::min(rows, columns);
  const int64_t length = std::max(rows, columns);
  std::vector<double> vectors = NormalNumbers(count * length, key);
  Orthonormalize(count, length, vectors.data());

  std::vector<float> values(rows * columns);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < length; ++k) {
      const int64_t position =
          rows < columns ? i * columns + k : k * columns + i;
      values[position] = static_cast<float>(gain * vectors[i * length + k]);
    }
  }
  return values;
}

namespace {

// Standard deviation of a standard normal distribution truncated at two.
constexpr double kTruncatedDeviation = 0.87962566103423978;
// More than any machine has. Larger sizes in bytes would overflow.
constexpr int64_t kVariableBytesMax = int64_t{1} << 48;
constexpr int kLanes = 4;  // Numbers of one Philox block.

absl::Status SpecError(const proto::VariableSpec& spec,
                       absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat("variable \"", spec.name(), "\": ", message));
}

// A distribution with resolved parameters.
struct Draw {
  enum class Kind {
    kConstant,
    kUniform,
    kNormal,
    kTruncatedNormal,
    kOrthogonal
  };
  Kind kind = Kind::kConstant;
  double offset = 0;  // The constant, the minimum or the mean.
  double scale = 0;   // The width, the standard deviation or the gain.
};

struct Fans {
  double in = 1;
  double out = 1;
};

// Keras' compute_fans: the last two extents are inputs and outputs, the others
// a receptive field.
Fans ComputeFans(const Shape& shape) {
  if (shape.rank() == 0) return {};
  if (shape.rank() == 1) {
    const double units = static_cast<double>(shape.dim(0));
    return {units, units};
  }
  const int rank = shape.rank();
  const double field =
      static_cast<double>(shape.ElementCountInRange(0, rank - 2));
  return {field * static_cast<double>(shape.dim(rank - 2)),
          field * static_cast<double>(shape.dim(rank - 1))};
}

absl::StatusOr<Draw> ScaledDraw(
    const proto::Initializer::VarianceScaling& scaling, const Shape& shape) {
  if (!(std::isfinite(scaling.scale()) && scaling.scale() > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("variance scaling: scale is ", scaling.scale(),
                     "; expected a finite number above 0"));
  }
  const Fans fans = ComputeFans(shape);
  double fan;
  switch (scaling.mode()) {
    case proto::Initializer::VarianceScaling::FAN_IN:
      fan = fans.in;
      break;
    case proto::Initializer::VarianceScaling::FAN_OUT:
      fan = fans.out;
      break;
    case proto::Initializer::VarianceScaling::FAN_AVG:
      fan = (fans.in + fans.out) / 2;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("variance scaling: unknown mode ", scaling.mode()));
  }
  const double variance = scaling.scale() / std::max(1.0, fan);
  switch (scaling.distribution()) {
    case proto::Initializer::VarianceScaling::TRUNCATED_NORMAL:
      return Draw{Draw::Kind::kTruncatedNormal, 0,
                  std::sqrt(variance) / kTruncatedDeviation};
    case proto::Initializer::VarianceScaling::UNTRUNCATED_NORMAL:
      return Draw{Draw::Kind::kNormal, 0, std::sqrt(variance)};
    case proto::Initializer::VarianceScaling::UNIFORM: {
      const double limit = std::sqrt(3 * variance);
      return Draw{Draw::Kind::kUniform, -limit, 2 * limit};
    }
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "variance scaling: unknown distribution ", scaling.distribution()));
  }
}

// Accepts every kind of `initializer` but `value` and a concatenation.
absl::StatusOr<Draw> ResolveDraw(const proto::Initializer& initializer,
                                 const Shape& shape) {
  switch (initializer.kind_case()) {
    case proto::Initializer::kConstant:
      return Draw{Draw::Kind::kConstant, initializer.constant().value(), 0};
    case proto::Initializer::kUniform: {
      const double minimum = initializer.uniform().minimum();
      const double maximum = initializer.uniform().maximum();
      if (!(std::isfinite(minimum) && std::isfinite(maximum) &&
            minimum <= maximum)) {
        return absl::InvalidArgumentError(
            absl::StrCat("uniform: minimum is ", minimum, " and maximum ",
                         maximum, "; expected finite numbers in order"));
      }
      return Draw{Draw::Kind::kUniform, minimum, maximum - minimum};
    }
    case proto::Initializer::kNormal: {
      const proto::Initializer::Normal& normal = initializer.normal();
      if (!(std::isfinite(normal.mean()) &&
            std::isfinite(normal.standard_deviation()) &&
            normal.standard_deviation() >= 0)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "normal: mean is ", normal.mean(), " and standard_deviation ",
            normal.standard_deviation(),
            "; expected finite numbers, the latter not negative"));
      }
      return Draw{normal.truncated() ? Draw::Kind::kTruncatedNormal
                                     : Draw::Kind::kNormal,
                  normal.mean(), normal.standard_deviation()};
    }
    case proto::Initializer::kVarianceScaling:
      return ScaledDraw(initializer.variance_scaling(), shape);
    case proto::Initializer::kOrthogonal:
      RETURN_IF_ERROR(CheckOrthogonal(shape, initializer.orthogonal().gain()));
      return Draw{Draw::Kind::kOrthogonal, 0, initializer.orthogonal().gain()};
    case proto::Initializer::kConcatenation:
      return absl::InvalidArgumentError(
          "a part of a concatenation is a concatenation; expected another "
          "initializer");
    case proto::Initializer::kValue:
    case proto::Initializer::KIND_NOT_SET:
      break;
  }
  return Draw{};
}

// Converting a number to an integer type that cannot represent it is undefined,
// so callers check first.
absl::Status CheckDrawSuits(const Draw& draw, DType dtype) {
  if (IsFloating(dtype)) return absl::OkStatus();
  if (draw.kind != Draw::Kind::kConstant) {
    return absl::InvalidArgumentError(absl::StrCat(
        "random values need a floating dtype; this is ", DTypeName(dtype)));
  }
  const bool fits = VisitNumber(dtype, [&]<typename T>() {
    if constexpr (std::is_same_v<T, bool>) {
      return draw.offset == 0 || draw.offset == 1;
    } else if constexpr (std::is_integral_v<T>) {
      // The maximum of int64 rounds up to 2^63, which does not fit.
      return draw.offset == std::trunc(draw.offset) &&
             draw.offset >=
                 static_cast<double>(std::numeric_limits<T>::min()) &&
             draw.offset < std::ldexp(1.0, std::numeric_limits<T>::digits);
    } else {
      return true;
    }
  });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("constant ", draw.offset,
                                                 " cannot be represented as ",
                                                 DTypeName(dtype)));
}

struct ResolvedSpec {
  TensorType type;
  Draw draw;
  Tensor value;  // Valid when the initializer is a value.
};

absl::StatusOr<TensorType> TypeOf(const proto::VariableSpec& spec) {
  TensorType type;
  ASSIGN_OR_RETURN(type.dtype, DecodeDType(spec.dtype()));
  if (type.dtype == DType::kString) {
    return absl::InvalidArgumentError("dtype is string; expected numbers");
  }
  ASSIGN_OR_RETURN(type.shape, DecodeShape(spec.shape(), false));
  const int64_t element_bytes = static_cast<int64_t>(SizeOf(type.dtype));
  if (type.shape.element_count() > kVariableBytesMax / element_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        type.ToString(), " is larger than ", kVariableBytesMax, " bytes"));
  }
  return type;
}

// Requires that `spec` has no concatenation.
absl::StatusOr<ResolvedSpec> Resolve(const proto::VariableSpec& spec) {
  ResolvedSpec resolved;
  ASSIGN_OR_RETURN(resolved.type, TypeOf(spec));
  if (!spec.initializer().has_value()) {
    ASSIGN_OR_RETURN(resolved.draw,
                     ResolveDraw(spec.initializer(), resolved.type.shape));
    RETURN_IF_ERROR(CheckDrawSuits(resolved.draw, resolved.type.dtype));
    return resolved;
  }
  ASSIGN_OR_RETURN(resolved.value, DecodeTensor(spec.initializer().value()));
  if (resolved.value.type() != resolved.type) {
    return absl::InvalidArgumentError(
        absl::StrCat("the initial value is ", resolved.value.type().ToString(),
                     "; expected ", resolved.type.ToString()));
  }
  return resolved;
}

std::array<float, kLanes> NormalBlock(uint64_t key, uint64_t block,
                                      uint64_t attempt = 0) {
  const std::array<uint32_t, 4> words = Philox(key, block, attempt);
  const std::array<float, 2> first = UnitNormals(words[0], words[1]);
  const std::array<float, 2> second = UnitNormals(words[2], words[3]);
  return {first[0], first[1], second[0], second[1]};
}

std::array<float, kLanes> TruncatedBlock(uint64_t key, uint64_t block) {
  std::array<float, kLanes> numbers = NormalBlock(key, block);
  // A lane is redrawn from the same lane of the next attempt's block, so its
  // number does not depend on which other lanes are redrawn.
  for (int lane = 0; lane < kLanes; ++lane) {
    for (uint64_t attempt = 1; std::abs(numbers[lane]) > 2; ++attempt) {
      numbers[lane] = NormalBlock(key, block, attempt)[lane];
    }
  }
  return numbers;
}

// Draws the numbers `begin` to begin + numbers.size() - 1 of the stream.
void DrawNormals(bool is_truncated, uint64_t key, int64_t begin,
                 absl::Span<float> numbers) {
  std::array<float, kLanes> block = {};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int64_t position = begin + static_cast<int64_t>(i);
    if (i == 0 || position % kLanes == 0) {
      const auto number = static_cast<uint64_t>(position / kLanes);
      block =
          is_truncated ? TruncatedBlock(key, number) : NormalBlock(key, number);
    }
    numbers[i] = block[position % kLanes];
  }
}

// Fills elements [begin, begin + count) of the whole variable.
template <typename T>
void FillRandom(const Draw& draw, uint64_t key, int64_t begin, int64_t count,
                T* out) {
  using Number = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Number offset = static_cast<Number>(draw.offset);
  const Number scale = static_cast<Number>(draw.scale);
  std::array<float, 1024> drawn;
  for (int64_t done = 0; done < count;) {
    const auto numbers = absl::MakeSpan(drawn).first(
        std::min<size_t>(drawn.size(), count - done));
    if (draw.kind == Draw::Kind::kUniform) {
      FillUniform(key, static_cast<uint64_t>(begin + done), numbers);
    } else {
      DrawNormals(draw.kind == Draw::Kind::kTruncatedNormal, key, begin + done,
                  numbers);
    }
    for (const float number : numbers) {
      out[done++] = static_cast<T>(offset + scale * Number{number});
    }
  }
}

void FillDraw(const Draw& draw, uint64_t key, int64_t begin, Tensor* slice) {
  if (draw.kind == Draw::Kind::kConstant) {
    VisitNumber(slice->dtype(), [&]<typename T>() {
      const auto flat = slice->mutable_flat<T>();
      if constexpr (std::is_arithmetic_v<T>) {
        std::fill(flat.begin(), flat.end(), static_cast<T>(draw.offset));
      } else {
        std::fill(flat.begin(), flat.end(), T(static_cast<float>(draw.offset)));
      }
    });
    return;
  }
  VisitNumber(slice->dtype(), [&]<typename T>() {
    if constexpr (!std::is_integral_v<T>) {
      FillRandom(draw, key, begin, slice->element_count(),
                 slice->mutable_flat<T>().data());
    }
  });
}

absl::Status FillOrthogonal(const Draw& draw, uint64_t key, int64_t begin,
                            const Shape& whole, Tensor* slice) {
  ASSIGN_OR_RETURN(const std::vector<float> values,
                   OrthogonalValues(whole, draw.scale, key));
  VisitNumber(slice->dtype(), [&]<typename T>() {
    if constexpr (!std::is_integral_v<T>) {
      T* const out = slice->mutable_flat<T>().data();
      for (int64_t i = 0; i < slice->element_count(); ++i) {
        out[i] = static_cast<T>(values[begin + i]);
      }
    }
  });
  return absl::OkStatus();
}

absl::Status CheckRowRange(const Shape& shape, int64_t row_begin,
                           int64_t row_end) {
  const int64_t rows = shape.rank() == 0 ? 1 : shape.dim(0);
  if (0 <= row_begin && row_begin <= row_end && row_end <= rows) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("rows ", row_begin, " to ", row_end, " are not within its ",
                   rows, " rows"));
}

// Rows of a variable that are initialized like a separate variable.
struct Part {
  int64_t row_begin = 0;
  int64_t row_end = 0;
  proto::VariableSpec spec;
};

// Returns the parts of a concatenation in order, or the whole variable as one
// part.
absl::StatusOr<std::vector<Part>> PartsOf(const proto::VariableSpec& spec) {
  ASSIGN_OR_RETURN(const TensorType type, TypeOf(spec));
  const int64_t row_count = type.shape.rank() == 0 ? 1 : type.shape.dim(0);
  if (!spec.initializer().has_concatenation()) {
    return std::vector<Part>{{0, row_count, spec}};
  }
  std::vector<Part> parts;
  int64_t begin = 0;
  for (const auto& part : spec.initializer().concatenation().parts()) {
    if (part.row_count() < 0 || part.row_count() > row_count - begin) break;
    Part& added = parts.emplace_back(
        Part{begin, begin + part.row_count(), proto::VariableSpec()});
    begin = added.row_end;
    added.spec.set_dtype(spec.dtype());
    *added.spec.mutable_shape() = spec.shape();
    if (type.shape.rank() > 0) {
      Shape rows = type.shape;
      rows.set_dim(0, part.row_count());
      *added.spec.mutable_shape() = EncodeShape(rows);
    }
    *added.spec.mutable_initializer() = part.initializer();
    if (part.initializer().seed() == 0) {
      added.spec.mutable_initializer()->set_seed(
          FoldIn(spec.initializer().seed(), parts.size()));
    }
  }
  const auto part_count =
      static_cast<size_t>(spec.initializer().concatenation().parts_size());
  if (begin == row_count && parts.size() == part_count) return parts;
  return absl::InvalidArgumentError(
      absl::StrCat("the ", part_count,
                   " parts of the concatenation do not add "
                   "up to the ",
                   row_count, " rows of ", type.ToString()));
}

// Requires that `spec` has no concatenation.
absl::Status FillPart(const proto::VariableSpec& spec, int64_t row_begin,
                      int64_t row_end, Tensor* slice) {
  ASSIGN_OR_RETURN(const ResolvedSpec resolved, Resolve(spec));
  TensorType type = resolved.type;
  int64_t begin = 0;
  if (type.shape.rank() > 0) {
    begin = row_begin * type.shape.ElementCountInRange(1, type.shape.rank());
    type.shape.set_dim(0, row_end - row_begin);
  }
  if (slice->element_count() == 0) return absl::OkStatus();
  if (resolved.value.IsValid()) {
    std::memcpy(slice->mutable_raw_data(),
                resolved.value.raw_data() + begin * SizeOf(type.dtype),
                slice->size_bytes());
  } else if (resolved.draw.kind == Draw::Kind::kOrthogonal) {
    RETURN_IF_ERROR(FillOrthogonal(resolved.draw, spec.initializer().seed(),
                                   begin, resolved.type.shape, slice));
  } else {
    FillDraw(resolved.draw, spec.initializer().seed(), begin, slice);
  }
  return absl::OkStatus();
}

absl::Status Fill(const proto::VariableSpec& spec, int64_t row_begin,
                  int64_t row_end, Tensor* slice) {
  ASSIGN_OR_RETURN(TensorType type, TypeOf(spec));
  ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(spec));
  RETURN_IF_ERROR(CheckRowRange(type.shape, row_begin, row_end));
  if (type.shape.rank() > 0) type.shape.set_dim(0, row_end - row_begin);
  if (!slice->IsValid()) *slice = Tensor(type.dtype, type.shape);
  if (slice->type() != type) {
    return absl::InvalidArgumentError(
        absl::StrCat("the slice to fill is ", slice->type().ToString(),
                     "; expected ", type.ToString()));
  }
  if (!spec.initializer().has_concatenation()) {
    return FillPart(spec, row_begin, row_end, slice);
  }
  for (const Part& part : parts) {
    RETURN_IF_ERROR(Resolve(part.spec).status());
    const int64_t begin = std::max(row_begin, part.row_begin);
    const int64_t end = std::min(row_end, part.row_end);
    if (begin >= end) continue;
    Tensor rows = type.shape.rank() == 0
                      ? *slice
                      : slice->SliceRows(begin - row_begin, end - row_begin);
    RETURN_IF_ERROR(FillPart(part.spec, begin - part.row_begin,
                             end - part.row_begin, &rows));
  }
  return absl::OkStatus();
}

absl::Status Validate(const proto::VariableSpec& spec) {
  ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(spec));
  for (const Part& part : parts) RETURN_IF_ERROR(Resolve(part.spec).status());
  if (!spec.has_constraint()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const TensorType type, TypeOf(spec));
  return CheckConstraint(spec.constraint(), type.shape);
}

}  // namespace

absl::Status ValidateVariableSpec(const proto::VariableSpec& spec) {
  if (spec.name().empty()) {
    return absl::InvalidArgumentError("a variable has no name");
  }
  const absl::Status status = Validate(spec);
  return status.ok() ? status : SpecError(spec, status.message());
}

absl::Status FillInitialValue(const proto::VariableSpec& spec,
                              int64_t row_begin, int64_t row_end,
                              Tensor* slice) {
  const absl::Status status = Fill(spec, row_begin, row_end, slice);
  return status.ok() ? status : SpecError(spec, status.message());
}

}  // namespace muster
