#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/compute/kernels/cpu/lanes.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// Reductions of float32 over adjacent axes: rows, columns or everything; and
// running sums. The reference kernels handle the others.
namespace muster {
namespace {

using internal::KernelOr;

// The number of elements that are summed in float32 before the sum continues in
// float64 or in another row. This bounds the rounding error of long sums.
constexpr int64_t kBlockElements = 4096;
constexpr int64_t kBlockRows = 256;

// A tensor as [outer, reduced, inner].
struct ReducedRange {
  int64_t outer = 1;
  int64_t reduced = 1;
  int64_t inner = 1;
};

// Returns nothing if the reduced axes are not adjacent.
std::optional<ReducedRange> FindRange(const Shape& shape,
                                      const std::vector<bool>& is_reduced) {
  ReducedRange range;
  bool inside = false;
  bool past = false;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t extent = shape.dim(axis);
    if (extent == 1) continue;
    if (is_reduced[axis]) {
      if (past) return {};
      inside = true;
      range.reduced *= extent;
    } else {
      past = inside;
      (inside ? range.inner : range.outer) *= extent;
    }
  }
  return range;
}

struct SumOf {
  static constexpr bool kIsMean = false;
  using Lanes = SumLanes;
};
struct MeanOf {
  static constexpr bool kIsMean = true;
  using Lanes = SumLanes;
};
struct MaxOf {
  static constexpr bool kIsMean = false;
  using Lanes = MaxLanes;
};
struct MinOf {
  static constexpr bool kIsMean = false;
  using Lanes = MinLanes;
};

// Each result is reduced from contiguous elements.
template <typename R>
struct ReduceRows {
  MUSTER_INLINE static void Run(ReducedRange range, const float* x,
                                float* out) {
    const typename R::Lanes combine;
    for (int64_t row = 0; row < range.outer; ++row, x += range.reduced) {
      double result = R::Lanes::Start();
      for (int64_t i = 0; i < range.reduced; i += kBlockElements) {
        const int64_t count = std::min(kBlockElements, range.reduced - i);
        result = combine(
            result, static_cast<double>(ReduceLanes(combine, count, x + i)));
      }
      if (R::kIsMean) result /= static_cast<double>(range.reduced);
      out[row] = static_cast<float>(result);
    }
  }
};

template <typename F>
MUSTER_INLINE void CombineRow(F combine, int64_t count, const float* x,
                              float* result) {
  MUSTER_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < count; ++i) result[i] = combine(result[i], x[i]);
}

// A row of results is reduced from whole rows.
template <typename R>
struct ReduceColumns {
  MUSTER_INLINE static void Run(ReducedRange range, const float* x, float* out,
                                float* block) {
    const typename R::Lanes combine;
    const int64_t inner = range.inner;
    for (int64_t outer = 0; outer < range.outer; ++outer, out += inner) {
      std::fill_n(out, inner, R::Lanes::Start());
      for (int64_t row = 0; row < range.reduced; row += kBlockRows) {
        const int64_t row_end = std::min(row + kBlockRows, range.reduced);
        std::fill_n(block, inner, R::Lanes::Start());
        for (int64_t k = row; k < row_end; ++k, x += inner) {
          CombineRow(combine, inner, x, block);
        }
        CombineRow(combine, inner, block, out);
      }
      if (!R::kIsMean) continue;
      const float count = static_cast<float>(range.reduced);
      for (int64_t i = 0; i < inner; ++i) out[i] /= count;
    }
  }
};

template <typename R>
class ReduceKernel : public Kernel {
 public:
  explicit ReduceKernel(const ReducedRange& range)
      : range_(range), block_(range.inner) {}

  absl::Status Run(const KernelArguments& arguments) override {
    const float* const x = arguments.inputs[0]->flat<float>().data();
    float* const out = arguments.outputs[0]->mutable_flat<float>().data();
    if (range_.inner == 1) {
      RunVectorized<ReduceRows<R>>(range_, x, out);
    } else {
      RunVectorized<ReduceColumns<R>>(range_, x, out, block_.data());
    }
    return absl::OkStatus();
  }

 private:
  const ReducedRange range_;
  std::vector<float> block_;
};

// The first maximum (kSign 1) or minimum (-1) of each row.
template <int kSign>
class ArgRowKernel : public Kernel {
 public:
  explicit ArgRowKernel(int64_t width) : width_(width) {}

  absl::Status Run(const KernelArguments& arguments) override {
    const float* row = arguments.inputs[0]->flat<float>().data();
    for (int64_t& out : arguments.outputs[0]->mutable_flat<int64_t>()) {
      int64_t best = 0;
      for (int64_t i = 1; i < width_; ++i) {
        if (kSign * row[i] > kSign * row[best]) best = i;
      }
      out = best;
      row += width_;
    }
    return absl::OkStatus();
  }

 private:
  const int64_t width_;
};

