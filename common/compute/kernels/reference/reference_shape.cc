
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/compute/kernels/strided_index.h"
#include "common/compute/kernels/view_copies.h"

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

void CopyIndexed(const Tensor& from, const StridedIndex& from_index, Tensor* to,
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

// Makes a kernel of one of ViewOps().
KernelOr MakeView(const KernelSpec& spec) {
  if (spec.inputs[0].dtype == DType::kString) return UnsupportedTypes(spec);
  return MakeKernel(
      [copies = ViewCopiesOf(spec)](const KernelArguments& arguments) {
        for (const ViewCopy& copy : copies) {
          CopyIndexed(*arguments.inputs[copy.input], copy.from,
                      arguments.outputs[copy.output], copy.to);
        }
        return absl::OkStatus();
      });
}

// Makes a kernel that copies input 0.
KernelOr MakeSame(const KernelSpec& spec) {
  if (spec.inputs[0].dtype == DType::kString) return UnsupportedTypes(spec);
  return MakeKernel(
      [](const KernelArguments& arguments) {
        CopyElements(*arguments.inputs[0], arguments.outputs[0]);
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

// Pad and PadLike.
KernelOr MakePad(const KernelSpec& spec) {
  const double value = spec.attributes.GetOr<double>("value", 0);
  const Shape& input = spec.inputs[0].shape;
  const StridedIndex input_index = DenseIndex(input);
  const StridedIndex box =
      BoxIndex(input, spec.outputs[0].shape, PadBegin(spec));
  const auto make = [&]<typename T>() {
    return MakeKernel([=](const KernelArguments& arguments) {
      for (T& element : arguments.outputs[0]->mutable_flat<T>()) {
        element = Narrow<T>(value);
      }
      CopyIndexed(*arguments.inputs[0], input_index, arguments.outputs[0], box);
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kNumberOrBool>(spec.inputs[0].dtype, spec,
                                                  make);
}

}  // namespace

void RegisterShapeKernels(KernelRegistry* registry) {
  for (const char* op : {"Identity", "StopGradient", "Reshape", "ReshapeLike",
                         "ExpandDims", "Squeeze"}) {
    RegisterReference(registry, op, MakeSame);
  }
  RegisterReference(registry, "ZerosLike", MakeFill<0>);
  RegisterReference(registry, "OnesLike", MakeFill<1>);
  for (const ViewOp& op : ViewOps()) {
    RegisterReference(registry, op.name, MakeView);
  }
  RegisterReference(registry, "Pad", MakePad);
  RegisterReference(registry, "PadLike", MakePad);
}

}  // namespace muster::internal
