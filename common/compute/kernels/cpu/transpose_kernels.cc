#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster {
namespace {

// Side length of the square tiles. A tile is small enough that the rows it
// reads and writes stay in the L1 cache.
constexpr int64_t kTile = 16;

// One dimension of the output, and its stride in the input.
struct Dim {
  int64_t extent = 1;
  int64_t from_stride = 0;
  int64_t to_stride = 0;
};

// Returns the dimensions of the output, outermost first. Omits those of extent
// 1 and merges those that are adjacent in the input.
std::vector<Dim> OutputDims(const Shape& input,
                            const std::vector<int64_t>& permutation) {
  const int rank = input.rank();
  std::vector<int64_t> strides(rank, 1);
  for (int axis = rank - 2; axis >= 0; --axis) {
    strides[axis] = strides[axis + 1] * input.dim(axis + 1);
  }
  std::vector<Dim> dims;
  for (const int64_t axis : permutation) {
    const int from = static_cast<int>(axis < 0 ? axis + rank : axis);
    const Dim dim = {.extent = input.dim(from), .from_stride = strides[from]};
    if (dim.extent == 1) continue;
    if (!dims.empty() &&
        dims.back().from_stride == dim.from_stride * dim.extent) {
      dims.back().extent *= dim.extent;
      dims.back().from_stride = dim.from_stride;
    } else {
      dims.push_back(dim);
    }
  }
  int64_t to_stride = 1;
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    dim->to_stride = to_stride;
    to_stride *= dim->extent;
  }
  return dims;
}

// Copies a plane whose rows are contiguous in the output and whose columns are
// contiguous in the input.
template <typename Word>
void TransposePlane(const Word* from, Dim row, Dim column, Word* to) {
  for (int64_t r0 = 0; r0 < row.extent; r0 += kTile) {
    const int64_t r1 = std::min(r0 + kTile, row.extent);
    for (int64_t c0 = 0; c0 < column.extent; c0 += kTile) {
      const int64_t c1 = std::min(c0 + kTile, column.extent);
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) {
          to[r * row.to_stride + c] = from[r + c * column.from_stride];
        }
      }
    }
  }
}

template <typename Word>
class TransposeKernel : public Kernel {
 public:
  explicit TransposeKernel(const KernelSpec& spec)
      : element_count_(spec.outputs[0].shape.element_count()) {
    outer_ = OutputDims(
        spec.inputs[0].shape,
        spec.attributes.GetOr<std::vector<int64_t>>("permutation", {}));
    if (!outer_.empty()) {
      column_ = outer_.back();
      outer_.pop_back();
    }
    if (column_.from_stride == 1 || outer_.empty()) return;
    // The dimension that is contiguous in the input.
    const auto row =
        std::find_if(outer_.begin(), outer_.end(),
                     [](const Dim& dim) { return dim.from_stride == 1; });
    row_ = *row;
    outer_.erase(row);
  }

  absl::Status Run(const KernelArguments& arguments) override {
    if (element_count_ == 0) return absl::OkStatus();
    RunFrom(0, reinterpret_cast<const Word*>(arguments.inputs[0]->raw_data()),
            reinterpret_cast<Word*>(arguments.outputs[0]->mutable_raw_data()));
    return absl::OkStatus();
  }

 private:
  void RunFrom(size_t depth, const Word* from, Word* to) const {
    if (depth < outer_.size()) {
      const Dim& dim = outer_[depth];
      for (int64_t i = 0; i < dim.extent; ++i) {
        RunFrom(depth + 1, from + i * dim.from_stride, to + i * dim.to_stride);
      }
    } else if (row_.extent == 1) {
      std::memcpy(to, from, column_.extent * sizeof(Word));
    } else {
      TransposePlane(from, row_, column_, to);
    }
  }

  const int64_t element_count_;
  std::vector<Dim> outer_;
  Dim row_;  // Extent 1 if columns are contiguous in the input as well.
  Dim column_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeTranspose(const KernelSpec& spec,
                                                      int) {
  switch (SizeOf(spec.inputs[0].dtype)) {
    case 1:
      return std::make_unique<TransposeKernel<uint8_t>>(spec);
    case 2:
      return std::make_unique<TransposeKernel<uint16_t>>(spec);
    case 4:
      return std::make_unique<TransposeKernel<uint32_t>>(spec);
    case 8:
      return std::make_unique<TransposeKernel<uint64_t>>(spec);
    default:
      return absl::UnimplementedError("numbers only");
  }
}

}  // namespace

namespace internal {

void RegisterCpuTransposeKernels(KernelRegistry* registry) {
  registry->Register("Transpose", MakeTranspose);
}

}  // namespace internal
}  // namespace muster
