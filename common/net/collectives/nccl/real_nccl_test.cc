#include "common/net/collectives/nccl/real_nccl.h"

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(RealNcclTest, AMissingLibraryIsNamedWithTheAlternative) {
  EXPECT_THAT(LoadNccl("libnccl_nobody_has.so.2"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("libnccl_nobody_has.so.2"),
                             HasSubstr("no NCCL 2.18.0 or later"),
                             HasSubstr("LD_LIBRARY_PATH"))));
}

TEST(RealNcclTest, ALibraryWithoutAFunctionIsNamedWithTheFunction) {
  EXPECT_THAT(LoadNccl("libm.so.6"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("libm.so.6 has no function ncclGetVersion")));
}

TEST(RealNcclTest, AnOldLibraryIsRefusedWithItsVersion) {
  EXPECT_THAT(LoadNccl("common/net/collectives/nccl/libold_nccl.so"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("is NCCL 2.17.1"),
                             HasSubstr("expected 2.18.0 or later"))));
}

TEST(RealNcclTest, TheLibraryOfTheMachineIsLoadedOnceOrSaysWhatIsMissing) {
  const absl::StatusOr<const nccl::Api*> api = RealNccl();
  if (!api.ok()) {
    EXPECT_THAT(api, StatusIs(absl::StatusCode::kUnavailable,
                              HasSubstr("libnccl.so.2")));
    GTEST_SKIP() << api.status();
  }
  EXPECT_GE((*api)->version, nccl::kVersionMin);
  EXPECT_FALSE((*api)->is_simulated);
  EXPECT_EQ(*RealNccl(), *api);
}

TEST(NcclApiTest, VersionsReadAsTheLibraryPrintsThem) {
  EXPECT_EQ(nccl::VersionString(22809), "2.28.9");
  EXPECT_EQ(nccl::VersionString(21800), "2.18.0");
}

}  // namespace
}  // namespace muster
