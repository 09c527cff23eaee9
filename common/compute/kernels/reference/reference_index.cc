#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

absl::Status IndexError(int64_t position, int64_t index, int64_t bound) {
  return absl::InvalidArgumentError(
      absl::StrCat("index ", index, " at element ", position, " is not in [0, ",
                   bound, ")"));
}

// Calls use(position, index) for each index. Returns an error if an index is
// not in [0, bound).
template <typename Use>
absl::Status ForEachIndex(const Tensor& indices, int64_t bound, Use use) {
  const bool is_wide = indices.dtype() == DType::kInt64;
  for (int64_t i = 0; i < indices.element_count(); ++i) {
    const int64_t index =
        is_wide ? indices.flat<int64_t>()[i] : indices.flat<int32_t>()[i];
    if (index < 0 || index >= bound) return IndexError(i, index, bound);
    use(i, index);
  }
  return absl::OkStatus();
}

bool IsIndexType(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64;
}

// A tensor as [outer, bound, inner] around the indexed axis.
struct IndexedAxis {
  IndexedAxis(const Shape& shape, int64_t axis_attribute) {
    const int axis = static_cast<int>(
        axis_attribute < 0 ? axis_attribute + shape.rank() : axis_attribute);
    outer = shape.ElementCountInRange(0, axis);
    bound = shape.dim(axis);
    inner = shape.ElementCountInRange(axis + 1, shape.rank());
  }

  int64_t outer;
  int64_t bound;
  int64_t inner;
};

KernelOr MakeGather(const KernelSpec& spec) {
  if (!IsIndexType(spec.inputs[1].dtype)) return UnsupportedTypes(spec);
  const IndexedAxis axis(spec.inputs[0].shape,
                         spec.attributes.GetOr<int64_t>("axis", 0));
  const int64_t index_count = spec.inputs[1].shape.element_count();
  const auto make = [&]<typename T>() {
    return MakeKernel([=](const KernelArguments& arguments) {
      const auto params = arguments.inputs[0]->flat<T>();
      const auto out = arguments.outputs[0]->mutable_flat<T>();
      const auto copy = [&](int64_t i, int64_t index) {
        for (int64_t o = 0; o < axis.outer; ++o) {
          for (int64_t k = 0; k < axis.inner; ++k) {
            out[(o * index_count + i) * axis.inner + k] =
                params[(o * axis.bound + index) * axis.inner + k];
          }
        }
      };
      return ForEachIndex(*arguments.inputs[1], axis.bound, copy);
    });
  };
  return VisitSupported<Supported::kNumberOrBool>(spec.inputs[0].dtype, spec,
                                                  make);
}

KernelOr MakeScatterRowsLike(const KernelSpec& spec) {
  if (!IsIndexType(spec.inputs[1].dtype)) return UnsupportedTypes(spec);
  const IndexedAxis axis(spec.outputs[0].shape,
                         spec.attributes.GetOr<int64_t>("axis", 0));
  const int64_t index_count = spec.inputs[1].shape.element_count();
  const auto make = [&]<typename T>() {
    // Repeated rows are summed before they are rounded.
    auto sums = std::make_shared<std::vector<Accumulated<T>>>(
        spec.outputs[0].shape.element_count());
    return MakeKernel([=](const KernelArguments& arguments) {
      const auto values = arguments.inputs[0]->flat<T>();
      const auto out = arguments.outputs[0]->mutable_flat<T>();
      std::fill(sums->begin(), sums->end(), Accumulated<T>{0});
      const auto add = [&](int64_t i, int64_t index) {
        for (int64_t o = 0; o < axis.outer; ++o) {
          for (int64_t k = 0; k < axis.inner; ++k) {
            auto& sum = (*sums)[(o * axis.bound + index) * axis.inner + k];
            sum = WrappingAdd<Accumulated<T>>(
                sum, Widen(values[(o * index_count + i) * axis.inner + k]));
          }
        }
      };
      RETURN_IF_ERROR(ForEachIndex(*arguments.inputs[1], axis.bound, add));
      for (size_t i = 0; i < out.size(); ++i) out[i] = Narrow<T>((*sums)[i]);
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
}

KernelOr MakeOneHot(const KernelSpec& spec) {
  if (!IsIndexType(spec.inputs[0].dtype)) return UnsupportedTypes(spec);
  const int64_t depth = spec.attributes.GetOr<int64_t>("depth", 0);
  const double on_value = spec.attributes.GetOr<double>("on_value", 1);
  const double off_value = spec.attributes.GetOr<double>("off_value", 0);
  const auto make = [&]<typename T>() {
    return MakeKernel([=](const KernelArguments& arguments) {
      const auto out = arguments.outputs[0]->mutable_flat<T>();
      for (T& element : out) element = Narrow<T>(off_value);
      return ForEachIndex(*arguments.inputs[0], depth,
                          [&](int64_t i, int64_t index) {
                            out[i * depth + index] = Narrow<T>(on_value);
                          });
    });
  };
  return VisitSupported<Supported::kNumberOrBool>(spec.outputs[0].dtype, spec,
                                                  make);
}

// True if fewer than `k` elements of `row` are greater than row[target].
template <typename T>
bool IsInTopK(absl::Span<const T> row, int64_t target, int64_t k) {
  if (target < 0 || target >= static_cast<int64_t>(row.size())) return false;
  const auto wanted = Widen(row[target]);
  int64_t greater_count = 0;
  for (const T element : row) {
    if (!std::isfinite(Widen(element))) return false;
    greater_count += Widen(element) > wanted;
  }
  return greater_count < k;
}

KernelOr MakeInTopK(const KernelSpec& spec) {
  if (!IsIndexType(spec.inputs[1].dtype)) return UnsupportedTypes(spec);
  const int64_t k = spec.attributes.GetOr<int64_t>("k", 1);
  const int64_t class_count = spec.inputs[0].shape.dim(1);
  const bool is_wide = spec.inputs[1].dtype == DType::kInt64;
  const auto make = [&]<typename T>() {
    return MakeKernel([=](const KernelArguments& arguments) {
      const auto predictions = arguments.inputs[0]->flat<T>();
      const Tensor& targets = *arguments.inputs[1];
      const auto out = arguments.outputs[0]->mutable_flat<bool>();
      for (size_t i = 0; i < out.size(); ++i) {
        const int64_t target =
            is_wide ? targets.flat<int64_t>()[i] : targets.flat<int32_t>()[i];
        out[i] = IsInTopK(predictions.subspan(i * class_count, class_count),
                          target, k);
      }
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

}  // namespace

void RegisterIndexKernels(KernelRegistry* registry) {
  RegisterReference(registry, "Gather", MakeGather);
  RegisterReference(registry, "ScatterRowsLike", MakeScatterRowsLike);
  RegisterReference(registry, "OneHot", MakeOneHot);
  RegisterReference(registry, "InTopK", MakeInTopK);
}

}  // namespace muster::internal
