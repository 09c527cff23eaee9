#ifndef COMMON_KERNELS_CPU_ONEDNN_H_
#define COMMON_KERNELS_CPU_ONEDNN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/dtype.h"
#include "dnnl.hpp"

// What the kernels made of oneDNN's primitives share.
namespace muster::internal {

// Of the whole process.
const dnnl::engine& OneDnnEngine();

//   kUnimplemented  not float32 or bfloat16
absl::StatusOr<dnnl::memory::data_type> OneDnnType(DType dtype);

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

#endif  // COMMON_KERNELS_CPU_ONEDNN_H_
