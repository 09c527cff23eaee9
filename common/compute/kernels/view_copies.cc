#include "common/compute/kernels/view_copies.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/core/base/check.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"

namespace muster::internal {
namespace {

int64_t AxisOf(const KernelSpec& spec, int rank) {
  const int64_t axis = spec.attributes.GetOr<int64_t>("axis", 0);
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> ListOf(const KernelSpec& spec, absl::string_view name) {
  return spec.attributes.GetOr<std::vector<int64_t>>(name, {});
}

StridedIndex TransposedIndex(const KernelSpec& spec) {
  const Shape& input = spec.inputs[0].shape;
  const std::vector<int64_t> input_strides = RowMajorStrides(input);
  std::vector<int64_t> strides;
  for (const int64_t axis : ListOf(spec, "permutation")) {
    strides.push_back(input_strides[axis < 0 ? axis + input.rank() : axis]);
  }
  return StridedIndex(spec.outputs[0].shape.dims(), strides);
}

StridedIndex ReversedIndex(const KernelSpec& spec) {
  const Shape& input = spec.inputs[0].shape;
  std::vector<int64_t> strides = RowMajorStrides(input);
  int64_t offset = 0;
  for (int64_t axis : ListOf(spec, "axes")) {
    if (axis < 0) axis += input.rank();
    offset += strides[axis] * (input.dim(static_cast<int>(axis)) - 1);
    strides[axis] = -strides[axis];
  }
  return StridedIndex(input.dims(), strides, offset);
}

// Returns the indices of `parts` joined along `axis` in `whole`.
std::vector<StridedIndex> PartIndices(absl::Span<const TensorType> parts,
                                      const Shape& whole, int64_t axis) {
  std::vector<StridedIndex> indices;
  std::vector<int64_t> begin(whole.rank(), 0);
  for (const TensorType& part : parts) {
    indices.push_back(BoxIndex(part.shape, whole, begin));
    begin[axis] += part.shape.dim(static_cast<int>(axis));
  }
  return indices;
}

// Returns the types of stacked parts, with an axis of extent 1.
std::vector<TensorType> WithAxis(absl::Span<const TensorType> parts,
                                 int64_t axis) {
  std::vector<TensorType> expanded(parts.begin(), parts.end());
  for (TensorType& part : expanded) {
    part.shape.InsertDim(static_cast<int>(axis), 1);
  }
  return expanded;
}

std::vector<ViewCopy> Join(absl::Span<const TensorType> parts,
                           const Shape& whole, int64_t axis) {
  std::vector<ViewCopy> copies;
  for (StridedIndex& index : PartIndices(parts, whole, axis)) {
    const int part = static_cast<int>(copies.size());
    copies.push_back(
        {part, 0, DenseIndex(parts[part].shape), std::move(index)});
  }
  return copies;
}

std::vector<ViewCopy> Split(absl::Span<const TensorType> parts,
                            const Shape& whole, int64_t axis) {
  std::vector<ViewCopy> copies;
  for (StridedIndex& index : PartIndices(parts, whole, axis)) {
    const int part = static_cast<int>(copies.size());
    copies.push_back(
        {0, part, std::move(index), DenseIndex(parts[part].shape)});
  }
  return copies;
}

std::vector<ViewCopy> FromIndex(const KernelSpec& spec, StridedIndex from) {
  return {{0, 0, std::move(from), DenseIndex(spec.outputs[0].shape)}};
}

std::vector<ViewCopy> BroadcastCopies(const KernelSpec& spec) {
  return FromIndex(spec,
                   BroadcastIndex(spec.inputs[0].shape, spec.outputs[0].shape));
}

std::vector<ViewCopy> TransposeCopies(const KernelSpec& spec) {
  return FromIndex(spec, TransposedIndex(spec));
}

std::vector<ViewCopy> ReverseCopies(const KernelSpec& spec) {
  return FromIndex(spec, ReversedIndex(spec));
}

std::vector<ViewCopy> SliceCopies(const KernelSpec& spec) {
  return FromIndex(spec, BoxIndex(spec.outputs[0].shape, spec.inputs[0].shape,
                                  ListOf(spec, "begin")));
}

std::vector<ViewCopy> ConcatCopies(const KernelSpec& spec) {
  const Shape& output = spec.outputs[0].shape;
  return Join(spec.inputs, output, AxisOf(spec, output.rank()));
}

std::vector<ViewCopy> StackCopies(const KernelSpec& spec) {
  const Shape& output = spec.outputs[0].shape;
  const int64_t axis = AxisOf(spec, output.rank());
  return Join(WithAxis(spec.inputs, axis), output, axis);
}

std::vector<ViewCopy> SplitCopies(const KernelSpec& spec) {
  const Shape& input = spec.inputs[0].shape;
  return Split(spec.outputs, input, AxisOf(spec, input.rank()));
}

std::vector<ViewCopy> UnstackCopies(const KernelSpec& spec) {
  const Shape& input = spec.inputs[0].shape;
  const int64_t axis = AxisOf(spec, input.rank());
  return Split(WithAxis(spec.outputs, axis), input, axis);
}

constexpr ViewOp kViewOps[] = {
    {"BroadcastTo", BroadcastCopies}, {"BroadcastLike", BroadcastCopies},
    {"Transpose", TransposeCopies},   {"Slice", SliceCopies},
    {"SliceLike", SliceCopies},       {"Concat", ConcatCopies},
    {"Stack", StackCopies},           {"Split", SplitCopies},
    {"SplitLike", SplitCopies},       {"Unstack", UnstackCopies},
    {"Reverse", ReverseCopies}};

}  // namespace

absl::Span<const ViewOp> ViewOps() { return kViewOps; }

std::vector<ViewCopy> ViewCopiesOf(const KernelSpec& spec) {
  const auto* const found =
      std::find_if(std::begin(kViewOps), std::end(kViewOps),
                   [&](const ViewOp& op) { return op.name == spec.op; });
  MUSTER_CHECK(found != std::end(kViewOps));
  return found->copies(spec);
}

std::vector<int64_t> PadBegin(const KernelSpec& spec) {
  if (spec.op == "PadLike") return ListOf(spec, "begin");
  const std::vector<int64_t> paddings = ListOf(spec, "paddings");
  std::vector<int64_t> begin;
  for (size_t i = 0; i < paddings.size(); i += 2) begin.push_back(paddings[i]);
  return begin;
}

}  // namespace muster::internal
