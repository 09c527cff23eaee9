#include "common/core/pjrt/plugin_path.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// No plugins are installed for these tests, unless they create one.
class PluginPathTest : public testing::Test {
 protected:
  PluginPathTest() {
    for (const char* const variable :
         {"PJRT_NAMES_AND_LIBRARY_PATHS", "TPU_LIBRARY_PATH", "CONDA_PREFIX"}) {
      unsetenv(variable);
    }
    environment_ = absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(environment_);
    setenv("VIRTUAL_ENV", environment_.c_str(), 1);
    setenv("HOME", environment_.c_str(), 1);
  }

  // Returns the path of the file of a package in the virtual environment.
  std::string CreatePackageFile(const std::string& name) const {
    const std::filesystem::path path =
        environment_ + "/lib/python3.11/site-packages/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "a plugin";
    return path;
  }

 private:
  std::string environment_;
};

TEST_F(PluginPathTest, AcceptsAPath) {
  EXPECT_THAT(FindPjrtPlugin("./plugin.so"), IsOkAndHolds("./plugin.so"));
}

TEST_F(PluginPathTest, PrefersTheEnvironment) {
  CreatePackageFile("lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so");
  setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "mine:/a.so,cpu:/b.so", 1);
  EXPECT_THAT(FindPjrtPlugin("cpu"), IsOkAndHolds("/b.so"));
  EXPECT_THAT(FindPjrtPlugin("mine"), IsOkAndHolds("/a.so"));
}

TEST_F(PluginPathTest, RejectsAnEntryWithoutAColon) {
  setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "cpu=/b.so", 1);
  EXPECT_THAT(FindPjrtPlugin("cpu"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"cpu=/b.so\""),
                             HasSubstr("expected NAME:PATH"))));
}

TEST_F(PluginPathTest, FindsPythonPackages) {
  const std::string second =
      CreatePackageFile("fastatomstruct_xla_cpu/libpjrt_cpu.so");
  EXPECT_THAT(FindPjrtPlugin("cpu"), IsOkAndHolds(second));
  const std::string first =
      CreatePackageFile("lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so");
  EXPECT_THAT(FindPjrtPlugin("cpu"), IsOkAndHolds(first));
}

TEST_F(PluginPathTest, FindsTheLibraryOfTpus) {
  CreatePackageFile("libtpu/libtpu.so");
  setenv("TPU_LIBRARY_PATH", "/t.so", 1);
  EXPECT_THAT(FindPjrtPlugin("tpu"), IsOkAndHolds("/t.so"));
}

TEST_F(PluginPathTest, NamesThePackageToInstall) {
  EXPECT_THAT(FindPjrtPlugin("tpu"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("pip install libtpu"),
                             HasSubstr("PJRT_NAMES_AND_LIBRARY_PATHS=tpu:"))));
  EXPECT_THAT(FindPjrtPlugin("abacus"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("expected cpu, cuda, tpu or the path")));
}

}  // namespace
}  // namespace muster
