#ifndef COMMON_COMPUTE_CONFORMANCE_KERNEL_COMPARISON_H_
#define COMMON_COMPUTE_CONFORMANCE_KERNEL_COMPARISON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/graph/graph.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/core/base/random.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/tensor.h"

// Runs the kernels of a device for conformance tests and compares results.
namespace muster {

Tensor RandomTensor(const OpInput& input, RandomStream* random);

// Expects the same types, and elements that differ at most by rounding.
void ExpectClose(const Tensor& got, const Tensor& wanted);
// As above, for elements that were computed in the dtype `computed` and then
// converted.
void ExpectClose(const Tensor& got, const Tensor& wanted, DType computed);

std::vector<const Tensor*> Pointers(const std::vector<Tensor>& tensors);

// Runs a kernel into new memory filled with NaN, or into `shared`.
std::vector<Tensor> RunKernel(Kernel* kernel, const KernelSpec& spec,
                              const std::vector<Tensor>& inputs,
                              const Tensor* shared = nullptr);

// Returns the spec that a plan would create.
absl::StatusOr<KernelSpec> SpecOf(const std::string& op,
                                  const Attributes& attributes,
                                  const std::vector<Tensor>& inputs,
                                  const Subgraphs& subgraphs = {});

// Expects that the kernel of `kernels` returns the results of the reference
// kernel, also when its output shares the memory of an input that it may
// overwrite.
void ExpectConforms(const KernelRegistry& kernels, const OpCase& c,
                    int thread_count = 1);

}  // namespace muster

#endif  // COMMON_COMPUTE_CONFORMANCE_KERNEL_COMPARISON_H_
