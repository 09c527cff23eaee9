#ifndef COMMON_COMPUTE_CONFORMANCE_LIBRARY_FIXTURE_H_
#define COMMON_COMPUTE_CONFORMANCE_LIBRARY_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/compute/kernels/kernel.h"
#include "common/compute/ops/testing/op_cases.h"
#include "common/core/device/device.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/device/stream.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/tensor.h"
#include "gtest/gtest.h"

namespace muster {

// A simulated GPU for tests of kernels that call libraries. The device runs
// work as late as possible.
class LibraryTest : public ::testing::Test {
 protected:
  LibraryTest() { MakeDevice(/*tensor_float_32=*/false); }

  // Replaces the device. Requires that all objects which used it are destroyed.
  void MakeDevice(bool tensor_float_32);

  // Returns device memory filled with NaN.
  std::shared_ptr<Buffer> Allocate(size_t size_bytes);
  Tensor OnDevice(const TensorType& type);
  Tensor OnDevice(const Tensor& tensor);

  // Waits for all work.
  void Drain();

  // Runs the kernel on the device, and returns its output.
  Tensor RunOnDevice(Kernel* kernel, const KernelSpec& spec,
                     const std::vector<Tensor>& inputs);

  SimulatedMachine machine_{{.memory_bytes = 64 << 20}};
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceStream> stream_;
};

// Returns the inputs of a case; every call returns the same values.
std::vector<Tensor> RandomInputs(const OpCase& c);

// Returns the output of the reference kernel for a spec.
Tensor Reference(const KernelSpec& spec, const std::vector<Tensor>& inputs);

// True if a library is expected to compute an op: all operands are floating,
// and the op has work to do.
bool IsForLibrary(const KernelSpec& spec);

// Returns the counts since `before`.
std::map<std::string, int64_t> CountedSince(
    const std::map<std::string, int64_t>& before,
    const std::map<std::string, int64_t>& now);

}  // namespace muster

#endif  // COMMON_COMPUTE_CONFORMANCE_LIBRARY_FIXTURE_H_
