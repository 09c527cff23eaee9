#include "common/compute/kernels/cuda/cublas_lt/fake/product.h"

#include <type_traits>
#include <utility>

#include "common/compute/functions/activation_functions.h"
#include "common/compute/kernels/cuda/testing/library_elements.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"

namespace muster {

using cublas_lt::CublasComputeType;
using cublas_lt::CudaDataType;
using cublas_lt::Epilogue;
using cublas_lt::MatrixLayout;
using cublas_lt::Operation;

namespace {

DType DTypeOfElements(CudaDataType type) {
  switch (type) {
    case CudaDataType::kFloat32:
      return DType::kFloat32;
    case CudaDataType::kFloat64:
      return DType::kFloat64;
    case CudaDataType::kFloat16:
      return DType::kFloat16;
    case CudaDataType::kBfloat16:
      return DType::kBfloat16;
  }
  return DType::kInvalid;
}

bool IsMatrix(const MatrixLayout& layout) {
  return DTypeOfElements(layout.type) != DType::kInvalid && layout.rows > 0 &&
         layout.columns > 0 && layout.batch_count > 0 &&
         layout.leading_dimension >= static_cast<int64_t>(layout.rows);
}

bool IsSame(const MatrixLayout& a, const MatrixLayout& b) {
  return a.type == b.type && a.rows == b.rows && a.columns == b.columns &&
         a.leading_dimension == b.leading_dimension &&
         a.batch_count == b.batch_count && a.batch_stride == b.batch_stride;
}

// True if the matrices of a batch do not overlap.
bool AreApart(const MatrixLayout& layout) {
  return layout.batch_count == 1 ||
         layout.batch_stride >=
             layout.leading_dimension * static_cast<int64_t>(layout.columns);
}

bool AreTypesListed(CublasComputeType compute, CudaDataType scale,
                    CudaDataType operands) {
  switch (operands) {
    case CudaDataType::kFloat64:
      return compute == CublasComputeType::kFloat64 &&
             scale == CudaDataType::kFloat64;
    case CudaDataType::kFloat32:
      return compute != CublasComputeType::kFloat64 &&
             scale == CudaDataType::kFloat32;
    case CudaDataType::kFloat16:
    case CudaDataType::kBfloat16:
      return compute == CublasComputeType::kFloat32 &&
             scale == CudaDataType::kFloat32;
  }
  return false;
}

double Activate(Epilogue epilogue, double x) {
  switch (epilogue) {
    case Epilogue::kRelu:
    case Epilogue::kReluBias:
      return functions::Relu()(x);
    case Epilogue::kGelu:
    case Epilogue::kGeluBias:
      return functions::GeluTanh()(x);
    default:
      return x;
  }
}

// One product of elements of T.
template <typename T>
class Multiplication {
 public:
  explicit Multiplication(const FakeProduct& product) : product_(product) {}

  void ComputeAll() const {
    for (int32_t matrix = 0; matrix < product_.d.batch_count; ++matrix) {
      for (uint64_t column = 0; column < product_.columns(); ++column) {
        for (uint64_t row = 0; row < product_.rows(); ++row) {
          ComputeOne(matrix, row, column);
        }
      }
    }
  }

 private:
  void ComputeOne(int32_t matrix, uint64_t row, uint64_t column) const {
    double sum = 0;
    for (uint64_t k = 0; k < product_.inner(); ++k) {
      sum += Operand(product_.a, product_.a_data,
                     product_.operation.transpose_a, matrix, row, k) *
             Operand(product_.b, product_.b_data,
                     product_.operation.transpose_b, matrix, k, column);
    }
    sum *= product_.alpha;
    const int64_t at = Index(product_.d, matrix, row, column);
    if (product_.beta != 0) {
      sum += product_.beta * LoadDouble<T>(product_.c_data, at);
    }
    if (FakeHasBias(product_.operation.epilogue)) {
      sum += LoadDouble<T>(product_.operation.bias, static_cast<int64_t>(row));
    }
    StoreDouble<T>(Activate(product_.operation.epilogue, sum), product_.d_data,
                   at);
  }

  double Operand(const MatrixLayout& layout, const void* data,
                 Operation operation, int32_t matrix, uint64_t row,
                 uint64_t column) const {
    if (operation == Operation::kTranspose) std::swap(row, column);
    const double element =
        LoadDouble<T>(data, Index(layout, matrix, row, column));
    return product_.operation.compute_type == CublasComputeType::kTensorFloat32
               ? RoundToTensorFloat32(element)
               : element;
  }

  static int64_t Index(const MatrixLayout& layout, int32_t matrix, uint64_t row,
                       uint64_t column) {
    return matrix * layout.batch_stride +
           static_cast<int64_t>(column) * layout.leading_dimension +
           static_cast<int64_t>(row);
  }

  const FakeProduct& product_;
};

}  // namespace

uint64_t FakeProduct::rows() const {
  return operation.transpose_a == Operation::kNone ? a.rows : a.columns;
}

uint64_t FakeProduct::columns() const {
  return operation.transpose_b == Operation::kNone ? b.columns : b.rows;
}

uint64_t FakeProduct::inner() const {
  return operation.transpose_a == Operation::kNone ? a.columns : a.rows;
}

bool FakeProduct::IsValid() const {
  const uint64_t b_inner =
      operation.transpose_b == Operation::kNone ? b.rows : b.columns;
  return IsMatrix(a) && IsMatrix(b) && IsMatrix(d) && IsSame(c, d) &&
         AreApart(d) && inner() == b_inner && d.rows == rows() &&
         d.columns == columns() && a.batch_count == d.batch_count &&
         b.batch_count == d.batch_count && a.type == d.type &&
         b.type == d.type &&
         AreTypesListed(operation.compute_type, operation.scale_type, d.type) &&
         FakeHasBias(operation.epilogue) == (operation.bias != nullptr);
}

uint64_t FakeProduct::Fingerprint() const {
  uint64_t result = 0;
  const auto add = [&](auto number) {
    result = FoldIn(result, static_cast<uint64_t>(number));
  };
  add(operation.compute_type);
  add(operation.scale_type);
  add(operation.transpose_a);
  add(operation.transpose_b);
  add(operation.epilogue);
  for (const MatrixLayout& layout : {a, b, c, d}) {
    add(layout.type);
    add(layout.rows);
    add(layout.columns);
    add(layout.leading_dimension);
    add(layout.batch_count);
    add(layout.batch_stride);
  }
  return result;
}

void FakeProduct::Compute() const {
  VisitNumber(DTypeOfElements(d.type), [&]<typename T>() {
    if constexpr (std::is_integral_v<T>) {
      return;
    } else {
      Multiplication<T>(*this).ComputeAll();
    }
  });
}

size_t FakeElementBytes(CudaDataType type) {
  return SizeOf(DTypeOfElements(type));
}

size_t FakeSizeBytes(const MatrixLayout& layout) {
  const int64_t elements =
      (layout.batch_count - 1) * layout.batch_stride +
      (static_cast<int64_t>(layout.columns) - 1) * layout.leading_dimension +
      static_cast<int64_t>(layout.rows);
  return static_cast<size_t>(elements) * FakeElementBytes(layout.type);
}

bool FakeHasBias(Epilogue epilogue) {
  return epilogue == Epilogue::kBias || epilogue == Epilogue::kReluBias ||
         epilogue == Epilogue::kGeluBias;
}

}  // namespace muster
