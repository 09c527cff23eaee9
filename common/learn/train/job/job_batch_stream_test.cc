#include "common/learn/train/job/job_batch_stream.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/npy.h"
#include "common/io/storage/disk.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/training_job.pb.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobBatchStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(
        testing::TempDir(), "/stream_", getpid(), "_",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_OK(Disk::Real()->MakeFolder(folder_));
    stream_.set_directory(folder_);
    stream_.set_batch_count(3);
    stream_.set_feature_count(1);
    stream_.set_label_count(1);
  }

  void Write(const std::string& name, const std::string& content) {
    ASSERT_OK(ReplaceFile(Disk::Real(), JoinPath(folder_, name), content));
  }
  std::string Read(const std::string& name) {
    return ReadFile(Disk::Real(), JoinPath(folder_, name), 100).value_or("");
  }

  // A batch of two rows: x is {value}, y is 1.
  void WriteBatch(int64_t index, float value) {
    const std::string name = absl::StrCat("batch_", index);
    const std::string temporary = absl::StrCat("writing_", index);
    ASSERT_OK(Disk::Real()->MakeFolder(JoinPath(folder_, temporary)));
    ASSERT_OK_AND_ASSIGN(
        const std::string x,
        NpyFileOf(Tensor::Full(DType::kFloat32, {2, 1}, value)));
    ASSERT_OK_AND_ASSIGN(const std::string y,
                         NpyFileOf(Tensor::Full(DType::kInt64, {2}, 1)));
    Write(absl::StrCat(temporary, "/array_0.npy"), x);
    Write(absl::StrCat(temporary, "/array_1.npy"), y);
    ASSERT_OK(Disk::Real()->Rename(JoinPath(folder_, temporary),
                                   JoinPath(folder_, name)));
  }

  void RemoveBatch(int64_t index) {
    Write("removed", absl::StrCat(index + 1));
    const std::string batch = JoinPath(folder_, absl::StrCat("batch_", index));
    for (const char* const name : {"array_0.npy", "array_1.npy"}) {
      ASSERT_OK(Disk::Real()->Remove(JoinPath(batch, name)));
    }
    ASSERT_EQ(rmdir(batch.c_str()), 0);
  }

  // Returns x of all rows.
  static absl::StatusOr<std::vector<float>> Rows(const Dataset& data) {
    ASSIGN_OR_RETURN(const auto iterator, data.MakeIterator());
    std::vector<float> rows;
    Element element;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, iterator->Next(&element));
      if (!more) return rows;
      rows.push_back(element[0].flat<float>()[0]);
    }
  }

  std::string folder_;
  proto::JobData_BatchStream stream_;
};

TEST_F(JobBatchStreamTest, ReadsBatchesThatAreWrittenMeanwhile) {
  WriteBatch(0, 10);
  ASSERT_OK_AND_ASSIGN(const Dataset data, BuildBatchStream(stream_));
  ASSERT_OK_AND_ASSIGN(const auto iterator, data.MakeIterator());
  Element element;
  for (int row = 0; row < 2; ++row) {
    ASSERT_OK(iterator->Next(&element).status());
    EXPECT_EQ(element[0].flat<float>()[0], 10);
    EXPECT_EQ(element[1].dtype(), DType::kInt64);
  }
  std::thread writer([&] {
    WriteBatch(1, 11);
    WriteBatch(2, 12);
  });
  std::vector<float> rows;
  while (iterator->Next(&element).value()) {
    rows.push_back(element[0].flat<float>()[0]);
  }
  writer.join();
  EXPECT_THAT(rows, ElementsAre(11, 11, 12, 12));
  EXPECT_EQ(Read(absl::StrCat("reader_", getpid())), "2");
}

TEST_F(JobBatchStreamTest, EndsWhereTheWriterHasFinished) {
  WriteBatch(0, 10);
  Write("end", "1");
  ASSERT_OK_AND_ASSIGN(const Dataset data, BuildBatchStream(stream_));
  EXPECT_THAT(Rows(data), IsOkAndHolds(ElementsAre(10, 10)));
}

TEST_F(JobBatchStreamTest, HasOnePass) {
  WriteBatch(0, 10);
  WriteBatch(1, 11);
  ASSERT_OK_AND_ASSIGN(const Dataset data, BuildBatchStream(stream_));
  {
    ASSERT_OK_AND_ASSIGN(const auto iterator, data.MakeIterator());
    Element element;
    for (int row = 0; row < 3; ++row) {
      EXPECT_THAT(iterator->Next(&element), IsOkAndHolds(true));
    }
  }
  EXPECT_THAT(Rows(data).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("batch 0 of ")));
  Write("end", "2");
  EXPECT_THAT(Rows(data), IsOkAndHolds(ElementsAre()));
}

TEST_F(JobBatchStreamTest, AnotherReaderFindsThatBatchesAreGone) {
  WriteBatch(0, 10);
  WriteBatch(1, 11);
  RemoveBatch(0);
  EXPECT_THAT(BuildBatchStream(stream_).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("batch 0 of ")));
}

TEST_F(JobBatchStreamTest, SaysForWhatItHasWaited) {
  stream_.set_timeout_seconds(0.01);
  EXPECT_THAT(BuildBatchStream(stream_).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("for batch 0 in ")));
}

TEST_F(JobBatchStreamTest, RefusesFieldsOutOfRange) {
  stream_.set_label_count(0);
  EXPECT_THAT(BuildBatchStream(stream_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("batch_stream.label_count")));
  stream_.set_label_count(1);
  stream_.set_timeout_seconds(-1);
  EXPECT_THAT(BuildBatchStream(stream_).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("timeout_seconds")));
}

}  // namespace
}  // namespace muster
