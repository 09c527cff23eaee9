#include "common/net/collectives/on_device/device_reduce.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/net/collectives/on_device/device_code/reduce_arrays_image.h"
#include "common/net/collectives/on_device/device_code/reduce_arrays_parameters.h"
#include "common/net/collectives/reduce_kernels.h"

namespace muster {
namespace {

using internal::ArrayReduction;
using internal::ReduceArraysParameters;

// Returns the kernel for a dtype that CheckReducible() accepts.
absl::string_view KernelOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "reduce_float64";
    case DType::kFloat16:
      return "reduce_float16";
    case DType::kBfloat16:
      return "reduce_bfloat16";
    case DType::kInt32:
      return "reduce_int32";
    case DType::kInt64:
      return "reduce_int64";
    default:
      return "reduce_float32";
  }
}

ArrayReduction ReductionOf(ReduceOp op) {
  return op == ReduceOp::kMean ? ArrayReduction::kSum
                               : static_cast<ArrayReduction>(op);
}

bool AreAligned(const ReduceArraysParameters& parameters) {
  const auto is_aligned = [](const void* address) {
    return reinterpret_cast<uintptr_t>(address) %
               ReduceArraysParameters::kAccessBytes ==
           0;
  };
  return std::all_of(parameters.inputs,
                     parameters.inputs + parameters.input_count, is_aligned) &&
         std::all_of(parameters.outputs,
                     parameters.outputs + parameters.output_count, is_aligned);
}

static_assert(static_cast<int>(ArrayReduction::kSum) ==
                  static_cast<int>(ReduceOp::kSum) &&
              static_cast<int>(ArrayReduction::kMin) ==
                  static_cast<int>(ReduceOp::kMin) &&
              static_cast<int>(ArrayReduction::kMax) ==
                  static_cast<int>(ReduceOp::kMax) &&
              static_cast<int>(ArrayReduction::kProd) ==
                  static_cast<int>(ReduceOp::kProd));

}  // namespace

absl::Status ReduceOnDevice(ReduceOp op, DType dtype, int64_t element_count,
                            absl::Span<const void* const> inputs, int divisor,
                            absl::Span<void* const> outputs, Device* device,
                            DeviceStream* stream) {
  static_assert(kReducedOutputsMax <= ReduceArraysParameters::kArraysMax);
  MUSTER_CHECK(!outputs.empty() && outputs.size() <= kReducedOutputsMax);
  RETURN_IF_ERROR(CheckReducible(dtype));
  if (element_count == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const KernelFunction kernel,
      device->FindKernel(internal::reduce_arrays_image(), KernelOf(dtype)));
  ReduceArraysParameters parameters{.count = element_count,
                                    .inputs = {inputs[0]},
                                    .input_count = 1,
                                    .reduction = ReductionOf(op),
                                    .divisor = 1,
                                    .output_count = 1,
                                    .outputs = {outputs[0]}};
  LaunchShape shape;
  const int64_t block_elements = int64_t{ReduceArraysParameters::kThreads} *
                                 ReduceArraysParameters::kThreadBytes /
                                 SizeOf(dtype);
  shape.grid[0] = static_cast<uint32_t>((element_count + block_elements - 1) /
                                        block_elements);
  shape.block[0] = ReduceArraysParameters::kThreads;
  const KernelArgument arguments[] = {&parameters};
  for (size_t next = 1;;) {
    while (next < inputs.size() &&
           parameters.input_count < ReduceArraysParameters::kArraysMax) {
      parameters.inputs[parameters.input_count++] = inputs[next++];
    }
    const bool is_last = next >= inputs.size();
    if (is_last) {
      if (op == ReduceOp::kMean) parameters.divisor = divisor;
      std::copy(outputs.begin(), outputs.end(), parameters.outputs);
      parameters.output_count = static_cast<int32_t>(outputs.size());
    }
    parameters.is_aligned = AreAligned(parameters);
    RETURN_IF_ERROR(stream->Launch(kernel, shape, arguments));
    if (is_last) return absl::OkStatus();
    parameters.inputs[0] = outputs[0];
    parameters.input_count = 1;
  }
}

}  // namespace muster
