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

// A compiled subgraph: everything except the data is fixed. Kernels of control
// flow call it as a function. Not thread-safe.
class CompiledSubgraph {
 public:
  virtual ~CompiledSubgraph() = default;

  // Computes the results, with the seed and the offset of `step`. A result gets
  // separate memory, which is reused if the passed tensor is its sole owner, or
  // shares the memory of an argument or of another result.
  //   errors  as Kernel::Run()
  virtual absl::Status Run(absl::Span<const Tensor> arguments,
                           const KernelArguments& step,
                           std::vector<Tensor>* results) = 0;
};

// An op of which everything except the data is fixed. Plans consist of specs.
// Equivalent to: a cuDNN descriptor, a oneDNN primitive_desc.
struct KernelSpec {
  std::string op;
  Attributes attributes;
  std::vector<TensorType> inputs;  // With fully known shapes.
  std::vector<TensorType> outputs;
  // True if element i of the only output depends only on element i of each
  // input.
  bool is_elementwise = false;
  // True if a float32 kernel on converted operands may compute bfloat16 and
  // float16.
  bool widens_low_precision = true;
  // Subgraphs of control flow. All kernels of a spec share them, so only one of
  // these kernels may run at a time.
  std::vector<std::shared_ptr<CompiledSubgraph>> subgraphs = {};
};

// The data of one run.
struct KernelArguments {
  absl::Span<const Tensor* const> inputs;
  // Tensors with the types of the spec. A kernel writes every element, or
  // replaces the tensors (Kernel::AllocatesOutputs()).
  absl::Span<Tensor* const> outputs;
  // The seed of this step; a retry has the same. The only source of randomness
  // for kernels.
  uint64_t step_seed = 0;
  // The position of the first row of this step's batch in the global batch.
  int64_t example_offset = 0;
  // scratch_bytes() bytes, aligned to a cache line. The contents are lost
  // between runs. In the memory of the device if there is a stream.
  absl::Span<uint8_t> scratch;
  // If null, the kernel runs on the host, on host memory, and is done when
  // Run() returns. Otherwise operands are in the memory of the stream's device.
  // Run() enqueues the work and returns, and the operands stay valid until the
  // work is done.
  DeviceStream* stream = nullptr;
  // With a stream: a gate in the memory of the device that the kernel closes if
  // it finds an error in the data (StepGate). If null, only DataError() reports
  // the error.
  internal::DeviceGate* gate = nullptr;
};

// Computes outputs from inputs, without side effects. Created once for a plan
// and run once for each step. Not thread-safe: each plan has separate kernels.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Allocates no memory, except for outputs of strings and those of a kernel
  // with AllocatesOutputs().
  //   kInvalidArgument  an element is out of range, such as an index or a
  //                     label; the message names the element and what was
  //                     expected
  virtual absl::Status Run(const KernelArguments& arguments) = 0;

  // Returns the data error of the last Run() with a stream, equal to the error
  // that Run() returns on the host; OK if there was none. Called at most once,
  // after the work of that run is done.
  virtual absl::Status DataError() { return absl::OkStatus(); }

  // Size of the memory that a run needs in addition to its operands.
  virtual size_t scratch_bytes() const { return 0; }

  // True if Run() replaces each output tensor by one of its type whose memory
  // nothing else writes until the next Run(). Such a kernel runs on the host.
  virtual bool AllocatesOutputs() const { return false; }

  // True if output 0 may share the memory of input `input`: the kernel reads
  // element i of the input before it writes element i of the output, and not
  // after.
  virtual bool MayShareOutputWithInput(int input) const {
    (void)input;
    return false;
  }
};

// Returns a bit for each input with as many elements as output 0, of the same
// size. A kernel that processes all elements in order may share the memory of
// such an input with output 0.
uint32_t ElementwiseSharing(const KernelSpec& spec);

// The kernels of one device. Constant once it is filled, and thread-safe from
// then on.
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
