#include "common/compute/variables/on_device/device_whole_update.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/device_code/matmul_image.h"
#include "common/compute/kernels/cuda/device_code/matmul_parameters.h"
#include "common/compute/kernels/cuda/device_code/whole_update_image.h"
#include "common/compute/variables/on_device/thread_for_each.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

using internal::AdafactorParameters;
using internal::CombineParameters;
using internal::MatMulParameters;
using internal::MuonParameters;
using internal::WholeItem;

constexpr int kThreads = internal::SquaresParameters::kThreads;

LaunchShape BlocksOf(int64_t block_count, uint32_t parts = 1) {
  return {.grid = {static_cast<uint32_t>(block_count), parts, 1},
          .block = {kThreads, 1, 1}};
}

template <typename Coefficients>
Coefficients CoefficientsOf(const UpdatePass& pass) {
  Coefficients coefficients;
  std::memcpy(&coefficients, pass.coefficients, sizeof(coefficients));
  return coefficients;
}

}  // namespace

template <typename Parameters>
absl::Status DeviceWholeUpdate::Launch(absl::string_view kernel,
                                       const LaunchShape& shape,
                                       Parameters parameters) {
  ASSIGN_OR_RETURN(
      const KernelFunction function,
      device_.FindKernel(
          internal::whole_update_image(),
          absl::StrCat(kernel,
                       dtype_ == DType::kFloat64 ? "_double" : "_float")));
  const KernelArgument addresses[] = {&parameters};
  return stream_.Launch(function, shape, addresses);
}

absl::Status DeviceWholeUpdate::Apply(const UpdatePass& pass, DType dtype,
                                      int64_t count, const WholeItem& item) {
  dtype_ = dtype;
  if (pass.function == "adafactor") {
    return ApplyAdafactor(CoefficientsOf<AdafactorCoefficients>(pass), count,
                          item);
  }
  MUSTER_CHECK(pass.function == "muon");
  return ApplyMuon(CoefficientsOf<MuonCoefficients>(pass), count, item);
}

absl::Status DeviceWholeUpdate::ApplyAdafactor(
    const AdafactorCoefficients& coefficients, int64_t count,
    const WholeItem& item) {
  constexpr int kParts = AdafactorParameters::kParts;
  const bool is_factored = coefficients.columns > 0;
  const int64_t row_count = is_factored ? count / coefficients.columns : 0;
  const int64_t matrix_count = is_factored ? row_count / coefficients.rows : 0;
  const int64_t column_count = matrix_count * coefficients.columns;
  ASSIGN_OR_RETURN(
      uint8_t* const memory,
      scratch_.Get(&device_, &stream_,
                   (2 * kParts + matrix_count + kParts * column_count) *
                       sizeof(double)));
  AdafactorParameters parameters{
      .whole = item,
      .coefficients = coefficients,
      .column_count = column_count,
      .column_parts = nullptr,
      .row_means = nullptr,
      .square_parts = reinterpret_cast<double*>(memory)};
  parameters.row_means = parameters.square_parts + 2 * kParts;
  parameters.column_parts = parameters.row_means + matrix_count;
  if (is_factored) {
    RETURN_IF_ERROR(Launch("adafactor_rows", BlocksOf(row_count), parameters));
    RETURN_IF_ERROR(Launch("adafactor_columns",
                           ThreadForEach(column_count, kParts), parameters));
    RETURN_IF_ERROR(
        Launch("adafactor_means", ThreadForEach(column_count), parameters));
    RETURN_IF_ERROR(
        Launch("adafactor_matrices", BlocksOf(matrix_count), parameters));
  }
  RETURN_IF_ERROR(Launch("adafactor_velocities", BlocksOf(kParts), parameters));
  return Launch("adafactor_apply", ThreadForEach(count), parameters);
}

