#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

// Operations on whole rows: gather, scatter-add, join and split.
namespace muster {
namespace {

using internal::KernelOr;

// Calls use(position, index) for each index. Returns an error if an index is
// not in [0, bound).
template <typename Index, typename Use>
absl::Status ForEachIndex(const Tensor& indices, int64_t bound, Use use) {
  const auto flat = indices.flat<Index>();
  for (size_t i = 0; i < flat.size(); ++i) {
    if (flat[i] < 0 || flat[i] >= bound) {
      return absl::InvalidArgumentError(absl::StrCat(
          "index ", flat[i], " at element ", i, " is not in [0, ", bound, ")"));
    }
    use(static_cast<int64_t>(i), static_cast<int64_t>(flat[i]));
  }
  return absl::OkStatus();
}

int AxisOf(const KernelSpec& spec, int rank) {
  const int64_t axis = spec.attributes.GetOr<int64_t>("axis", 0);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// A tensor as [outer, bound, inner] around one axis.
struct AxisRange {
  AxisRange(const Shape& shape, int axis)
      : outer(shape.ElementCountInRange(0, axis)),
        bound(shape.dim(axis)),
        inner(shape.ElementCountInRange(axis + 1, shape.rank())) {}

  int64_t outer;
  int64_t bound;
  int64_t inner;
};

template <typename Index>
class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(const KernelSpec& spec)
      : range_(spec.inputs[0].shape, AxisOf(spec, spec.inputs[0].shape.rank())),
        index_count_(spec.inputs[1].shape.element_count()),
        row_bytes_(range_.inner * SizeOf(spec.inputs[0].dtype)) {}

  absl::Status Run(const KernelArguments& arguments) override {
    const uint8_t* const from = arguments.inputs[0]->raw_data();
    uint8_t* const to = arguments.outputs[0]->mutable_raw_data();
    return ForEachIndex<Index>(
        *arguments.inputs[1], range_.bound, [&](int64_t i, int64_t index) {
          for (int64_t o = 0; o < range_.outer; ++o) {
            std::memcpy(to + (o * index_count_ + i) * row_bytes_,
                        from + (o * range_.bound + index) * row_bytes_,
                        row_bytes_);
          }
        });
  }

 private:
  const AxisRange range_;
  const int64_t index_count_;
  const size_t row_bytes_;
};

struct AddRow {
  MUSTER_INLINE static void Run(int64_t count, const float* from, float* to) {
    for (int64_t i = 0; i < count; ++i) to[i] += from[i];
  }
};

template <typename Index>
class ScatterRowsKernel : public Kernel {
 public:
  explicit ScatterRowsKernel(const KernelSpec& spec)
      : range_(spec.outputs[0].shape, 0) {}

  absl::Status Run(const KernelArguments& arguments) override {
    const float* const from = arguments.inputs[0]->flat<float>().data();
    const auto to = arguments.outputs[0]->mutable_flat<float>();
    std::fill(to.begin(), to.end(), 0.0f);
    return ForEachIndex<Index>(
        *arguments.inputs[1], range_.bound, [&](int64_t i, int64_t index) {
          RunVectorized<AddRow>(range_.inner, from + i * range_.inner,
                                to.data() + index * range_.inner);
        });
  }

 private:
  const AxisRange range_;
};

template <typename Index>
class OneHotKernel : public Kernel {
 public:
  explicit OneHotKernel(const KernelSpec& spec)
      : depth_(spec.attributes.GetOr<int64_t>("depth", 0)),
        on_value_(
            static_cast<float>(spec.attributes.GetOr<double>("on_value", 1))),
        off_value_(
            static_cast<float>(spec.attributes.GetOr<double>("off_value", 0))) {
  }

  absl::Status Run(const KernelArguments& arguments) override {
    const auto out = arguments.outputs[0]->mutable_flat<float>();
    std::fill(out.begin(), out.end(), off_value_);
    return ForEachIndex<Index>(
        *arguments.inputs[0], depth_,
        [&](int64_t i, int64_t index) { out[i * depth_ + index] = on_value_; });
  }

 private:
  const int64_t depth_;
  const float on_value_;
  const float off_value_;
};

// Returns the number of bytes of `part` in each of `outer` rows of the whole.
int64_t PieceBytes(const TensorType& part, int64_t outer) {
  return part.shape.element_count() / outer *
         static_cast<int64_t>(SizeOf(part.dtype));
}

// Concat and Stack: joins the parts row by row.
class JoinKernel : public Kernel {
 public:
  JoinKernel(const KernelSpec& spec, int64_t outer) : outer_(outer) {
    for (const TensorType& part : spec.inputs) {
      piece_bytes_.push_back(PieceBytes(part, outer));
    }
  }

