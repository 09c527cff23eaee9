#include "common/core/device/driver/cuda_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Returns the file of some library, which stands for one of NVIDIA's.
std::string SomeLibrary() {
  void* const library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
  Dl_info info = {};
  EXPECT_NE(dladdr(dlsym(library, "cos"), &info), 0);
  return std::filesystem::canonical(info.dli_fname).string();
}

class CudaLibraryTest : public ::testing::Test {
 protected:
  CudaLibraryTest()
      : folder_(
            std::filesystem::path(::testing::TempDir()) /
            ::testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  ~CudaLibraryTest() override {
    unsetenv("MUSTER_CUDA_PATH");
    unsetenv("VIRTUAL_ENV");
    std::filesystem::remove_all(folder_);
  }

  // Puts the library into a subfolder.
  void Install(const std::string& subfolder, const std::string& name) {
    std::filesystem::create_directories(folder_ / subfolder);
    std::filesystem::copy_file(SomeLibrary(), folder_ / subfolder / name);
  }

  static void ExpectWorks(const absl::StatusOr<void*>& library) {
    ASSERT_OK(library);
    const auto cosine =
        reinterpret_cast<double (*)(double)>(dlsym(*library, "cos"));
    ASSERT_NE(cosine, nullptr);
    EXPECT_EQ(cosine(0), 1);
  }

  const std::filesystem::path folder_;
};

TEST_F(CudaLibraryTest, APathIsTheOnlyPlace) {
  ExpectWorks(LoadCudaLibrary(SomeLibrary()));
  EXPECT_THAT(LoadCudaLibrary("/nowhere/libcudnn.so.9"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("/nowhere/libcudnn.so.9")));
}

TEST_F(CudaLibraryTest, TheChosenFolderIsSearchedFirst) {
  Install("lib64", "libmuster_a.so.1");
  setenv("MUSTER_CUDA_PATH", folder_.c_str(), 1);
  ExpectWorks(LoadCudaLibrary("libmuster_a.so.1"));
}

TEST_F(CudaLibraryTest, PackagesOfTheVirtualEnvironmentAreSearched) {
  Install("lib/python3.11/site-packages/nvidia/some/lib", "libmuster_b.so.1");
  setenv("VIRTUAL_ENV", folder_.c_str(), 1);
  ExpectWorks(LoadCudaLibrary("libmuster_b.so.1"));
}

TEST_F(CudaLibraryTest, AFileThatCannotBeLoadedIsNamed) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "libmuster_c.so.1") << "no library";
  setenv("MUSTER_CUDA_PATH", folder_.c_str(), 1);
  EXPECT_THAT(LoadCudaLibrary("libmuster_c.so.1"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr((folder_ / "libmuster_c.so.1").string())));
}

TEST_F(CudaLibraryTest, AMissingLibraryIsNamedWithTheAlternative) {
  EXPECT_THAT(LoadCudaLibrary("libmuster_nobody_has.so.1"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("libmuster_nobody_has.so.1"),
                             HasSubstr("MUSTER_CUDA_PATH"),
                             HasSubstr("LD_LIBRARY_PATH"))));
}

}  // namespace
}  // namespace muster
