#ifndef COMMON_COMPUTE_KERNELS_CPU_ONEDNN_H_
#define COMMON_COMPUTE_KERNELS_CPU_ONEDNN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "dnnl.hpp"

// Helpers for kernels that use oneDNN primitives.
namespace muster::internal {

// Returns the engine of this process.
const dnnl::engine& OneDnnEngine();

// Returns the equivalent type of oneDNN.
//   kUnimplemented  neither float32 nor bfloat16
absl::StatusOr<dnnl::memory::data_type> OneDnnType(DType dtype);

// Returns the attributes of primitives that use the kernel's scratch memory.
dnnl::primitive_attr UserScratchpad();

// Lays out a kernel's scratch memory.
class ScratchLayout {
 public:
  // Reserves `size_bytes` bytes, aligned to a cache line, and returns their
  // offset.
  size_t Reserve(size_t size_bytes) {
    const size_t offset = size_bytes_;
    size_bytes_ += (size_bytes + 63) / 64 * 64;
    return offset;
  }
  size_t size_bytes() const { return size_bytes_; }

 private:
  size_t size_bytes_ = 0;
};

// Checks that all operands have elements.
//   kUnimplemented  an operand has no elements
absl::Status CheckHasElements(const KernelSpec& spec);

// Checks that there is enough memory for oneDNN to generate code: oneDNN does
// not check its allocations.
//   kResourceExhausted  address space is limited, and little is left
absl::Status CheckCanGenerateCode();

// Creates a kernel that uses oneDNN primitives: K(thread_count), then
// Init(spec).
//   kUnimplemented  as CheckHasElements(), or oneDNN has no such primitive
//   others          as CheckCanGenerateCode() and Init()
template <typename K>
absl::StatusOr<std::unique_ptr<Kernel>> CreateOneDnnKernel(
    const KernelSpec& spec, int thread_count) {
  RETURN_IF_ERROR(CheckHasElements(spec));
  RETURN_IF_ERROR(CheckCanGenerateCode());
  auto kernel = std::make_unique<K>(IntraOpThreadCount(thread_count));
  try {
    RETURN_IF_ERROR(kernel->Init(spec));
  } catch (const dnnl::error& error) {
    return absl::UnimplementedError(absl::StrCat("oneDNN: ", error.what()));
  }
  return kernel;
}

// A primitive with its operands, which are set for every run. Avoids the map of
// operands in oneDNN's C++ interface, which allocates memory for each run.
//
// Not thread-safe. Several calls may share a primitive and run concurrently.
class OneDnnCall {
 public:
  OneDnnCall() = default;
  explicit OneDnnCall(const dnnl::primitive& primitive);

  // Adds an operand and returns its index for SetData(). `argument` is a
  // DNNL_ARG_*.
  int AddOperand(int argument, const dnnl::memory::desc& desc);

  // oneDNN does not write to its source operands.
  void SetData(int operand, const void* data) {
    memories_[operand].set_data_handle(const_cast<void*>(data));
  }

  // Runs the primitive.
  //   kInternal  oneDNN returned an error
  absl::Status Run();

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CPU_ONEDNN_H_
