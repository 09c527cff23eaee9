#include "common/io/storage/disk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/buffer.h"
#include "common/io/storage/private_file.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Span<const uint8_t> Bytes(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()),
                             text.size());
}

// Tests the contract of Disk.
void ExerciseDisk(Disk* disk, const std::string& folder) {
  const std::string path = JoinPath(folder, "file");
  ASSERT_OK(disk->MakeFolder(folder));
  ASSERT_OK(disk->MakeFolder(folder));
  EXPECT_THAT(disk->Open(path),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
  EXPECT_THAT(disk->Remove(path), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(disk->Rename(path, path + "_2"),
              StatusIs(absl::StatusCode::kNotFound));
  {
    ASSERT_OK_AND_ASSIGN(const auto file, disk->Create(path));
    ASSERT_OK(file->Append(Bytes("first ")));
    ASSERT_OK(file->Append({}));
    ASSERT_OK(file->Append(Bytes("second")));
    ASSERT_OK(file->Sync());
  }
  ASSERT_OK_AND_ASSIGN(const auto file, disk->Open(path));
  EXPECT_EQ(file->size_bytes(), 12);
  std::string word(6, ' ');
  const auto buffer =
      absl::MakeSpan(reinterpret_cast<uint8_t*>(word.data()), word.size());
  ASSERT_OK(file->ReadAt(6, buffer));
  EXPECT_EQ(word, "second");
  EXPECT_THAT(file->ReadAt(7, buffer),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
  EXPECT_THAT(ReadFile(disk, path, 12), IsOkAndHolds("first second"));
  EXPECT_THAT(ReadFile(disk, path, 11),
              StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_OK(ReplaceFile(disk, path, "other"));
  EXPECT_THAT(ReadFile(disk, path, 12), IsOkAndHolds("other"));
  // An open file keeps its contents.
  EXPECT_EQ(file->size_bytes(), 12);
  ASSERT_OK(file->ReadAt(6, buffer));
  ASSERT_OK(disk->Rename(path, path + "_2"));
  EXPECT_THAT(disk->List(folder), IsOkAndHolds(ElementsAre("file_2")));
  ASSERT_OK(disk->Remove(path + "_2"));
  ASSERT_OK(disk->SyncFolder(folder));
  EXPECT_THAT(disk->List(folder), IsOkAndHolds(IsEmpty()));
}

// Tests CreateExclusive() and AppendFile() in an empty folder.
void ExerciseGrowth(Disk* disk, const std::string& folder) {
  const std::string path = JoinPath(folder, "journal");
  ASSERT_OK(disk->MakeFolder(folder));
  EXPECT_THAT(disk->AppendFile(path),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
  ASSERT_OK(disk->CreateExclusive(path, "one "));
  EXPECT_THAT(disk->CreateExclusive(path, "another"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(path)));
  EXPECT_THAT(disk->List(folder), IsOkAndHolds(ElementsAre("journal")));
  {
    ASSERT_OK_AND_ASSIGN(const auto file, disk->AppendFile(path));
    EXPECT_EQ(file->size_bytes(), 4);
    ASSERT_OK(file->Append(Bytes("two ")));
    ASSERT_OK(file->Sync());
    ASSERT_OK(file->Append({}));
    ASSERT_OK(file->Append(Bytes("three ")));
    EXPECT_EQ(file->size_bytes(), 14);
    EXPECT_THAT(ReadFile(disk, path, 100), IsOkAndHolds("one two three "));
    ASSERT_OK(file->Sync());
    ASSERT_OK(file->Sync());
  }
  ASSERT_OK_AND_ASSIGN(const auto file, disk->AppendFile(path));
  EXPECT_EQ(file->size_bytes(), 14);
  ASSERT_OK(file->Append(Bytes("four")));
  EXPECT_THAT(ReadFile(disk, path, 100), IsOkAndHolds("one two three four"));
  // A renamed file is no obstacle.
  ASSERT_OK(disk->Rename(path, path + "_1"));
  ASSERT_OK(disk->CreateExclusive(path, ""));
  EXPECT_THAT(ReadFile(disk, path, 100), IsOkAndHolds(""));
  ASSERT_OK(disk->Remove(path));
  ASSERT_OK(disk->Remove(path + "_1"));
}

TEST(PrivateFileTest, ReplacesAFileThatAllUsersMayRead) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/private");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string path = folder + "/key";
  ASSERT_OK(ReplaceFile(Disk::Real(), path, "open"));
  ASSERT_OK(ReplacePrivateFile(path, "secret"));
  EXPECT_THAT(ReadFile(Disk::Real(), path, 100), IsOkAndHolds("secret"));
  EXPECT_EQ(
      std::filesystem::status(path).permissions(),
      std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_THAT(Disk::Real()->List(folder),
              IsOkAndHolds(testing::ElementsAre("key")));
  EXPECT_THAT(
      ReplacePrivateFile(folder + "/missing/key", "secret"),
      StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("missing/key")));
}

TEST(DiskTest, RealAndSimulatedDiskBehaveTheSame) {
  SimulatedDisk simulated;
  ExerciseDisk(&simulated, "folder/inner");
  ExerciseDisk(Disk::Real(), testing::TempDir() + "disk_test/inner/most");
  ExerciseGrowth(&simulated, "folder/growth");
  ExerciseGrowth(Disk::Real(), testing::TempDir() + "disk_test/growth");
}

TEST(DiskTest, OneOfManyCreatesAFile) {
  const std::string folder = testing::TempDir() + "race";
  ASSERT_OK(Disk::Real()->MakeFolder(folder));
  constexpr int kCallers = 8;
  for (int round = 0; round < 20; ++round) {
    const std::string path = absl::StrCat(folder, "/view-", round);
    std::vector<absl::Status> statuses(kCallers);
    std::vector<std::string> seen(kCallers);
    std::vector<std::thread> threads;
    for (int i = 0; i < kCallers; ++i) {
      threads.emplace_back([&, i] {
        statuses[i] =
            Disk::Real()->CreateExclusive(path, absl::StrCat("caller ", i));
        seen[i] = ReadFile(Disk::Real(), path, 100).value();
      });
    }
    for (std::thread& thread : threads) thread.join();
    int winner_count = 0;
    for (int i = 0; i < kCallers; ++i) {
      // A caller that loses finds the whole content of the winner.
      EXPECT_EQ(seen[i], seen[0]);
      if (!statuses[i].ok()) {
        EXPECT_THAT(statuses[i], StatusIs(absl::StatusCode::kAlreadyExists));
        continue;
      }
      ++winner_count;
      EXPECT_EQ(seen[i], absl::StrCat("caller ", i));
    }
    EXPECT_EQ(winner_count, 1);
    ASSERT_OK(Disk::Real()->Remove(path));
  }
  EXPECT_THAT(Disk::Real()->List(folder), IsOkAndHolds(IsEmpty()));
}

// Appends pieces of all sizes, aligned and unaligned, and expects the file to
// hold what was appended.
void ExercisePieces(const std::string& path) {
  constexpr size_t kPage = WritableFile::kPageBytes;
  const auto source = Buffer::Allocate(8 << 20);
  for (size_t i = 0; i < source->size_bytes(); ++i) {
    source->data()[i] = static_cast<uint8_t>(i * 2654435761u >> 13);
  }
  std::string expected;
  ASSERT_OK_AND_ASSIGN(auto file, Disk::Real()->Create(path));
  size_t at = 0;
  for (const size_t size :
       {size_t{1} << 20, 300 * kPage, size_t{12345}, 2 * kPage - 12345 % kPage,
        100 * kPage, 64 * kPage + 7, size_t{3} << 20, size_t{1}}) {
    ASSERT_OK(file->Append({source->data() + at, size}));
    expected.append(reinterpret_cast<const char*>(source->data()) + at, size);
    at += size;
  }
  ASSERT_OK(file->Sync());
  ASSERT_OK_AND_ASSIGN(const std::string content,
                       ReadFile(Disk::Real(), path, 16 << 20));
  EXPECT_TRUE(content == expected);
  ASSERT_OK(Disk::Real()->Remove(path));
}

TEST(DiskTest, FileContainsAppendedBytes) {
  ExercisePieces(testing::TempDir() + "pieces");
  // tmpfs cannot bypass the page cache.
  ExercisePieces(absl::StrCat("/dev/shm/muster_disk_test_", getpid()));
}

// Returns the number of the file's pages in the page cache.
int64_t PagesInMemory(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY);
  const off_t size = lseek(descriptor, 0, SEEK_END);
  void* const map = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  std::vector<unsigned char> pages(size / WritableFile::kPageBytes);
  EXPECT_EQ(mincore(map, size, pages.data()), 0);
  munmap(map, size);
  close(descriptor);
  return std::count_if(pages.begin(), pages.end(),
                       [](unsigned char page) { return page & 1; });
}

TEST(DiskTest, ManyPagesBypassThePageCache) {
  const std::string path = testing::TempDir() + "pages";
  const auto pages = Buffer::Allocate(4 << 20);
  std::memset(pages->data(), 1, pages->size_bytes());
  const int direct =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0644);
  const bool is_written =
      direct >= 0 && write(direct, pages->data(), pages->size_bytes()) > 0;
  if (direct >= 0) close(direct);
  if (!is_written || PagesInMemory(path) > 0) {
    GTEST_SKIP()
        << "this file system does not support bypassing the page cache";
  }
  ASSERT_OK_AND_ASSIGN(const auto file, Disk::Real()->Create(path));
  ASSERT_OK(file->Append({pages->data(), pages->size_bytes()}));
  ASSERT_OK(file->Sync());
  EXPECT_EQ(PagesInMemory(path), 0);
}

TEST(DiskTest, SplitsAndJoinsPaths) {
  EXPECT_EQ(FolderOf("a/b/c"), "a/b");
  EXPECT_EQ(FolderOf("/a"), "/");
  EXPECT_EQ(FolderOf("a"), ".");
  EXPECT_EQ(BaseName("a/b"), "b");
  EXPECT_EQ(JoinPath(".", "b"), "b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
}

TEST(DiskTest, RejectsWhatIsNotARegularFile) {
  const std::string folder = testing::TempDir() + "odd";
  ASSERT_OK(Disk::Real()->MakeFolder(folder));
  EXPECT_THAT(Disk::Real()->Open(folder),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a regular file")));
  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(Disk::Real()->Open(pipe),
              StatusIs(absl::StatusCode::kInvalidArgument));
  for (const std::string& odd : {pipe, std::string("/dev/full")}) {
    EXPECT_FALSE(Disk::Real()->AppendFile(odd).ok());
  }
  ASSERT_OK(ReplaceFile(Disk::Real(), folder + "/file", ""));
  EXPECT_THAT(
      Disk::Real()->MakeFolder(folder + "/file"),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("odd/file")))
      << "a file is where the folder should be";
}

// /dev/full is a device that is always full.
TEST(DiskTest, NoSpaceIsResourceExhausted) {
  ASSERT_OK_AND_ASSIGN(const auto file, Disk::Real()->Create("/dev/full"));
  EXPECT_THAT(
      file->Append(Bytes("x")),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("/dev/full")));
}

TEST(DiskTest, FileSizeLimitIsResourceExhausted) {
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = ReplaceFile(
      Disk::Real(), testing::TempDir() + "long", std::string(10000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("long.tmp")));
  EXPECT_THAT(Disk::Real()->Open(testing::TempDir() + "long.tmp"),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(DiskTest, AFileThatCouldNotGrowStaysAsItIs) {
  const std::string path = testing::TempDir() + "limited";
  ASSERT_OK(ReplaceFile(Disk::Real(), path, std::string(4000, 'x')));
  ASSERT_OK_AND_ASSIGN(const auto file, Disk::Real()->AppendFile(path));
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = file->Append(Bytes(std::string(200, 'y')));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("limited")));
  EXPECT_EQ(file->Append(Bytes("z")), status);
  EXPECT_EQ(file->Sync(), status);
  ASSERT_OK_AND_ASSIGN(const std::string content,
                       ReadFile(Disk::Real(), path, 10000));
  EXPECT_EQ(content, std::string(4000, 'x') + std::string(96, 'y'));
}

TEST(SimulatedDiskTest, PowerFailureLosesUnsyncedData) {
  using Crash = SimulatedDisk::Crash;
  SimulatedDisk disk;
  ASSERT_OK_AND_ASSIGN(const auto file, disk.Create("a/f"));
  ASSERT_OK(file->Append(Bytes("kept")));
  EXPECT_THAT(disk.After(Crash::kUnsyncedLost)->Paths(), IsEmpty());
  ASSERT_OK(file->Sync());
  EXPECT_THAT(disk.After(Crash::kUnsyncedLost)->Paths(), IsEmpty());
  ASSERT_OK(disk.SyncFolder("a"));
  ASSERT_OK(file->Append(Bytes("lost")));
  EXPECT_EQ(disk.After(Crash::kUnsyncedLost)->Get("a/f"), "kept");
  EXPECT_EQ(disk.After(Crash::kProcessKilled)->Get("a/f"), "keptlost");
  ASSERT_OK(disk.Rename("a/f", "a/g"));
  EXPECT_THAT(disk.After(Crash::kUnsyncedLost)->Paths(), ElementsAre("a/f"));
  bool is_seen[2] = {};
  for (int seed = 0; seed < 100; ++seed) {
    const auto after = disk.After(Crash::kUnsyncedAtRandom, seed);
    ASSERT_EQ(after->Paths().size(), 1u);
    is_seen[after->Paths()[0] == "a/g"] = true;
    EXPECT_THAT(after->Get(after->Paths()[0]), testing::StartsWith("kept"));
  }
  EXPECT_TRUE(is_seen[0] && is_seen[1]);
}

TEST(SimulatedDiskTest, PowerFailureTearsWhatWasAppendedSinceTheLastSync) {
  using Crash = SimulatedDisk::Crash;
  SimulatedDisk disk;
  ASSERT_OK(disk.CreateExclusive("a/f", "0000"));
  ASSERT_OK_AND_ASSIGN(const auto file, disk.AppendFile("a/f"));
  ASSERT_OK(file->Append(Bytes("1111")));
  ASSERT_OK(file->Sync());
  ASSERT_OK(file->Append(Bytes("2222")));
  ASSERT_OK(file->Append(Bytes("3333")));
  EXPECT_EQ(disk.After(Crash::kUnsyncedLost)->Get("a/f"), "00001111");
  EXPECT_EQ(disk.After(Crash::kProcessKilled)->Get("a/f"), "0000111122223333");
  std::set<std::string> tails;
  for (int seed = 0; seed < 1000; ++seed) {
    const std::string content =
        disk.After(Crash::kUnsyncedAtRandom, seed)->Get("a/f");
    ASSERT_THAT(content, testing::StartsWith("00001111"));
    tails.insert(content.substr(8));
  }
  const std::string zeros(4, '\0');
  EXPECT_THAT(tails, testing::IsSupersetOf(
                         {std::string(), std::string("2222"),
                          std::string("22223333"), zeros + "3333",
                          "22" + zeros.substr(2) + "3333", "2222" + zeros}));
}

TEST(SimulatedDiskTest, AnExclusiveNameIsDurable) {
  using Crash = SimulatedDisk::Crash;
  SimulatedDisk disk;
  ASSERT_OK(disk.CreateExclusive("a/1", "first"));
  EXPECT_EQ(disk.After(Crash::kUnsyncedLost)->Get("a/1"), "first");
  // Fails after the name was made and before it is durable.
  disk.FailOperation(disk.operation_count() + 2,
                     absl::InternalError("I/O error"));
  EXPECT_THAT(disk.CreateExclusive("a/2", "second"),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(disk.Get("a/2"), "second");
  EXPECT_THAT(disk.After(Crash::kUnsyncedLost)->Paths(), ElementsAre("a/1"));
}

TEST(SimulatedDiskTest, FailsRequestedOperations) {
  SimulatedDisk disk;
  disk.FailOperation(2, absl::InternalError("I/O error"));
  disk.StopAtOperation(4);
  ASSERT_OK_AND_ASSIGN(const auto file, disk.Create("f"));
  EXPECT_THAT(file->Append(Bytes("1234")),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(disk.Get("f"), "12");
  EXPECT_OK(file->Append(Bytes("56")));
  EXPECT_THAT(file->Sync(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(disk.Remove("f"), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(disk.CreateExclusive("g", ""),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(SimulatedDiskTest, AFileThatCouldNotGrowStaysAsItIs) {
  SimulatedDisk disk;
  disk.Set("f", "1234");
  ASSERT_OK_AND_ASSIGN(const auto file, disk.AppendFile("f"));
  disk.FailOperation(1, absl::InternalError("I/O error"));
  EXPECT_THAT(file->Append(Bytes("5678")),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(file->Append(Bytes("9")), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(file->Sync(), StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(disk.Get("f"), "123456");
}

}  // namespace
}  // namespace muster
