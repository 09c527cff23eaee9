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

// What the kernels made of oneDNN's primitives share.
namespace muster::internal {

// Of the whole process.
const dnnl::engine& OneDnnEngine();

//   kUnimplemented  not float32 or bfloat16
absl::StatusOr<dnnl::memory::data_type> OneDnnType(DType dtype);

// For primitives whose scratch memory is the kernel's.
dnnl::primitive_attr UserScratchpad();

// Divides a kernel's scratch memory.
class ScratchLayout {
 public:
  // Where so many bytes begin, on a cache line of their own.
  size_t Reserve(size_t size_bytes) {
    const size_t offset = size_bytes_;
    size_bytes_ += (size_bytes + 63) / 64 * 64;
    return offset;
  }
  size_t size_bytes() const { return size_bytes_; }

 private:
  size_t size_bytes_ = 0;
};

//   kUnimplemented  an operand has no elements
absl::Status CheckHasElements(const KernelSpec& spec);

// A kernel made of oneDNN's primitives: K(thread_count), then Init(spec).
//   kUnimplemented  as CheckHasElements(); or oneDNN has no such primitive
//   others          of Init()
template <typename K>
absl::StatusOr<std::unique_ptr<Kernel>> CreateOneDnnKernel(
    const KernelSpec& spec, int thread_count) {
  RETURN_IF_ERROR(CheckHasElements(spec));
  auto kernel = std::make_unique<K>(IntraOpThreadCount(thread_count));
  try {
    RETURN_IF_ERROR(kernel->Init(spec));
  } catch (const dnnl::error& error) {
    return absl::UnimplementedError(absl::StrCat("oneDNN: ", error.what()));
  }
  return kernel;
}

// A primitive with its operands, which are given anew for every run. The C++
// interface of oneDNN takes operands as a map, and so allocates for each run.
//
// Not thread-safe; several of them may share a primitive, and then run at the
// same time.
class OneDnnCall {
 public:
  OneDnnCall() = default;
  explicit OneDnnCall(const dnnl::primitive& primitive);

  // `argument` is a DNNL_ARG_*. Returns its place for SetData().
  int AddOperand(int argument, const dnnl::memory::desc& desc);

  // oneDNN does not write through the handles of its sources.
  void SetData(int operand, const void* data) {
    memories_[operand].set_data_handle(const_cast<void*>(data));
  }

  //   kInternal  oneDNN refused
  absl::Status Run();

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CPU_ONEDNN_H_
