#include <cstring>

#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register.h"
#include "common/compute/kernels/reference/strided_index.h"

namespace muster::internal {
namespace {

// Copies elements by their size, independent of their dtype.
template <typename Word>
void CopyWords(const Tensor& from, const StridedIndex& from_index, Tensor* to,
               const StridedIndex& to_index, int64_t count) {
  const auto* source = reinterpret_cast<const Word*>(from.raw_data());
  auto* target = reinterpret_cast<Word*>(to->mutable_raw_data());
  for (int64_t i = 0; i < count; ++i) {
    target[to_index(i)] = source[from_index(i)];
  }
}

void Copy(const Tensor& from, const StridedIndex& from_index, Tensor* to,
          const StridedIndex& to_index) {
  const int64_t count = to_index.element_count();
  switch (SizeOf(from.dtype())) {
    case 1:
      return CopyWords<uint8_t>(from, from_index, to, to_index, count);
    case 2:
      return CopyWords<uint16_t>(from, from_index, to, to_index, count);
    case 4:
      return CopyWords<uint32_t>(from, from_index, to, to_index, count);
    default:
      return CopyWords<uint64_t>(from, from_index, to, to_index, count);
  }
}

// Returns the index of a box of shape `part` at position `begin` in a tensor of
// shape `whole`.
StridedIndex BoxIndex(const Shape& part, const Shape& whole,
                      absl::Span<const int64_t> begin) {
  const std::vector<int64_t> strides = RowMajorStrides(whole);
  int64_t offset = 0;
  for (int axis = 0; axis < whole.rank(); ++axis) {
    offset += begin[axis] * strides[axis];
  }
  return StridedIndex(part.dims(), strides, offset);
}

int64_t AxisOf(const KernelSpec& spec, int rank) {
  const int64_t axis = spec.attributes.GetOr<int64_t>("axis", 0);
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> ListOf(const KernelSpec& spec, absl::string_view name) {
  return spec.attributes.GetOr<std::vector<int64_t>>(name, {});
}

// Makes a kernel whose output consists of the elements of input 0 at
// `input_index`.
KernelOr MakeView(const KernelSpec& spec, StridedIndex input_index) {
  if (spec.inputs[0].dtype == DType::kString) return UnsupportedTypes(spec);
  const StridedIndex output_index = DenseIndex(spec.outputs[0].shape);
  return MakeKernel([=](const KernelArguments& arguments) {
    Copy(*arguments.inputs[0], input_index, arguments.outputs[0], output_index);
    return absl::OkStatus();
  });
}

// Makes a kernel that copies input 0.
KernelOr MakeSame(const KernelSpec& spec) {
  if (spec.inputs[0].dtype == DType::kString) return UnsupportedTypes(spec);
  return MakeKernel(
      [](const KernelArguments& arguments) {
        const Tensor& input = *arguments.inputs[0];
        if (input.size_bytes() > 0) {
          std::memmove(arguments.outputs[0]->mutable_raw_data(),
                       input.raw_data(), input.size_bytes());
        }
        return absl::OkStatus();
      },
      /*shared_inputs=*/1);
}

template <int kValue>
KernelOr MakeFill(const KernelSpec& spec) {
  const auto make = [&]<typename T>() {
    return MakeKernel(
        [](const KernelArguments& arguments) {
          for (T& element : arguments.outputs[0]->mutable_flat<T>()) {
            element = Narrow<T>(kValue);
          }
          return absl::OkStatus();
        },
        ElementwiseSharing(spec));
  };
  return VisitSupported<Supported::kNumberOrBool>(spec.outputs[0].dtype, spec,
                                                  make);
}

KernelOr MakeBroadcast(const KernelSpec& spec) {
  return MakeView(spec,
                  BroadcastIndex(spec.inputs[0].shape, spec.outputs[0].shape));
}

KernelOr MakeTranspose(const KernelSpec& spec) {
  const Shape& input = spec.inputs[0].shape;
  const std::vector<int64_t> input_strides = RowMajorStrides(input);
  std::vector<int64_t> strides;
  for (const int64_t axis : ListOf(spec, "permutation")) {
    strides.push_back(input_strides[axis < 0 ? axis + input.rank() : axis]);
  }
  return MakeView(spec, StridedIndex(spec.outputs[0].shape.dims(), strides));
}

// Slice and SliceLike.
KernelOr MakeSlice(const KernelSpec& spec) {
  return MakeView(spec, BoxIndex(spec.outputs[0].shape, spec.inputs[0].shape,
                                 ListOf(spec, "begin")));
}

// Makes a kernel whose output is `value` except for a box with the elements of
// input 0.
KernelOr MakePadded(const KernelSpec& spec, std::vector<int64_t> begin,
                    double value) {
  const Shape& input = spec.inputs[0].shape;
  const StridedIndex input_index = DenseIndex(input);
  const StridedIndex box = BoxIndex(input, spec.outputs[0].shape, begin);
  const auto make = [&]<typename T>() {
    return MakeKernel([=](const KernelArguments& arguments) {
      for (T& element : arguments.outputs[0]->mutable_flat<T>()) {
        element = Narrow<T>(value);
      }
      Copy(*arguments.inputs[0], input_index, arguments.outputs[0], box);
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kNumberOrBool>(spec.inputs[0].dtype, spec,
                                                  make);
}

KernelOr MakePad(const KernelSpec& spec) {
  const std::vector<int64_t> paddings = ListOf(spec, "paddings");
  std::vector<int64_t> begin;
  for (size_t i = 0; i < paddings.size(); i += 2) begin.push_back(paddings[i]);
  return MakePadded(spec, std::move(begin),
                    spec.attributes.GetOr<double>("value", 0));
}

KernelOr MakePadLike(const KernelSpec& spec) {
  return MakePadded(spec, ListOf(spec, "begin"), 0);
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

std::vector<StridedIndex> DenseIndices(absl::Span<const TensorType> parts) {
  std::vector<StridedIndex> indices;
  for (const TensorType& part : parts) {
    indices.push_back(DenseIndex(part.shape));
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

KernelOr MakeJoin(const KernelSpec& spec, absl::Span<const TensorType> parts,
                  int64_t axis) {
  if (spec.inputs[0].dtype == DType::kString) return UnsupportedTypes(spec);
  return MakeKernel([inputs = DenseIndices(parts),
                     output = PartIndices(parts, spec.outputs[0].shape, axis)](
                        const KernelArguments& arguments) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      Copy(*arguments.inputs[i], inputs[i], arguments.outputs[0], output[i]);
    }
    return absl::OkStatus();
  });
}

KernelOr MakeCut(const KernelSpec& spec, absl::Span<const TensorType> parts,
                 int64_t axis) {
  if (spec.inputs[0].dtype == DType::kString) return UnsupportedTypes(spec);
  return MakeKernel([input = PartIndices(parts, spec.inputs[0].shape, axis),
                     outputs = DenseIndices(parts)](
                        const KernelArguments& arguments) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      Copy(*arguments.inputs[0], input[i], arguments.outputs[i], outputs[i]);
    }
    return absl::OkStatus();
  });
}

KernelOr MakeConcat(const KernelSpec& spec) {
  return MakeJoin(spec, spec.inputs,
                  AxisOf(spec, spec.outputs[0].shape.rank()));
}

KernelOr MakeStack(const KernelSpec& spec) {
  const int64_t axis = AxisOf(spec, spec.outputs[0].shape.rank());
  return MakeJoin(spec, WithAxis(spec.inputs, axis), axis);
}

// Split and SplitLike.
KernelOr MakeSplit(const KernelSpec& spec) {
  return MakeCut(spec, spec.outputs, AxisOf(spec, spec.inputs[0].shape.rank()));
}

KernelOr MakeUnstack(const KernelSpec& spec) {
  const int64_t axis = AxisOf(spec, spec.inputs[0].shape.rank());
  return MakeCut(spec, WithAxis(spec.outputs, axis), axis);
}

}  // namespace

void RegisterShapeKernels(KernelRegistry* registry) {
  for (const char* op : {"Identity", "StopGradient", "Reshape", "ReshapeLike",
                         "ExpandDims", "Squeeze"}) {
    RegisterReference(registry, op, MakeSame);
  }
  RegisterReference(registry, "ZerosLike", MakeFill<0>);
  RegisterReference(registry, "OnesLike", MakeFill<1>);
  RegisterReference(registry, "BroadcastTo", MakeBroadcast);
  RegisterReference(registry, "BroadcastLike", MakeBroadcast);
  RegisterReference(registry, "Transpose", MakeTranspose);
  RegisterReference(registry, "Slice", MakeSlice);
  RegisterReference(registry, "SliceLike", MakeSlice);
  RegisterReference(registry, "Pad", MakePad);
  RegisterReference(registry, "PadLike", MakePadLike);
  RegisterReference(registry, "Concat", MakeConcat);
  RegisterReference(registry, "Stack", MakeStack);
  RegisterReference(registry, "Split", MakeSplit);
  RegisterReference(registry, "SplitLike", MakeSplit);
  RegisterReference(registry, "Unstack", MakeUnstack);
}

}  // namespace muster::internal
