#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/compute/kernels/strided_index.h"

namespace muster::internal {
namespace {

std::vector<int64_t> AxesOf(const KernelSpec& spec) {
  return spec.attributes.GetOr<std::vector<int64_t>>("axes", {});
}

ReductionIndex IndexOfAxes(const KernelSpec& spec) {
  return ReductionIndex(spec.inputs[0].shape, AxesOf(spec));
}

ReductionIndex IndexOfAxis(const KernelSpec& spec) {
  return ReductionIndex(spec.inputs[0].shape,
                        {spec.attributes.GetOr<int64_t>("axis", 0)});
}

// Each result starts at Reduction::Initial() and is combined with its elements
// by Reduction::Combine().
template <typename T, typename Reduction>
absl::Status RunReduce(const ReductionIndex& index,
                       const KernelArguments& arguments) {
  using A = Accumulated<T>;
  const int64_t count = index.reduced.element_count();
  const auto x = arguments.inputs[0]->flat<T>();
  const auto y = arguments.outputs[0]->mutable_flat<T>();
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t begin = index.kept(i);
    A result = Reduction::template Initial<A>();
    for (int64_t j = 0; j < count; ++j) {
      const A element = Widen(x[begin + index.reduced(j)]);
      result = Reduction::Combine(result, element);
    }
    y[i] = Narrow<T>(result);
  }
  return absl::OkStatus();
}

struct Sum {
  template <typename A>
  static A Initial() {
    return 0;
  }
  template <typename A>
  static A Combine(A sum, A x) {
    return WrappingAdd(sum, x);
  }
};

struct Prod {
  template <typename A>
  static A Initial() {
    return 1;
  }
  template <typename A>
  static A Combine(A product, A x) {
    return WrappingMul(product, x);
  }
};

// Max and Min: NaN if any element is NaN, which differs from itself.
struct Max {
  template <typename A>
  static A Initial() {
    return std::is_floating_point_v<A>
               ? static_cast<A>(-std::numeric_limits<A>::infinity())
               : std::numeric_limits<A>::lowest();
  }
  template <typename A>
  static A Combine(A max, A x) {
    return x > max || x != x ? x : max;
  }
};

struct Min {
  template <typename A>
  static A Initial() {
    return std::is_floating_point_v<A> ? std::numeric_limits<A>::infinity()
                                       : std::numeric_limits<A>::max();
  }
  template <typename A>
  static A Combine(A min, A x) {
    return x < min || x != x ? x : min;
  }
};

template <typename Reduction>
KernelOr MakeReduce(const KernelSpec& spec, const ReductionIndex& index) {
  const auto make = [&]<typename T>() {
    return MakeKernel(index, RunReduce<T, Reduction>);
  };
  return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
}

template <typename Reduction>
void RegisterReduce(KernelRegistry* registry, absl::string_view op) {
  RegisterReference(registry, op, [](const KernelSpec& spec) {
    return MakeReduce<Reduction>(spec, IndexOfAxes(spec));
  });
}

template <typename T>
absl::Status RunMean(const ReductionIndex& index,
                     const KernelArguments& arguments) {
  // The sum of integers may exceed their type.
  using Total = std::conditional_t<kIsFloating<T>, double, int64_t>;
  const int64_t count = index.reduced.element_count();
  const auto x = arguments.inputs[0]->flat<T>();
  const auto y = arguments.outputs[0]->mutable_flat<T>();
  if (std::is_integral_v<T> && count == 0 && !y.empty()) {
    return absl::InvalidArgumentError("the mean of no integers is undefined");
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
}

KernelOr MakeMean(const KernelSpec& spec) {
  const ReductionIndex index = IndexOfAxes(spec);
  const auto make = [&]<typename T>() { return MakeKernel(index, RunMean<T>); };
  return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
}

KernelOr MakeSumLike(const KernelSpec& spec) {
  const Shape& shape = spec.inputs[0].shape;
  return MakeReduce<Sum>(
      spec, ReductionIndex(shape, BroadcastAxes(spec.outputs[0].shape, shape)));
}

// Element i is the product of all other elements of its group.
template <typename T>
absl::Status RunProdOfOthers(const ReductionIndex& index,
                             const KernelArguments& arguments) {
  const int64_t count = index.reduced.element_count();
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
}

KernelOr MakeProdOfOthers(const KernelSpec& spec) {
  const ReductionIndex index = IndexOfAxes(spec);
  const auto make = [&]<typename T>() {
    return MakeKernel(index, RunProdOfOthers<T>);
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec, make);
}

struct CumSum {
  ReductionIndex index;
  bool exclusive;
  bool reverse;
};

template <typename T>
absl::Status RunCumSum(const CumSum& cum_sum,
                       const KernelArguments& arguments) {
  const auto& [index, exclusive, reverse] = cum_sum;
  const int64_t count = index.reduced.element_count();
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
}

KernelOr MakeCumSum(const KernelSpec& spec) {
  const CumSum cum_sum = {
      .index = IndexOfAxis(spec),
      .exclusive = spec.attributes.GetOr<bool>("exclusive", false),
      .reverse = spec.attributes.GetOr<bool>("reverse", false)};
  const auto make = [&]<typename T>() {
    return MakeKernel(cum_sum, RunCumSum<T>);
  };
  return VisitSupported<Supported::kNumber>(spec.inputs[0].dtype, spec, make);
}

// Returns the first element for which no other is Better().
template <typename T, typename Better>
absl::Status RunArg(const ReductionIndex& index,
                    const KernelArguments& arguments) {
  const int64_t count = index.reduced.element_count();
  const auto x = arguments.inputs[0]->flat<T>();
  const auto y = arguments.outputs[0]->mutable_flat<int64_t>();
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t begin = index.kept(i);
    y[i] = 0;
    for (int64_t j = 1; j < count; ++j) {
      const auto chosen = Widen(x[begin + index.reduced(y[i])]);
      if (Better()(Widen(x[begin + index.reduced(j)]), chosen)) y[i] = j;
    }
  }
  return absl::OkStatus();
}

template <typename Better>
void RegisterArg(KernelRegistry* registry, absl::string_view op) {
  RegisterReference(registry, op, [](const KernelSpec& spec) {
    const ReductionIndex index = IndexOfAxis(spec);
    const auto make = [&]<typename T>() {
      return MakeKernel(index, RunArg<T, Better>);
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
  RegisterReduce<Sum>(registry, "Sum");
  RegisterReduce<Prod>(registry, "Prod");
  RegisterReduce<Max>(registry, "Max");
  RegisterReduce<Min>(registry, "Min");
  RegisterReference(registry, "Mean", MakeMean);
  RegisterReference(registry, "SumLike", MakeSumLike);
  RegisterReference(registry, "ProdOfOthers", MakeProdOfOthers);
  RegisterReference(registry, "CumSum", MakeCumSum);
  RegisterArg<std::greater<>>(registry, "ArgMax");
  RegisterArg<std::less<>>(registry, "ArgMin");
  RegisterReference(registry, "CountAlong", MakeCountAlong);
}

}  // namespace muster::internal
