#include "common/compute/kernels/cuda/cudnn/real_cudnn.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/compute/kernels/cuda/cudnn/cudnn_api.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(RealCudnnTest, AMissingLibraryIsNamedWithTheAlternative) {
  EXPECT_THAT(LoadCudnn("libcudnn_nobody_has.so.9"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("no cuDNN 9.0.0 or later"),
                             HasSubstr("libcudnn_nobody_has.so.9"),
                             HasSubstr("MUSTER_CUDA_PATH"))));
}

TEST(RealCudnnTest, ALibraryWithoutAFunctionIsNamedWithTheFunction) {
  EXPECT_THAT(LoadCudnn("libm.so.6"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("libm.so.6 has no function cudnnGetVersion")));
}

TEST(RealCudnnTest, TheLibraryOfTheMachineIsLoadedOnce) {
  const absl::StatusOr<const cudnn::CudnnApi*> api = RealCudnn();
  if (!api.ok()) GTEST_SKIP() << api.status();
  EXPECT_GE((*api)->version, cudnn::kVersionMin);
  EXPECT_FALSE((*api)->is_simulated);
  EXPECT_EQ(*RealCudnn(), *api);
}

}  // namespace
}  // namespace muster
