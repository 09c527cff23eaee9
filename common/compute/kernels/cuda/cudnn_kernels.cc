#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/compute/kernels/cuda/cudnn/cudnn.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/image_geometry.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/device_memory.h"

// The six convolution ops by cuDNN.
namespace muster::internal {
namespace {

// Returns the addresses of x, the kernel and y.
std::array<void*, 3> OperandsOf(const KernelArguments& arguments, ConvPart part,
                                void* kernel) {
  const auto input = [&](int i) { return arguments.inputs[i]->address(); };
  void* const output = arguments.outputs[0]->address();
  switch (part) {
    case ConvPart::kForward:
      return {input(0), kernel, output};
    case ConvPart::kBackpropInput:
      return {output, kernel, input(0)};
    case ConvPart::kBackpropKernel:
      break;
  }
  return {input(0), kernel, input(1)};
}

// Transposes kernels. Kernels of Muster are matrices of [height * width *
// inputs, outputs]; cuDNN expects their transpose.
class Transposition {
 public:
  static absl::StatusOr<Transposition> Create(const KernelTarget& target,
                                              int64_t rows, int64_t columns,
                                              DType dtype) {
    ASSIGN_OR_RETURN(WordCopy copy, CopyingWords(target));
    return Transposition(std::move(copy), rows, columns, dtype);
  }

  // True if both layouts are the same.
  bool is_identity() const { return rows_ == 1 || columns_ == 1; }
  size_t size_bytes() const {
    return static_cast<size_t>(rows_ * columns_) * SizeOf(dtype_);
  }

  absl::Status ToCudnn(const DeviceRun& run, const void* from, void* to) const {
    return Copy(run, from, to, rows_, columns_);
  }
  absl::Status FromCudnn(const DeviceRun& run, const void* from,
                         void* to) const {
    return Copy(run, from, to, columns_, rows_);
  }

 private:
  Transposition(WordCopy copy, int64_t rows, int64_t columns, DType dtype)
      : copy_(std::move(copy)), rows_(rows), columns_(columns), dtype_(dtype) {}

  absl::Status Copy(const DeviceRun& run, const void* from, void* to,
                    int64_t rows, int64_t columns) const {
    const CopyParameters parameters = {
        .count = rows * columns,
        .from = from,
        .to = to,
        .word_bytes = static_cast<int32_t>(SizeOf(dtype_)),
        .from_layout = {.rank = 2,
                        .offset = 0,
                        .extents = {columns, rows},
                        .strides = {1, columns}},
        .to_layout = {.rank = 1,
                      .offset = 0,
                      .extents = {rows * columns},
                      .strides = {1}}};
    return copy_(run, parameters);
  }

  WordCopy copy_;
  int64_t rows_;
  int64_t columns_;
  DType dtype_;
};

KernelOr MakeConvolution(const KernelSpec& spec, const KernelTarget& target,
                         const std::shared_ptr<Cudnn>& library) {
  const DType dtype = spec.outputs[0].dtype;
  if (!IsFloating(dtype)) return Unsupported(spec);
  for (const TensorType& input : spec.inputs) {
    if (input.shape.element_count() == 0) return Unsupported(spec);
  }
  ASSIGN_OR_RETURN(const ConvGeometry geometry, ConvGeometry::Of(spec));
  ASSIGN_OR_RETURN(
      std::shared_ptr<CudnnExecution> convolution,
      CudnnExecution::Create(
          library, ConvolutionProblem{
                       .dtype = dtype,
                       .geometry = geometry,
                       .tensor_float_32 = target.device->tensor_float_32()}));
  ASSIGN_OR_RETURN(const Transposition transposition,
                   Transposition::Create(target,
                                         geometry.height.window_extent *
                                             geometry.width.window_extent *
                                             geometry.group_inputs(),
                                         geometry.output_channels, dtype));
  // The transposed kernel follows the workspace in scratch memory.
  constexpr size_t kAlignment = DeviceMemory::kAlignmentBytes;
  const size_t workspace_bytes =
      (convolution->workspace_bytes() + kAlignment - 1) / kAlignment *
      kAlignment;
  const size_t kernel_bytes =
      transposition.is_identity() ? 0 : transposition.size_bytes();
  return MakeDeviceKernel(
      target,
      [convolution = std::move(convolution), transposition, workspace_bytes,
       part = geometry.part](const DeviceRun& run) -> absl::Status {
        uint8_t* const scratch = run.arguments.scratch.data();
        const bool is_result = part == ConvPart::kBackpropKernel;
        void* const ours = is_result ? run.output(0).data : run.input(1).data;
        void* const theirs =
            transposition.is_identity() ? ours : scratch + workspace_bytes;
        if (ours != theirs && !is_result) {
          RETURN_IF_ERROR(transposition.ToCudnn(run, ours, theirs));
        }
        RETURN_IF_ERROR(
            convolution->Run(run.arguments.stream,
                             OperandsOf(run.arguments, part, theirs), scratch));
        if (ours == theirs || !is_result) return absl::OkStatus();
        return transposition.FromCudnn(run, theirs, ours);
      },
      {.scratch_bytes = workspace_bytes + kernel_bytes});
}

}  // namespace

void RegisterCudnnKernels(KernelRegistry* registry, const KernelTarget& target,
                          const std::shared_ptr<Cudnn>& library) {
  for (const char* op :
       {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropKernel",
        "DepthwiseConv2D", "DepthwiseConv2DBackpropInput",
        "DepthwiseConv2DBackpropKernel"}) {
    RegisterDevice(
        registry, target, op,
        [library](const KernelSpec& spec, const KernelTarget& where) {
          return MakeConvolution(spec, where, library);
        });
  }
}

}  // namespace muster::internal
