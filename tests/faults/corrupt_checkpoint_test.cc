// Jobs of real processes are killed and restarted after their backups were
// damaged. They resume from the newest intact backup and name the damaged
// files, or refuse to train.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_under_test.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

enum class Mode { kParameterServers, kSynchronous };

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

void WriteAll(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

void Truncate(const std::string& path) {
  fs::resize_file(path, fs::file_size(path) / 2);
}

void Empty(const std::string& path) { fs::resize_file(path, 0); }

void FlipBit(const std::string& path) {
  std::string content = ReadAll(path);
  content[content.size() / 2] ^= 4;
  WriteAll(path, content);
}

void Remove(const std::string& path) { fs::remove(path); }

// A backup folder: the two newest backups and the file that lists them.
class Backups {
 public:
  explicit Backups(std::string folder) : folder_(std::move(folder)) {
    constexpr absl::string_view kIndex = ".index";
    for (const auto& file : fs::directory_iterator(folder_)) {
      absl::string_view prefix = file.path().native();
      int number = 0;
      if (absl::ConsumeSuffix(&prefix, kIndex) &&
          absl::SimpleAtoi(prefix.substr(prefix.rfind('-') + 1), &number)) {
        prefixes_[-number] = std::string(prefix);
      }
    }
  }

  size_t count() const { return prefixes_.size(); }
  // Number of epochs that were trained before the newest backup.
  int epoch_count() const { return -prefixes_.begin()->first; }
  std::string list() const { return folder_ + "/checkpoint"; }
  // Prefix of the newest backup, or of the one `age` backups before it.
  std::string prefix(int age = 0) const {
    return std::next(prefixes_.begin(), age)->second;
  }
  std::string index(int age = 0) const { return prefix(age) + ".index"; }
  // The file with the first shard of the variables.
  std::string data(int age = 0) const {
    const std::string begin = prefix(age) + ".data-00000-";
    for (const auto& file : fs::directory_iterator(folder_)) {
      if (file.path().native().starts_with(begin)) return file.path();
    }
    ADD_FAILURE() << begin << " does not exist";
    return "";
  }

 private:
  const std::string folder_;
  std::map<int, std::string> prefixes_;  // Newest first.
};

// One way to damage a file, and the expected backup.
struct Damage {
  enum class Outcome { kPrevious, kNewest };

  std::string name;
  std::function<std::string(const Backups&)> file;
  void (*apply)(const std::string& path);
  Outcome outcome;
};

const std::vector<Damage>& Damages() {
  static const auto* const damages = [] {
    const auto index = [](const Backups& b) { return b.index(); };
    const auto data = [](const Backups& b) { return b.data(); };
    const auto list = [](const Backups& b) { return b.list(); };
    constexpr auto kPrevious = Damage::Outcome::kPrevious;
    constexpr auto kNewest = Damage::Outcome::kNewest;
    return new std::vector<Damage>{
        {"TruncatedIndex", index, Truncate, kPrevious},
        {"EmptyIndex", index, Empty, kPrevious},
        {"ChangedIndex", index, FlipBit, kPrevious},
        {"MissingIndex", index, Remove, kPrevious},
        {"TruncatedData", data, Truncate, kPrevious},
        {"EmptyData", data, Empty, kPrevious},
        {"ChangedData", data, FlipBit, kPrevious},
        {"MissingData", data, Remove, kPrevious},
        // The list is not needed: the other files show which backups exist.
        {"TruncatedList", list, Truncate, kNewest},
        {"EmptyList", list, Empty, kNewest},
        {"ChangedList", list, FlipBit, kNewest},
        {"MissingList", list, Remove, kNewest},
    };
  }();
  return *damages;
}

class CorruptCheckpointTest : public testing::Test {
 protected:
  // Trains a model of `units` until it has backups, and kills all tasks.
  // Returns the run directory. Each job runs only once.
  static std::string KilledRun(Mode mode, int units = 32,
                               const std::string& seed = "1") {
    static auto* const runs = new std::map<std::string, std::string>;
    const std::string name =
        absl::StrCat("killed_", static_cast<int>(mode), "_", units, "_", seed);
    std::string& run_dir = (*runs)[name];
    if (!run_dir.empty()) return run_dir;
    const auto cluster = Cluster(mode, name);
    fs::remove_all(cluster->run_dir());
    cluster->set_epochs(100000);
    EXPECT_OK(cluster->StartAll({"--set", absl::StrCat("units=", units),
                                 absl::StrCat("--seed=", seed)}));
    EXPECT_OK(cluster->process(Leader(mode)).AwaitLine("Epoch 5/"));
    for (const TaskId& task : cluster->cluster().Members()) {
      cluster->process(task).SendSignal(SIGKILL);
      EXPECT_OK(cluster->process(task).AwaitEnd());
    }
    return run_dir = cluster->run_dir();
  }

  static std::unique_ptr<ClusterUnderTest> Cluster(Mode mode,
                                                   const std::string& name) {
    auto cluster = ClusterUnderTest::Create(
        name, 2, mode == Mode::kParameterServers ? 2 : 0);
    EXPECT_OK(cluster);
    (*cluster)->set_job("tests/faults/resuming_digits.job");
    return *std::move(cluster);
  }

  // The task that reads the backups.
  static TaskId Leader(Mode mode) {
    return mode == Mode::kParameterServers ? ClusterUnderTest::kChief
                                           : TaskId{TaskType::kWorker, 0};
  }

  // Prepares a job that resumes from a copy of the files of a killed job.
  Backups Copy(Mode mode, const std::string& killed_run) {
    mode_ = mode;
    cluster_ = Cluster(mode, "resumed");
    fs::remove_all(cluster_->run_dir());
    fs::copy(killed_run, cluster_->run_dir(), fs::copy_options::recursive);
    Backups backups(cluster_->run_dir() + "/backup");
    EXPECT_EQ(backups.count(), 2);
    // Independent of the epoch in which the job was killed.
    epochs_ = backups.epoch_count() + 3;
    cluster_->set_epochs(epochs_);
    return backups;
  }

  // Starts the job again. Returns the output of its leader.
  std::string Resume(bool succeeds) {
    EXPECT_OK(cluster_->StartAll());
    for (const TaskId& task : cluster_->cluster().Members()) {
      const auto end = cluster_->process(task).AwaitEnd();
      EXPECT_OK(end);
      if (end.ok()) {
        EXPECT_EQ(end->ShellCode() == 0, succeeds)
            << task << " wrote:\n"
            << cluster_->process(task).output();
      }
    }
    return cluster_->process(Leader(mode_)).output();
  }

  Mode mode_ = Mode::kSynchronous;
  int epochs_ = 0;  // Epochs of the restarted job.
  std::unique_ptr<ClusterUnderTest> cluster_;
};

class DamagedFileTest
    : public CorruptCheckpointTest,
      public testing::WithParamInterface<std::tuple<Mode, Damage>> {};

TEST_P(DamagedFileTest, ADamagedFileIsNamedAndSkipped) {
  const auto& [mode, damage] = GetParam();
  const Backups backups = Copy(mode, KilledRun(mode));
  const std::string path = damage.file(backups);
  damage.apply(path);
  const std::string output = Resume(/*succeeds=*/true);
  const int age = damage.outcome == Damage::Outcome::kPrevious ? 1 : 0;
  EXPECT_THAT(
      output,
      AllOf(HasSubstr(path), HasSubstr("Resuming in epoch"),
            HasSubstr(absl::StrCat("from ", backups.prefix(age), "\n"))));
  EXPECT_THAT(output, HasSubstr(absl::StrCat("Epoch ", epochs_, "/", epochs_)));
}

std::string DamageName(
    const testing::TestParamInfo<DamagedFileTest::ParamType>& info) {
  const auto& [mode, damage] = info.param;
  return absl::StrCat(damage.name, mode == Mode::kParameterServers
                                       ? "OfParameterServers"
                                       : "OfSynchronousWorkers");
}

INSTANTIATE_TEST_SUITE_P(
    Damages, DamagedFileTest,
    testing::Combine(testing::Values(Mode::kParameterServers,
                                     Mode::kSynchronous),
                     testing::ValuesIn(Damages())),
    DamageName);

class RefusedBackupsTest : public CorruptCheckpointTest,
                           public testing::WithParamInterface<Mode> {};

TEST_P(RefusedBackupsTest, WithoutAnIntactBackupTheJobSaysWhyAndDoesNotTrain) {
  const Backups backups = Copy(GetParam(), KilledRun(GetParam()));
  FlipBit(backups.data(0));
  Truncate(backups.index(1));
  const std::string output = Resume(/*succeeds=*/false);
  EXPECT_THAT(output,
              AllOf(HasSubstr("no checkpoint in "), HasSubstr(backups.data(0)),
                    HasSubstr("offset "), HasSubstr(backups.index(1))));
  EXPECT_THAT(output, Not(HasSubstr("Epoch 1/")));
}

TEST_P(RefusedBackupsTest, BackupsOfAnotherModelAreRefused) {
  Copy(GetParam(), KilledRun(GetParam(), /*units=*/24));
  const std::string output = Resume(/*succeeds=*/false);
  EXPECT_THAT(output,
              AllOf(HasSubstr("dense/"), HasSubstr("24"), HasSubstr("32")));
  EXPECT_THAT(output, Not(HasSubstr("Epoch 1/")));
}

// The data of another run of the same model, so that all sizes match.
TEST_P(RefusedBackupsTest, DataOfAnotherRunIsNotMixedIn) {
  const std::string other = KilledRun(GetParam(), 32, /*seed=*/"2");
  const Backups backups = Copy(GetParam(), KilledRun(GetParam()));
  const std::string data = backups.data();
  fs::copy_file(Backups(other + "/backup").data(), data,
                fs::copy_options::overwrite_existing);
  const std::string output = Resume(/*succeeds=*/true);
  EXPECT_THAT(output,
              AllOf(HasSubstr(data),
                    HasSubstr(absl::StrCat("from ", backups.prefix(1), "\n"))));
}

INSTANTIATE_TEST_SUITE_P(Modes, RefusedBackupsTest,
                         testing::Values(Mode::kParameterServers,
                                         Mode::kSynchronous),
                         [](const testing::TestParamInfo<Mode>& info) {
                           return info.param == Mode::kParameterServers
                                      ? "ParameterServers"
                                      : "SynchronousWorkers";
                         });

}  // namespace
}  // namespace muster
