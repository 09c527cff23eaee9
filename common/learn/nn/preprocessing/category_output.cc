#include "common/learn/nn/preprocessing/category_output.h"

#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/compute/ops/ops.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {

Value EncodeCategories(Value indices, CategoryOutput output, int64_t depth) {
  const bool sums =
      output == CategoryOutput::kMultiHot || output == CategoryOutput::kCount;
  const Shape& shape = indices.shape();
  if ((!sums && output != CategoryOutput::kOneHot) ||
      (sums && shape.rank() < 2)) {
    indices.builder()->ReportError(absl::InvalidArgumentError(absl::StrCat(
        "the output ", kCategoryOutputNames[static_cast<int>(output)],
        " needs indices [batch, n], got ", indices.type().ToString())));
    return Value();
  }
  if (!sums && shape.rank() > 1 && shape.dims().back() == 1) {
    indices = Squeeze(indices, {-1});
  }
  std::vector<int64_t> numbers(depth);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Value all =
      indices.builder()->Constant(Tensor::FromSpan<int64_t>({depth}, numbers));
  const Value ones =
      Cast(Equal(ExpandDims(Cast(indices, DType::kInt64), -1), all),
           DType::kFloat32);
  if (!sums) return ones;
  return output == CategoryOutput::kCount ? Sum(ones, {1}) : Max(ones, {1});
}

}  // namespace muster
