#ifndef COMMON_COMPUTE_KERNELS_KERNEL_H_
#define COMMON_COMPUTE_KERNELS_KERNEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

namespace muster {

// One operation with everything about it known but the data: what a plan is
// made of. Equivalent to: a cuDNN descriptor, a oneDNN primitive_desc.
struct KernelSpec {
  std::string op;
  Attributes attributes;
  std::vector<TensorType> inputs;  // Fully known shapes.
  std::vector<TensorType> outputs;
  // Element i of the only output is a function of element i of each input.
  bool is_elementwise = false;
  // A kernel for float32 computes the op on bfloat16 too, by way of float32.
  bool widens_bfloat16 = true;
};

// The data of one run.
struct KernelArguments {
  absl::Span<const Tensor* const> inputs;
  // Allocated, with the types of the spec. A kernel writes every element.
  absl::Span<Tensor* const> outputs;
  // Names this run of the step; the same for a retry of it. The only source of
  // randomness a kernel has.
  uint64_t step_seed = 0;
  // Where the first row of this step's batch stands in the global batch.
  int64_t example_offset = 0;
  // As many bytes as the kernel asks for, on a cache line. Nobody keeps them
  // from one run to the next.
  absl::Span<uint8_t> scratch;
};

// Computes outputs from inputs and nothing else. Chosen and prepared once for a
// plan, run once for each step. Not thread-safe: a plan has its own.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Allocates nothing, except for outputs of strings.
  //   kInvalidArgument  the data is out of range (an index, a label); the
  //                     message says which element and what was expected
  virtual absl::Status Run(const KernelArguments& arguments) = 0;

  // How much memory a run needs besides its operands.
  virtual size_t scratch_bytes() const { return 0; }

  // Output 0 may lie in the memory of input `input`, because element i of the
  // input is read before element i of the output is written and never after.
  virtual bool MayShareOutputWithInput(int input) const {
    (void)input;
    return false;
  }
};

// The kernels of one device. Filled once, then constant and so thread-safe.
class KernelRegistry {
 public:
  // Of a kernel that may run on so many threads at a time. kUnimplemented says
  // that this device has no kernel for these types.
  using Factory = std::function<absl::StatusOr<std::unique_ptr<Kernel>>(
      const KernelSpec& spec, int thread_count)>;

  // A later registration of an op is tried first and falls back to the earlier
  // ones when it answers kUnimplemented.
  void Register(absl::string_view op, Factory factory);

  //   kUnimplemented  names the op and its types
  absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec,
                                                 int thread_count) const;

  std::vector<std::string> ops() const;

 private:
  absl::flat_hash_map<std::string, std::vector<Factory>> factories_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_KERNEL_H_
