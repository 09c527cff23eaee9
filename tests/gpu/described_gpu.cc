#include "tests/gpu/described_gpu.h"

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/compute/kernels/cuda/cudnn/real_cudnn.h"
#include "common/core/base/testing/status_matchers.h"

namespace muster {
namespace {

// The oldest version that accepts descriptions of GPUs.
constexpr size_t kDescribingVersion = 90800;

}  // namespace

void DescribedGpuTest::SetUp() {
  const absl::StatusOr<const cudnn::CudnnApi*> api = RealCudnn();
  if (!api.ok()) GTEST_SKIP() << api.status();
  if ((*api)->version < kDescribingVersion) {
    GTEST_SKIP() << "cuDNN " << cudnn::VersionString((*api)->version)
                 << " takes no descriptions of GPUs: "
                 << cudnn::VersionString(kDescribingVersion) << " does";
  }
  target_.api = *api;
  std::ifstream file("tests/gpu/h100.json");
  const std::string json((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  auto properties =
      CudnnDescriptor::Create(*api, cudnn::DescriptorType::kDeviceProperties);
  ASSERT_OK(properties);
  properties->SetList<char>(cudnn::AttributeName::kDevicePropertiesJson, json);
  ASSERT_OK(properties->Finalize());
  properties_ = *std::move(properties);
  target_.device_properties = &*properties_;
}

}  // namespace muster
