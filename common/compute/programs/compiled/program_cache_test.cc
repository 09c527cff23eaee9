#include "common/compute/programs/compiled/program_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/compute/programs/compiled/program_compiler.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/file_descriptor.h"
#include "common/core/tensor/tensor.h"
#include "common/io/storage/disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string AddConstant(int number) {
  return absl::StrCat(
      "func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
      "  %0 = stablehlo.constant dense<",
      number,
      ".0> : tensor<2xf32>\n"
      "  %1 = stablehlo.add %x, %0 : tensor<2xf32>\n"
      "  return %1 : tensor<2xf32>\n}");
}

// These tests need a plugin: MUSTER_PJRT_PLUGIN is its path.
class ProgramCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const plugin = std::getenv(kPluginVariable);
    if (plugin == nullptr || *plugin == '\0') {
      GTEST_SKIP() << "MUSTER_PJRT_PLUGIN does not name a PJRT plugin for "
                      "CPUs: export $(tests/setup_tools.sh)";
    }
    ASSERT_OK_AND_ASSIGN(client_,
                         PjrtClient::Create(plugin, {.thread_count = 1}));
    folder_ = absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name());
  }

  ProgramCache Cache(const ProgramCacheOptions& options = {}) {
    return ProgramCache::Open(folder_, options).value();
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      files.push_back(entry.path());
    }
    return files;
  }

  void ExpectAdds(const ProgramCache& cache, int number) {
    ASSERT_OK_AND_ASSIGN(const auto executable,
                         cache.Compile(*client_, AddConstant(number), 1));
    ASSERT_OK_AND_ASSIGN(
        const auto x,
        client_->CopyToDevice(Tensor::FromValues<float>({2}, {1, 2})));
    ASSERT_OK_AND_ASSIGN(const auto results, executable->Execute({x.get()}));
    ASSERT_OK_AND_ASSIGN(const Tensor sum,
                         results[0]->ToHost(absl::Now() + absl::Minutes(1)));
    EXPECT_THAT(sum.flat<float>(), ElementsAre(1 + number, 2 + number));
  }

  std::shared_ptr<PjrtClient> client_;
  std::string folder_;
};

TEST_F(ProgramCacheTest, LoadsWhatWasCompiledBefore) {
  ExpectAdds(Cache(), 3);
  ASSERT_EQ(Files().size(), 1u);
  ExpectAdds(Cache(), 3);
  EXPECT_EQ(Files().size(), 1u);
  ExpectAdds(Cache(), 4);
  const std::vector<std::string> files = Files();
  ASSERT_EQ(files.size(), 2u);
  // The file is what is run: with the other one in its place, 4 becomes 3.
  const auto code = [&](size_t index) {
    return ReadFile(Disk::Real(), files[index], 1 << 20).value();
  };
  const std::string first = code(0), second = code(1);
  ASSERT_OK(ReplaceFileUnsynced(Disk::Real(), files[0], second));
  ASSERT_OK(ReplaceFileUnsynced(Disk::Real(), files[1], first));
  ASSERT_OK_AND_ASSIGN(const auto swapped,
                       Cache().Compile(*client_, AddConstant(4), 1));
  ASSERT_OK_AND_ASSIGN(
      const auto x,
      client_->CopyToDevice(Tensor::FromValues<float>({2}, {0, 0})));
  ASSERT_OK_AND_ASSIGN(const auto results, swapped->Execute({x.get()}));
  ASSERT_OK_AND_ASSIGN(const Tensor sum,
                       results[0]->ToHost(absl::Now() + absl::Minutes(1)));
  EXPECT_THAT(sum.flat<float>(), ElementsAre(3, 3));
}

TEST_F(ProgramCacheTest, DamagedAndForeignFilesAreCompiledAgain) {
  ExpectAdds(Cache(), 3);
  const std::string path = Files().at(0);
  const std::string good = ReadFile(Disk::Real(), path, 1 << 20).value();
  std::string damaged = good;
  damaged.back() ^= 1;
  for (const std::string& content :
       {damaged, std::string("short"), std::string()}) {
    ASSERT_OK(ReplaceFileUnsynced(Disk::Real(), path, content));
    ExpectAdds(Cache(), 3);
    EXPECT_EQ(ReadFile(Disk::Real(), path, 1 << 20).value().size(),
              good.size());
  }
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  ExpectAdds(Cache(), 3);
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 022, 0u) << "was replaced";
}

TEST_F(ProgramCacheTest, RefusesAFolderThatOthersMayWrite) {
  std::filesystem::create_directories(folder_);
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  const absl::Status status = ProgramCache::Open(folder_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_));
}

TEST_F(ProgramCacheTest, RemovesTheOldestFiles) {
  ExpectAdds(Cache(), 1);
  const std::string oldest = Files().at(0);
  const auto size = static_cast<int64_t>(std::filesystem::file_size(oldest));
  std::filesystem::last_write_time(
      oldest,
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const ProgramCache small = Cache({.bytes_max = size * 5 / 2});
  for (const int number : {2, 3}) ExpectAdds(small, number);
  EXPECT_EQ(Files().size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(oldest));
}

// A process holds the lock of a program while that process compiles the
// program.
TEST_F(ProgramCacheTest, WaitsForTheProcessThatCompiles) {
  ExpectAdds(Cache(), 7);
  const std::string path = Files().at(0);
  std::filesystem::remove(path);
  const std::string lock =
      std::filesystem::path(path).replace_extension(".lock");
  const FileDescriptor fd(open(lock.c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(flock(fd.get(), LOCK_EX), 0);
  constexpr absl::Duration kWait = absl::Milliseconds(50);
  const absl::Time start = absl::Now();
  ExpectAdds(Cache({.wait_max = kWait}), 7);
  EXPECT_GE(absl::Now() - start, kWait);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(ProgramCacheTest, KeepsNoLocks) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] { ExpectAdds(Cache(), 7); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Files().size(), 1u);
}

}  // namespace
}  // namespace muster::internal
