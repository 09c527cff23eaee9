#include "common/compute/kernels/cpu/onednn.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "absl/base/config.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::internal {
namespace {

// A kernel that would have generated code.
class FakeKernel final : public Kernel {
 public:
  explicit FakeKernel(int) {}
  absl::Status Init(const KernelSpec&) {
    ++init_count;
    return absl::OkStatus();
  }
  absl::Status Run(const KernelArguments&) override { return absl::OkStatus(); }

  static int init_count;
};
int FakeKernel::init_count = 0;

rlim_t MappedBytes() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

TEST(OneDnnTest, NoCodeIsGeneratedWithoutAddressSpaceForIt) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers need address space themselves";
#endif
  EXPECT_OK(CreateOneDnnKernel<FakeKernel>(KernelSpec(), 1));
  EXPECT_EQ(FakeKernel::init_count, 1);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit limit = {MappedBytes() + (8 << 20), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  const absl::Status status =
      CreateOneDnnKernel<FakeKernel>(KernelSpec(), 1).status();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               testing::HasSubstr("(ulimit -v)")));
  EXPECT_EQ(FakeKernel::init_count, 1);
}

}  // namespace
}  // namespace muster::internal