  absl::Status Run(const KernelArguments& arguments) override {
    uint8_t* to = arguments.outputs[0]->mutable_raw_data();
    for (int64_t row = 0; row < outer_; ++row) {
      for (size_t i = 0; i < piece_bytes_.size(); ++i) {
        if (piece_bytes_[i] == 0) continue;
        std::memcpy(to, arguments.inputs[i]->raw_data() + row * piece_bytes_[i],
                    piece_bytes_[i]);
        to += piece_bytes_[i];
      }
    }
    return absl::OkStatus();
  }

 private:
  const int64_t outer_;
  std::vector<int64_t> piece_bytes_;
};

// Split, SplitLike and Unstack: splits the whole row by row.
class SplitKernel : public Kernel {
 public:
  SplitKernel(const KernelSpec& spec, int64_t outer) : outer_(outer) {
    for (const TensorType& part : spec.outputs) {
      piece_bytes_.push_back(PieceBytes(part, outer));
    }
  }

  absl::Status Run(const KernelArguments& arguments) override {
    const uint8_t* from = arguments.inputs[0]->raw_data();
    for (int64_t row = 0; row < outer_; ++row) {
      for (size_t i = 0; i < piece_bytes_.size(); ++i) {
        if (piece_bytes_[i] == 0) continue;
        std::memcpy(
            arguments.outputs[i]->mutable_raw_data() + row * piece_bytes_[i],
            from, piece_bytes_[i]);
        from += piece_bytes_[i];
      }
    }
    return absl::OkStatus();
  }

 private:
  const int64_t outer_;
  std::vector<int64_t> piece_bytes_;
};

// Makes a kernel that joins `whole` from parts, or splits it, along the op's
// axis.
template <typename K>
KernelOr MakeParts(const KernelSpec& spec, const TensorType& whole) {
  const int64_t outer =
      whole.shape.ElementCountInRange(0, AxisOf(spec, whole.shape.rank()));
  if (whole.dtype == DType::kString || outer == 0) {
    return absl::UnimplementedError("non-empty numbers only");
  }
  return std::make_unique<K>(spec, outer);
}

template <template <typename> typename K>
KernelOr MakeIndexed(const KernelSpec& spec, const TensorType& indices) {
  if (indices.dtype == DType::kInt64) return std::make_unique<K<int64_t>>(spec);
  if (indices.dtype == DType::kInt32) return std::make_unique<K<int32_t>>(spec);
  return absl::UnimplementedError("indices are int32 or int64");
}

}  // namespace

namespace internal {

void RegisterCpuRowKernels(KernelRegistry* registry) {
  registry->Register("Gather", [](const KernelSpec& spec, int) -> KernelOr {
    if (spec.inputs[0].dtype == DType::kString) {
      return absl::UnimplementedError("numbers only");
    }
    return MakeIndexed<GatherKernel>(spec, spec.inputs[1]);
  });
  registry->Register(
      "ScatterRowsLike", [](const KernelSpec& spec, int) -> KernelOr {
        const Shape& shape = spec.outputs[0].shape;
        if (spec.outputs[0].dtype != DType::kFloat32 ||
            AxisOf(spec, shape.rank()) != 0) {
          return absl::UnimplementedError("float32 along the first axis only");
        }
        return MakeIndexed<ScatterRowsKernel>(spec, spec.inputs[1]);
      });
  registry->Register("OneHot", [](const KernelSpec& spec, int) -> KernelOr {
    if (spec.outputs[0].dtype != DType::kFloat32) {
      return absl::UnimplementedError("float32 only");
    }
    return MakeIndexed<OneHotKernel>(spec, spec.inputs[0]);
  });
  for (const char* op : {"Concat", "Stack"}) {
    registry->Register(op, [](const KernelSpec& spec, int) {
      return MakeParts<JoinKernel>(spec, spec.outputs[0]);
    });
  }
  for (const char* op : {"Split", "SplitLike", "Unstack"}) {
    registry->Register(op, [](const KernelSpec& spec, int) {
      return MakeParts<SplitKernel>(spec, spec.inputs[0]);
    });
  }
}

}  // namespace internal
}  // namespace muster
