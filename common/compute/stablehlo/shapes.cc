#include <cstdint>
#include <vector>

#include "common/compute/kernels/view_copies.h"
#include "common/compute/stablehlo/hlo_operators.h"
#include "common/compute/stablehlo/translations.h"

namespace muster {

HloValue BroadcastToHlo(const HloNode& node) {
  return BroadcastTo(node.input(0), node.output().shape);
}

HloValue ReshapeToHlo(const HloNode& node) {
  return Reshape(node.input(0), node.output().shape);
}

HloValue ZerosLikeToHlo(const HloNode& node) {
  return node.builder().Constant(node.output(), 0);
}

HloValue OnesLikeToHlo(const HloNode& node) {
  return node.builder().Constant(node.output(), 1);
}

HloValue TransposeToHlo(const HloNode& node) {
  return Transpose(node.input(0),
                   node.AxesOf(node.input(0).rank(), "permutation"));
}

HloValue ReverseToHlo(const HloNode& node) {
  return Reverse(node.input(0), node.AxesOf(node.input(0).rank()));
}

HloValue ConcatToHlo(const HloNode& node) {
  return Concat(node.inputs(), node.AxisOf(node.output().shape.rank()));
}

HloValue StackToHlo(const HloNode& node) {
  const int axis = node.AxisOf(node.output().shape.rank());
  HloValues parts;
  for (const HloValue& input : node.inputs()) {
    Shape shape = input.shape();
    shape.InsertDim(axis, 1);
    parts.push_back(Reshape(input, shape));
  }
  return Concat(parts, axis);
}

absl::StatusOr<HloValues> SplitToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  const int axis = node.AxisOf(x.rank());
  std::vector<int64_t> begin(x.rank(), 0);
  HloValues parts;
  for (int i = 0; i < node.output_count(); ++i) {
    Shape shape = node.output(i).shape;
    if (node.op() == "Unstack") shape.InsertDim(axis, 1);
    parts.push_back(
        Reshape(Slice(x, begin, shape.dims()), node.output(i).shape));
    begin[axis] += shape.dim(axis);
  }
  return parts;
}

HloValue SliceToHlo(const HloNode& node) {
  return Slice(node.input(0), node.Attribute<std::vector<int64_t>>("begin", {}),
               node.output().shape.dims());
}

HloValue PadToHlo(const HloNode& node) {
  const HloValue& x = node.input(0);
  const std::vector<int64_t> low = internal::PadBegin(node.spec());
  std::vector<int64_t> high;
  for (int i = 0; i < x.rank(); ++i) {
    high.push_back(node.output().shape.dim(i) - low[i] - x.shape().dim(i));
  }
  return Pad(x,
             node.builder().Constant({x.type.element, Shape()},
                                     node.Attribute<double>("value", 0)),
             low, high);
}

}  // namespace muster
