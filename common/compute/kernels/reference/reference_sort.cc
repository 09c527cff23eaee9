#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"

// TopK, TakeAlongRows and AddAlongRowsLike.
namespace muster::internal {
namespace {

int64_t RowLength(const Shape& shape) { return shape.dim(shape.rank() - 1); }

template <typename T>
bool IsNan(T x) {
  if constexpr (kIsFloating<T>) {
    return std::isnan(static_cast<double>(Widen(x)));
  } else {
    return false;
  }
}

KernelOr MakeTopK(const KernelSpec& spec) {
  const int64_t length = RowLength(spec.inputs[0].shape);
  const int64_t k = RowLength(spec.outputs[0].shape);
  const bool smallest = spec.attributes.GetOr("smallest", false);
  const auto make = [&]<typename T>() {
    return MakeKernel([=](const KernelArguments& arguments) {
      const auto x = arguments.inputs[0]->flat<T>();
      const auto values = arguments.outputs[0]->mutable_flat<T>();
      const auto indices = arguments.outputs[1]->mutable_flat<int32_t>();
      std::vector<int32_t> order(length);
      const int64_t rows = k == 0 ? 0 : static_cast<int64_t>(values.size()) / k;
      for (int64_t row = 0; row < rows; ++row) {
        const T* const elements = x.data() + row * length;
        std::iota(order.begin(), order.end(), 0);
        const auto is_before = [&](int32_t a, int32_t b) {
          const auto first = Widen(elements[a]);
          const auto second = Widen(elements[b]);
          if (IsNan(elements[a]) || IsNan(elements[b])) {
            if (IsNan(elements[a]) != IsNan(elements[b])) {
              return IsNan(elements[b]);
            }
          } else if (first != second) {
            return smallest ? first < second : first > second;
          }
          return a < b;
        };
        std::partial_sort(order.begin(), order.begin() + k, order.end(),
                          is_before);
        for (int64_t i = 0; i < k; ++i) {
          values[row * k + i] = elements[order[i]];
          indices[row * k + i] = order[i];
        }
      }
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
}

// Calls use(position in indices, position in rows of `length`) for each index.
template <typename Use>
absl::Status ForEachAlongRows(const Tensor& indices, int64_t length, Use use) {
  const int64_t width = RowLength(indices.shape());
  const bool is_wide = indices.dtype() == DType::kInt64;
  for (int64_t i = 0; i < indices.element_count(); ++i) {
    const int64_t index =
        is_wide ? indices.flat<int64_t>()[i] : indices.flat<int32_t>()[i];
    if (index < 0 || index >= length) {
      return absl::InvalidArgumentError(absl::StrCat(
          "index ", index, " at element ", i, " is not in [0, ", length, ")"));
    }
    use(i, i / width * length + index);
  }
  return absl::OkStatus();
}

KernelOr MakeTakeAlongRows(const KernelSpec& spec) {
  const int64_t length = RowLength(spec.inputs[0].shape);
  const auto make = [&]<typename T>() {
    return MakeKernel([=](const KernelArguments& arguments) {
      const auto x = arguments.inputs[0]->flat<T>();
      const auto out = arguments.outputs[0]->mutable_flat<T>();
      return ForEachAlongRows(
          *arguments.inputs[1], length,
          [&](int64_t i, int64_t position) { out[i] = x[position]; });
    });
  };
  return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
}

KernelOr MakeAddAlongRowsLike(const KernelSpec& spec) {
  const int64_t length = RowLength(spec.outputs[0].shape);
  const auto make = [&]<typename T>() {
    return MakeKernel([=](const KernelArguments& arguments) {
      const auto values = arguments.inputs[0]->flat<T>();
      const auto out = arguments.outputs[0]->mutable_flat<T>();
      std::fill(out.begin(), out.end(), Narrow<T>(0));
      return ForEachAlongRows(
          *arguments.inputs[1], length, [&](int64_t i, int64_t position) {
            out[position] =
                Narrow<T>(WrappingAdd(Widen(out[position]), Widen(values[i])));
          });
    });
  };
  return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
}

}  // namespace

void RegisterSortKernels(KernelRegistry* registry) {
  RegisterReference(registry, "TopK", MakeTopK);
  RegisterReference(registry, "TakeAlongRows", MakeTakeAlongRows);
  RegisterReference(registry, "AddAlongRowsLike", MakeAddAlongRowsLike);
}

}  // namespace muster::internal
