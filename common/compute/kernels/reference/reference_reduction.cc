#include <limits>
#include <vector>

#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/compute/kernels/strided_index.h"

namespace muster::internal {
namespace {

std::vector<int64_t> AxesOf(const KernelSpec& spec) {
  return spec.attributes.GetOr<std::vector<int64_t>>("axes", {});
}

// Makes a reduction: each result starts at `initial` and is combined with its
// elements by `combine`.
template <typename T, typename Combine>
KernelOr MakeReduce(const ReductionIndex& index, Accumulated<T> initial,
                    Combine combine) {
  return MakeKernel([=, count = index.reduced.element_count()](
                        const KernelArguments& arguments) {
    const auto x = arguments.inputs[0]->flat<T>();
    const auto y = arguments.outputs[0]->mutable_flat<T>();
    for (size_t i = 0; i < y.size(); ++i) {
      const int64_t begin = index.kept(i);
      Accumulated<T> result = initial;
      for (int64_t j = 0; j < count; ++j) {
        const Accumulated<T> element = Widen(x[begin + index.reduced(j)]);
        result = combine(result, element);
      }
      y[i] = Narrow<T>(result);
    }
    return absl::OkStatus();
  });
}

// initial<A>() is the start value of results of type A.
template <typename Limit, typename Combine>
void RegisterReduce(KernelRegistry* registry, absl::string_view op,
                    Limit initial, Combine combine) {
  RegisterReference(registry, op, [=](const KernelSpec& spec) {
    const ReductionIndex index(spec.inputs[0].shape, AxesOf(spec));
    const auto make = [&]<typename T>() {
      using A = Accumulated<T>;
      return MakeReduce<T>(index, initial.template operator()<A>(), combine);
    };
    return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
  });
}

KernelOr MakeMean(const KernelSpec& spec) {
  const ReductionIndex index(spec.inputs[0].shape, AxesOf(spec));
  const auto make = [&]<typename T>() {
    return MakeKernel([index, count = index.reduced.element_count()](
                          const KernelArguments& arguments) {
      // The sum of integers may exceed their type.
      using Total = std::conditional_t<kIsFloating<T>, double, int64_t>;
      const auto x = arguments.inputs[0]->flat<T>();
      const auto y = arguments.outputs[0]->mutable_flat<T>();
      if (std::is_integral_v<T> && count == 0 && !y.empty()) {
        return absl::InvalidArgumentError(
            "the mean of no integers is undefined");
      }
      for (size_t i = 0; i < y.size(); ++i) {
        const int64_t begin = index.kept(i);
        Total total = 0;
        for (int64_t j = 0; j < count; ++j) {
          total = WrappingAdd<Total>(total, Widen(x[begin + index.reduced(j)]));
        }
        y[i] = Narrow<T>(total / static_cast<Total>(count));
      }
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
}

KernelOr MakeSumLike(const KernelSpec& spec) {
  const Shape& shape = spec.inputs[0].shape;
  const ReductionIndex index(shape,
                             BroadcastAxes(spec.outputs[0].shape, shape));
  const auto make = [&]<typename T>() {
    return MakeReduce<T>(index, 0,
                         [](auto sum, auto x) { return WrappingAdd(sum, x); });
  };
  return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
}

// Element i is the product of all other elements of its group.
KernelOr MakeProdOfOthers(const KernelSpec& spec) {
  const ReductionIndex index(spec.inputs[0].shape, AxesOf(spec));
  const auto make = [&]<typename T>() {
    return MakeKernel([index, count = index.reduced.element_count()](
                          const KernelArguments& arguments) {
      const auto x = arguments.inputs[0]->flat<T>();
      const auto y = arguments.outputs[0]->mutable_flat<T>();
      const int64_t group_count = y.empty() ? 0 : index.kept.element_count();
      for (int64_t group = 0; group < group_count; ++group) {
        const int64_t begin = index.kept(group);
        Computed<T> before = 1;
        for (int64_t j = 0; j < count; ++j) {
          y[begin + index.reduced(j)] = Narrow<T>(before);
          before *= Widen(x[begin + index.reduced(j)]);
        }
        Computed<T> after = 1;
        for (int64_t j = count - 1; j >= 0; --j) {
          const int64_t at = begin + index.reduced(j);
          y[at] = Narrow<T>(Widen(y[at]) * after);
          after *= Widen(x[at]);
        }
      }
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

KernelOr MakeCumSum(const KernelSpec& spec) {
  const ReductionIndex index(spec.inputs[0].shape,
                             {spec.attributes.GetOr<int64_t>("axis", 0)});
  const bool exclusive = spec.attributes.GetOr<bool>("exclusive", false);
  const bool reverse = spec.attributes.GetOr<bool>("reverse", false);
  const auto make = [&]<typename T>() {
    return MakeKernel([=, count = index.reduced.element_count()](
                          const KernelArguments& arguments) {
      const auto x = arguments.inputs[0]->flat<T>();
      const auto y = arguments.outputs[0]->mutable_flat<T>();
      const int64_t row_count = y.empty() ? 0 : index.kept.element_count();
      for (int64_t row = 0; row < row_count; ++row) {
        const int64_t begin = index.kept(row);
        Accumulated<T> sum = 0;
        for (int64_t j = 0; j < count; ++j) {
          const int64_t at = begin + index.reduced(reverse ? count - 1 - j : j);
          const Accumulated<T> before = sum;
          sum = WrappingAdd<Accumulated<T>>(sum, Widen(x[at]));
          y[at] = Narrow<T>(exclusive ? before : sum);
        }
      }
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
}

// Returns the first element for which no other is `better`.
template <typename Better>
void RegisterArg(KernelRegistry* registry, absl::string_view op,
                 Better better) {
  RegisterReference(registry, op, [better](const KernelSpec& spec) {
    const ReductionIndex index(spec.inputs[0].shape,
                               {spec.attributes.GetOr<int64_t>("axis", 0)});
    const auto make = [&]<typename T>() {
      return MakeKernel([index, better, count = index.reduced.element_count()](
                            const KernelArguments& arguments) {
        const auto x = arguments.inputs[0]->flat<T>();
        const auto y = arguments.outputs[0]->mutable_flat<int64_t>();
        for (size_t i = 0; i < y.size(); ++i) {
          const int64_t begin = index.kept(i);
          y[i] = 0;
          for (int64_t j = 1; j < count; ++j) {
            const auto chosen = Widen(x[begin + index.reduced(y[i])]);
            if (better(Widen(x[begin + index.reduced(j)]), chosen)) y[i] = j;
          }
        }
        return absl::OkStatus();
      });
    };
    return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
  });
}

KernelOr MakeCountAlong(const KernelSpec& spec) {
  const ReductionIndex index(spec.inputs[0].shape, AxesOf(spec));
  const float count = static_cast<float>(index.reduced.element_count());
  return MakeKernel([count](const KernelArguments& arguments) {
    arguments.outputs[0]->mutable_flat<float>()[0] = count;
    return absl::OkStatus();
  });
}

}  // namespace

void RegisterReductionKernels(KernelRegistry* registry) {
  const auto zero = []<typename A>() { return A{0}; };
  const auto one = []<typename A>() { return A{1}; };
  const auto least = []<typename A>() {
    return std::is_floating_point_v<A>
               ? static_cast<A>(-std::numeric_limits<A>::infinity())
               : std::numeric_limits<A>::lowest();
  };
  const auto greatest = []<typename A>() {
    return std::is_floating_point_v<A> ? std::numeric_limits<A>::infinity()
                                       : std::numeric_limits<A>::max();
  };
  RegisterReduce(registry, "Sum", zero,
                 [](auto sum, auto x) { return WrappingAdd(sum, x); });
  RegisterReduce(registry, "Prod", one,
                 [](auto product, auto x) { return WrappingMul(product, x); });
  // x != x: NaN if any element is NaN.
  RegisterReduce(registry, "Max", least,
                 [](auto max, auto x) { return x > max || x != x ? x : max; });
  RegisterReduce(registry, "Min", greatest,
                 [](auto min, auto x) { return x < min || x != x ? x : min; });
  RegisterReference(registry, "Mean", MakeMean);
  RegisterReference(registry, "SumLike", MakeSumLike);
  RegisterReference(registry, "ProdOfOthers", MakeProdOfOthers);
  RegisterReference(registry, "CumSum", MakeCumSum);
  RegisterArg(registry, "ArgMax", [](auto a, auto b) { return a > b; });
  RegisterArg(registry, "ArgMin", [](auto a, auto b) { return a < b; });
  RegisterReference(registry, "CountAlong", MakeCountAlong);
}

}  // namespace muster::internal
