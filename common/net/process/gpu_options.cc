#include "common/net/process/gpu_options.h"

#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

ABSL_FLAG(int, gpu_simulated, 0,
          "Computes on this many simulated GPUs, gpu:0 and on, in place of "
          "those of the machine: to test programs without a GPU. Slow.");
ABSL_FLAG(bool, tensor_float_32, false,
          "Lets GPUs round float32 operands of products and convolutions to "
          "TF32, 10 bits of mantissa, which tensor cores compute faster.");
ABSL_FLAG(
    std::string, gpu_graphs, "auto",
    "auto: steps that GPUs repeat become CUDA graphs where they can. off: "
    "each kernel is launched by itself.");

namespace muster {

absl::StatusOr<GpuOptions> ResolveGpuOptions() {
  GpuOptions options;
  options.simulated_count = absl::GetFlag(FLAGS_gpu_simulated);
  if (options.simulated_count < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gpu_simulated=", options.simulated_count,
        ": expected a number of GPUs, or 0 for those of the machine"));
  }
  options.tensor_float_32 = absl::GetFlag(FLAGS_tensor_float_32);
  const std::string graphs = absl::GetFlag(FLAGS_gpu_graphs);
  if (graphs != "auto" && graphs != "off") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--gpu_graphs=", graphs, ": expected \"auto\" or \"off\""));
  }
  options.captures_steps = graphs == "auto";
  return options;
}

}  // namespace muster