absl::Status DeviceWholeUpdate::ApplyMuon(const MuonCoefficients& coefficients,
                                          int64_t count,
                                          const WholeItem& item) {
  const int64_t rows = std::min(coefficients.rows, coefficients.columns);
  const int64_t columns = std::max(coefficients.rows, coefficients.columns);
  constexpr size_t kPartBytes = MuonParameters::kParts * sizeof(double);
  const size_t matrix_bytes = count * SizeOf(dtype_);
  ASSIGN_OR_RETURN(uint8_t* const memory,
                   scratch_.Get(&device_, &stream_,
                                kPartBytes + 2 * matrix_bytes +
                                    2 * rows * rows * SizeOf(dtype_)));
  uint8_t* matrix = memory + kPartBytes;
  uint8_t* spare = matrix + matrix_bytes;
  MuonParameters parameters{.whole = item,
                            .coefficients = coefficients,
                            .matrix = matrix,
                            .square_parts = reinterpret_cast<double*>(memory)};
  RETURN_IF_ERROR(
      Launch("muon_directions", BlocksOf(MuonParameters::kParts), parameters));
  RETURN_IF_ERROR(Launch("muon_normalize", ThreadForEach(count), parameters));
  RETURN_IF_ERROR(Orthogonalize(coefficients, rows, columns, &matrix, &spare,
                                memory + kPartBytes + 2 * matrix_bytes));
  parameters.matrix = matrix;
  return Launch("muon_apply", ThreadForEach(count), parameters);
}

absl::Status DeviceWholeUpdate::Orthogonalize(
    const MuonCoefficients& coefficients, int64_t rows, int64_t columns,
    uint8_t** matrix, uint8_t** spare, uint8_t* squares) {
  uint8_t* const square = squares;
  uint8_t* const fourth = squares + rows * rows * SizeOf(dtype_);
  for (int i = 0; i < coefficients.iteration_count; ++i) {
    RETURN_IF_ERROR(Multiply(rows, columns, rows, *matrix, *matrix,
                             /*is_b_transposed=*/true, square));
    RETURN_IF_ERROR(Multiply(rows, rows, rows, square, square,
                             /*is_b_transposed=*/false, fourth));
    RETURN_IF_ERROR(Launch("combine", ThreadForEach(rows * rows),
                           CombineParameters{.count = rows * rows,
                                             .first_factor = coefficients.b,
                                             .first = square,
                                             .second_factor = coefficients.c,
                                             .second = fourth,
                                             .to = fourth}));
    RETURN_IF_ERROR(Multiply(rows, rows, columns, fourth, *matrix,
                             /*is_b_transposed=*/false, *spare));
    RETURN_IF_ERROR(Launch("combine", ThreadForEach(rows * columns),
                           CombineParameters{.count = rows * columns,
                                             .first_factor = coefficients.a,
                                             .first = *matrix,
                                             .second_factor = 1,
                                             .second = *spare,
                                             .to = *spare}));
    std::swap(*matrix, *spare);
  }
  return absl::OkStatus();
}

absl::Status DeviceWholeUpdate::Multiply(int64_t rows, int64_t inner,
                                         int64_t columns, const uint8_t* a,
                                         const uint8_t* b, bool is_b_transposed,
                                         uint8_t* y) {
  const auto elements = [&](const uint8_t* data) {
    return internal::DeviceElements{const_cast<uint8_t*>(data),
                                    static_cast<internal::ElementType>(dtype_)};
  };
  MatMulParameters parameters = internal::MatMulOf(
      rows, inner, columns, /*transpose_a=*/false, is_b_transposed);
  parameters.a = elements(a);
  parameters.b = elements(b);
  parameters.y = elements(y);
  ASSIGN_OR_RETURN(
      const KernelFunction function,
      device_.FindKernel(internal::matmul_image(), dtype_ == DType::kFloat64
                                                       ? "matmul_double"
                                                       : "matmul_float"));
  const KernelArgument arguments[] = {&parameters};
  return stream_.Launch(function, internal::ShapeOf(parameters), arguments);
}

}  // namespace muster
