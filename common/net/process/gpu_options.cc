#include "common/net/process/gpu_options.h"

#include <string>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

ABSL_DECLARE_FLAG(int, gpu_simulated);
ABSL_DECLARE_FLAG(bool, tensor_float_32);
ABSL_DECLARE_FLAG(std::string, gpu_graphs);

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
