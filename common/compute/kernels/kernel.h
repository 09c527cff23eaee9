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

class DeviceStream;
namespace internal {
struct DeviceGate;
}

struct KernelArguments;

// A subgraph with everything known but the data: a function that kernels of
// control flow call. Not thread-safe.
class CompiledSubgraph {
 public:
  virtual ~CompiledSubgraph() = default;

  // Computes the results. Seeds and offsets are those of `step`. `results` get
  // memory of their own, which is reused if they are its sole owners, or share
  // the memory of an argument or of another result.
  //   errors  as Kernel::Run()
  virtual absl::Status Run(absl::Span<const Tensor> arguments,
                           const KernelArguments& step,
                           std::vector<Tensor>* results) = 0;
};

// An op with everything known but the data. Plans consist of specs. Equivalent
// to: a cuDNN descriptor, a oneDNN primitive_desc.
struct KernelSpec {
  std::string op;
  Attributes attributes;
  std::vector<TensorType> inputs;  // With fully known shapes.
  std::vector<TensorType> outputs;
  // True if element i of the only output depends only on element i of each
  // input.
  bool is_elementwise = false;
  // True if bfloat16 and float16 are computed by a float32 kernel on converted
  // operands.
  bool widens_low_precision = true;
  // Of control flow. Kernels that are created from one spec share them, so only
  // one of these kernels may run.
  std::vector<std::shared_ptr<CompiledSubgraph>> subgraphs = {};
};

// The data of one run.
struct KernelArguments {
  absl::Span<const Tensor* const> inputs;
  // Allocated with the types of the spec. A kernel writes every element.
  absl::Span<Tensor* const> outputs;
  // The seed of this step; the same for a retry. The only source of randomness
  // for kernels.
  uint64_t step_seed = 0;
  // The position of the first row of this step's batch in the global batch.
  int64_t example_offset = 0;
  // scratch_bytes() bytes, aligned to a cache line. The contents are lost
  // between runs. In the memory of the device if there is a stream.
  absl::Span<uint8_t> scratch;
  // Null: the kernel runs on the host, on host memory, and is done when Run()
  // returns. Otherwise operands are in the memory of the stream's device, Run()
  // enqueues the work and returns, and the operands stay valid until it is
  // done.
  DeviceStream* stream = nullptr;
  // With a stream: closed by the kernel if it finds an error in the data, as
  // StepGate says; in the memory of the device. Null: the error is reported by
  // DataError() only.
  internal::DeviceGate* gate = nullptr;
};

// Computes outputs from inputs, without side effects. Created once for a plan
// and run once for each step. Not thread-safe: each plan has its own.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Allocates no memory, except for outputs of strings.
  //   kInvalidArgument  an element is out of range, such as an index or a
  //                     label; the message names the element and what was
  //                     expected
  virtual absl::Status Run(const KernelArguments& arguments) = 0;

  // Returns the data error that the last Run() with a stream found, as Run()
  // returns it on the host; OK if there was none. Called after the work of that
  // run is done, at most once.
  virtual absl::Status DataError() { return absl::OkStatus(); }

  // The memory that a run needs besides its operands.
  virtual size_t scratch_bytes() const { return 0; }

  // True if output 0 may share the memory of input `input`: the kernel reads
  // element i of the input before it writes element i of the output, and not
  // after.
  virtual bool MayShareOutputWithInput(int input) const {
    (void)input;
    return false;
  }
};

// Returns the bits of the inputs whose elements have the number and size of
// those of output 0: what a kernel that processes all elements in order may
// share with it.
uint32_t ElementwiseSharing(const KernelSpec& spec);

// The kernels of one device. Filled once, then constant and therefore
// thread-safe.
class KernelRegistry {
 public:
  // Creates a kernel that may use `thread_count` threads. Returns
  // kUnimplemented if it does not support the types.
  using Factory = std::function<absl::StatusOr<std::unique_ptr<Kernel>>(
      const KernelSpec& spec, int thread_count)>;

  // Registers a factory. Later registrations of an op are tried first; if one
  // returns kUnimplemented, the next is tried.
  void Register(absl::string_view op, Factory factory);

  // Creates a kernel.
  //   kUnimplemented  no kernel supports the spec; the message names the op and
  //                   its types
  absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelSpec& spec,
                                                 int thread_count) const;

  std::vector<std::string> ops() const;

 private:
  absl::flat_hash_map<std::string, std::vector<Factory>> factories_;
};

}  // namespace muster

#endif  // COMMON_COMPUTE_KERNELS_KERNEL_H_
