#include "common/dataset/file_cache.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/codec/dataset_codec.h"
#include "common/dataset/dataset.h"
#include "common/dataset/testing/test_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A temporary folder of the test.
std::string MakeFolder(const std::string& name) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/", name);
  mkdir(folder.c_str(), 0777);
  return folder;
}

std::vector<std::string> List(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const directory = opendir(folder.c_str());
  while (const dirent* const entry = readdir(directory)) {
    if (entry->d_name[0] != '.') names.push_back(entry->d_name);
  }
  closedir(directory);
  return names;
}

// 0, 1, ... with a string each; `*drawn_count` counts the elements drawn.
Dataset Counted(int64_t count, std::atomic<int>* drawn_count) {
  return Dataset::Range(count).MapElements(
      [drawn_count](Element element) -> absl::StatusOr<Element> {
        ++*drawn_count;
        element.push_back(Tensor::FromValues<std::string>({2}, {"a", ""}));
        return element;
      },
      {{DType::kInt64, Shape()}, {DType::kString, Shape({2})}});
}

absl::Status FirstError(const Dataset& dataset) {
  auto iterator = dataset.MakeIterator();
  if (!iterator.ok()) return iterator.status();
  Element element;
  while (true) {
    const auto more = (*iterator)->Next(&element);
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
  }
}

TEST(FileCacheTest, TheFirstPassIsKeptForLaterProcesses) {
  const std::string folder = MakeFolder("kept");
  for (int process = 0; process < 2; ++process) {
    std::atomic<int> drawn_count = 0;
    const Dataset cached = Counted(5, &drawn_count).Cache(folder + "/cache");
    for (int pass = 0; pass < 2; ++pass) {
      EXPECT_THAT(Numbers(cached), ElementsAre(0, 1, 2, 3, 4));
    }
    EXPECT_EQ(Elements(cached)[3][1].flat<std::string>()[0], "a");
    EXPECT_EQ(drawn_count, process == 0 ? 5 : 0);
  }
  EXPECT_THAT(List(folder), ElementsAre("cache"));
}

TEST(FileCacheTest, AnAbortedPassLeavesNoFile) {
  const std::string folder = MakeFolder("given_up");
  std::atomic<int> drawn_count = 0;
  const Dataset cached = Counted(5, &drawn_count).Cache(folder + "/cache");
  {
    ASSERT_OK_AND_ASSIGN(const auto iterator, cached.MakeIterator());
    Element element;
    ASSERT_THAT(iterator->Next(&element), IsOkAndHolds(true));
    EXPECT_THAT(List(folder), SizeIs(1));
  }
  EXPECT_THAT(List(folder), IsEmpty());
  EXPECT_THAT(Numbers(cached), SizeIs(5));
}

TEST(FileCacheTest, EveryDamageIsReported) {
  const std::string folder = MakeFolder("damaged");
  const std::string path = folder + "/cache";
  const Dataset cached = Dataset::Range(4).Cache(path);
  EXPECT_THAT(Numbers(cached), SizeIs(4));
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  for (size_t i = 0; i < content.size(); ++i) {
    std::string damaged = content;
    damaged[i] ^= 4;
    std::ofstream(path, std::ios::binary) << damaged;
    ASSERT_THAT(FirstError(cached),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)))
        << i;
    std::ofstream(path, std::ios::binary) << content.substr(0, i);
    ASSERT_THAT(FirstError(cached),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)))
        << i;
  }
}

TEST(FileCacheTest, AFileOfAnotherDatasetIsRejected) {
  const std::string path = MakeFolder("other") + "/cache";
  EXPECT_THAT(Numbers(Dataset::Range(4).Cache(path)), SizeIs(4));
  EXPECT_THAT(FirstError(Dataset::Range(5).Cache(path)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("was created from another dataset")));
}

TEST(FileCacheTest, EachPipelineHasItsOwnFile) {
  const std::string folder = MakeFolder("pipelines");
  const Dataset cached =
      Dataset::Range(4).ShardByPipeline().Cache(folder + "/cache");
  for (int pass = 0; pass < 2; ++pass) {
    for (int id = 0; id < 2; ++id) {
      EXPECT_THAT(
          Numbers(cached, {.num_input_pipelines = 2, .input_pipeline_id = id}),
          ElementsAre(id, id + 2));
    }
  }
  EXPECT_THAT(List(folder), SizeIs(2));
}

TEST(FileCacheTest, TravelsAndChecksItsArguments) {
  const std::string path = MakeFolder("wire") + "/cache";
  ASSERT_OK_AND_ASSIGN(const proto::Dataset encoded,
                       EncodeDataset(Dataset::Range(4).Cache(path)));
  ASSERT_OK_AND_ASSIGN(const Dataset decoded, DecodeDataset(encoded));
  EXPECT_THAT(Numbers(decoded), SizeIs(4));
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  EXPECT_THAT(Dataset::Range(4).Repeat().Cache(path).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("put Cache() before Repeat()")));
  EXPECT_THAT(Dataset::Range(4).Cache("").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the name of the file is empty")));
  EXPECT_THAT(FirstError(Dataset::Range(4).Cache("/no/such/folder/cache")),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("/no/such/folder/cache")));
}

}  // namespace
}  // namespace muster
