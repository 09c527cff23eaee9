#ifndef TESTS_GPU_DESCRIBED_GPU_H_
#define TESTS_GPU_DESCRIBED_GPU_H_

#include <cstddef>
#include <optional>

#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/compute/kernels/cuda/cudnn/descriptor.h"
#include "common/compute/kernels/cuda/cudnn/execution_plan.h"
#include "gtest/gtest.h"

namespace muster {

// A fixture for plans that the cuDNN of this machine makes for an H100, which
// may be absent. Tests are skipped without a cuDNN that accepts descriptions of
// GPUs.
class DescribedGpuTest : public ::testing::Test {
 protected:
  void SetUp() override;

  CudnnTarget target_;

 private:
  std::optional<CudnnDescriptor> properties_;
};

}  // namespace muster

#endif  // TESTS_GPU_DESCRIBED_GPU_H_
