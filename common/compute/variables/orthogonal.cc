#include "common/compute/variables/orthogonal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"

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

}  // namespace muster