// Running sums along the middle axis of [outer, reduced, inner]: a row of sums
// for each `outer`, so that the loop over `inner` is vectorized.
struct CumulateRows {
  MUSTER_INLINE static void Run(ReducedRange range, bool exclusive,
                                bool reverse, const float* x, float* out,
                                double* sums) {
    const int64_t inner = range.inner;
    for (int64_t outer = 0; outer < range.outer; ++outer) {
      std::fill_n(sums, inner, 0.0);
      for (int64_t j = 0; j < range.reduced; ++j) {
        const int64_t row =
            outer * range.reduced + (reverse ? range.reduced - 1 - j : j);
        const float* const from = x + row * inner;
        float* const to = out + row * inner;
        if (exclusive) {
          MUSTER_INDEPENDENT_ITERATIONS
          for (int64_t i = 0; i < inner; ++i) {
            const double sum = sums[i];
            sums[i] = sum + static_cast<double>(from[i]);
            to[i] = static_cast<float>(sum);
          }
        } else {
          MUSTER_INDEPENDENT_ITERATIONS
          for (int64_t i = 0; i < inner; ++i) {
            sums[i] += static_cast<double>(from[i]);
            to[i] = static_cast<float>(sums[i]);
          }
        }
      }
    }
  }
};

class CumSumKernel : public Kernel {
 public:
  CumSumKernel(const ReducedRange& range, bool exclusive, bool reverse)
      : range_(range),
        exclusive_(exclusive),
        reverse_(reverse),
        sums_(range.inner) {}

  absl::Status Run(const KernelArguments& arguments) override {
    RunVectorized<CumulateRows>(
        range_, exclusive_, reverse_, arguments.inputs[0]->flat<float>().data(),
        arguments.outputs[0]->mutable_flat<float>().data(), sums_.data());
    return absl::OkStatus();
  }

 private:
  const ReducedRange range_;
  const bool exclusive_;
  const bool reverse_;
  std::vector<double> sums_;
};

std::vector<bool> ReducedAxes(const KernelSpec& spec) {
  const int rank = spec.inputs[0].shape.rank();
  std::vector<bool> is_reduced(rank, false);
  for (const int64_t axis :
       spec.attributes.GetOr<std::vector<int64_t>>("axes", {})) {
    is_reduced[axis < 0 ? axis + rank : axis] = true;
  }
  return is_reduced;
}

// Returns the axes along which the output is broadcast to the input.
std::vector<bool> BroadcastAxes(const KernelSpec& spec) {
  const Shape& shape = spec.inputs[0].shape;
  const Shape& like = spec.outputs[0].shape;
  const int missing = shape.rank() - like.rank();
  std::vector<bool> is_reduced(shape.rank(), false);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    is_reduced[axis] = axis < missing || like.dim(axis - missing) == 1;
  }
  return is_reduced;
}

template <typename R>
KernelOr MakeReduce(const KernelSpec& spec,
                    const std::vector<bool>& is_reduced) {
  if (spec.inputs[0].dtype != DType::kFloat32) {
    return absl::UnimplementedError("float32 only");
  }
  const auto range = FindRange(spec.inputs[0].shape, is_reduced);
  if (!range) return absl::UnimplementedError("adjacent axes only");
  return std::make_unique<ReduceKernel<R>>(*range);
}

template <typename R>
void RegisterReduce(KernelRegistry* registry, absl::string_view op) {
  registry->Register(op, [](const KernelSpec& spec, int) {
    return MakeReduce<R>(spec, ReducedAxes(spec));
  });
}

template <int kSign>
KernelOr MakeArgRow(const KernelSpec& spec, int) {
  const Shape& shape = spec.inputs[0].shape;
  const int64_t axis = spec.attributes.GetOr<int64_t>("axis", 0);
  if (spec.inputs[0].dtype != DType::kFloat32 ||
      (axis != -1 && axis != shape.rank() - 1)) {
    return absl::UnimplementedError("float32 along the last axis only");
  }
  return std::make_unique<ArgRowKernel<kSign>>(shape.dim(shape.rank() - 1));
}

KernelOr MakeCumSum(const KernelSpec& spec, int) {
  const Shape& shape = spec.inputs[0].shape;
  if (spec.inputs[0].dtype != DType::kFloat32) {
    return absl::UnimplementedError("float32 only");
  }
  const int64_t axis = spec.attributes.GetOr<int64_t>("axis", 0);
  std::vector<bool> is_cumulated(shape.rank(), false);
  is_cumulated[axis < 0 ? axis + shape.rank() : axis] = true;
  return std::make_unique<CumSumKernel>(
      *FindRange(shape, is_cumulated),
      spec.attributes.GetOr<bool>("exclusive", false),
      spec.attributes.GetOr<bool>("reverse", false));
}

}  // namespace

namespace internal {

void RegisterCpuReductionKernels(KernelRegistry* registry) {
  RegisterReduce<SumOf>(registry, "Sum");
  RegisterReduce<MeanOf>(registry, "Mean");
  RegisterReduce<MaxOf>(registry, "Max");
  RegisterReduce<MinOf>(registry, "Min");
  registry->Register("SumLike", [](const KernelSpec& spec, int) {
    return MakeReduce<SumOf>(spec, BroadcastAxes(spec));
  });
  registry->Register("ArgMax", MakeArgRow<1>);
  registry->Register("ArgMin", MakeArgRow<-1>);
  registry->Register("CumSum", MakeCumSum);
}

}  // namespace internal
}  // namespace muster
