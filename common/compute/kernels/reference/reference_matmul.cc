#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/compute/kernels/strided_index.h"

namespace muster::internal {
namespace {

// The offsets and strides of the matrices of one operand.
struct MatrixLayout {
  MatrixLayout(const Shape& shape, const Shape& batch, bool transpose) {
    const int rank = shape.rank();
    const Shape own_batch(shape.dims().first(rank - 2));
    batch_index = BroadcastIndex(own_batch, batch);
    matrix_size = shape.dim(rank - 2) * shape.dim(rank - 1);
    row_stride = transpose ? 1 : shape.dim(rank - 1);
    column_stride = transpose ? shape.dim(rank - 1) : 1;
  }

  StridedIndex batch_index;
  int64_t matrix_size;
  int64_t row_stride;
  int64_t column_stride;
};

KernelOr MakeMatMul(const KernelSpec& spec) {
  const bool transpose_a = spec.attributes.GetOr("transpose_a", false);
  const bool transpose_b = spec.attributes.GetOr("transpose_b", false);
  const Shape& shape = spec.outputs[0].shape;
  const Shape batch(shape.dims().first(shape.rank() - 2));
  const Shape& shape_a = spec.inputs[0].shape;
  const int64_t row_count = shape.dim(shape.rank() - 2);
  const int64_t column_count = shape.dim(shape.rank() - 1);
  const int64_t inner = shape_a.dim(shape_a.rank() - (transpose_a ? 2 : 1));
  const MatrixLayout layout_a(shape_a, batch, transpose_a);
  const MatrixLayout layout_b(spec.inputs[1].shape, batch, transpose_b);
  const auto make = [&]<typename T>() {
    return MakeKernel([=](const KernelArguments& arguments) {
      const auto a = arguments.inputs[0]->flat<T>();
      const auto b = arguments.inputs[1]->flat<T>();
      const auto y = arguments.outputs[0]->mutable_flat<T>();
      for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
        const int64_t matrix = i / column_count / row_count;
        const int64_t row = i / column_count % row_count;
        const int64_t column = i % column_count;
        const int64_t begin_a =
            layout_a.batch_index(matrix) * layout_a.matrix_size +
            row * layout_a.row_stride;
        const int64_t begin_b =
            layout_b.batch_index(matrix) * layout_b.matrix_size +
            column * layout_b.column_stride;
        Accumulated<T> sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          const Accumulated<T> element_a =
              Widen(a[begin_a + k * layout_a.column_stride]);
          const Accumulated<T> element_b =
              Widen(b[begin_b + k * layout_b.row_stride]);
          sum = WrappingAdd(sum, WrappingMul(element_a, element_b));
        }
        y[i] = Narrow<T>(sum);
      }
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
}

}  // namespace

void RegisterMatMulKernels(KernelRegistry* registry) {
  RegisterReference(registry, "MatMul", MakeMatMul);
}

}  // namespace muster::internal
