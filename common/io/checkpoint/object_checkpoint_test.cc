// Checkpoints in an object store.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/checkpoint_manager.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/checkpoint/tensor_bundle_writer.h"
#include "common/io/storage/object_disk.h"
#include "common/io/storage/testing/s3_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using Action = S3Server::Action;

constexpr char kFolder[] = "s3://bucket/runs/7";

// A model with two variables that must come from the same checkpoint.
auto WriteModel(int64_t step, int64_t weight_count = 100) {
  return [=](TensorBundleWriter* writer) {
    RETURN_IF_ERROR(writer->Add("step", Tensor::Scalar<int64_t>(step)));
    return writer->Add("weights", Tensor::Full(DType::kFloat32, {weight_count},
                                               static_cast<double>(step)));
  };
}

absl::StatusOr<int64_t> ReadModel(const TensorBundleReader& reader) {
  ASSIGN_OR_RETURN(const Tensor step, reader.Read("step"));
  ASSIGN_OR_RETURN(const Tensor weights, reader.Read("weights"));
  for (const float weight : weights.flat<float>()) {
    if (weight != step.scalar<int64_t>()) {
      return absl::InternalError("a mixed checkpoint");
    }
  }
  return step.scalar<int64_t>();
}

class ObjectCheckpointTest : public testing::Test {
 protected:
  ObjectCheckpointTest()
      : server_(*S3Server::Start()), variables_(server_->Environment()) {
    ObjectDisk::Options options;
    options.store.retry_for = absl::Milliseconds(100);
    options.store.backoff.initial = absl::Milliseconds(1);
    disk_ = std::make_unique<ObjectDisk>(
        [this](const char* name) -> const char* {
          const auto found = variables_.find(name);
          return found == variables_.end() ? nullptr : found->second.c_str();
        },
        options);
    server_->set_script([this](const S3Server::Request& request) {
      absl::MutexLock lock(&mutex_);
      if (request.method == "PUT") written_keys_.push_back(request.key);
      return !failing_key_.empty() &&
                     absl::StrContains(request.key, failing_key_)
                 ? Action::kReportOverload
                 : Action::kServe;
    });
  }

  std::unique_ptr<CheckpointManager> Manager() {
    auto manager = CheckpointManager::Create(
        {.folder = kFolder, .checkpoint_count_max = 2, .disk = disk_.get()});
    EXPECT_OK(manager);
    return *std::move(manager);
  }

  absl::StatusOr<int64_t> Restore() {
    ASSIGN_OR_RETURN(const auto reader, Manager()->OpenLatest());
    return ReadModel(*reader);
  }

  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, content] : server_->Objects()) keys.push_back(key);
    return keys;
  }

  std::vector<std::string> TakeWrittenKeys() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(written_keys_, {});
  }

  void FailRequestsOf(const std::string& key) {
    absl::MutexLock lock(&mutex_);
    failing_key_ = key;
  }

  absl::Mutex mutex_;
  std::vector<std::string> written_keys_ ABSL_GUARDED_BY(mutex_);
  std::string failing_key_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<S3Server> server_;
  const std::map<std::string, std::string> variables_;
  std::unique_ptr<ObjectDisk> disk_;
};

TEST_F(ObjectCheckpointTest, KeepsTheNewestCheckpoints) {
  const auto manager = Manager();
  EXPECT_EQ(manager->latest_checkpoint(), std::nullopt);
  for (int step = 1; step <= 3; ++step) {
    EXPECT_THAT(manager->Save(WriteModel(step)),
                IsOkAndHolds(absl::StrCat(kFolder, "/ckpt-", step)));
  }
  EXPECT_THAT(
      Keys(),
      ElementsAre("runs/7/checkpoint", "runs/7/ckpt-2.data-00000-of-00001",
                  "runs/7/ckpt-2.index", "runs/7/ckpt-3.data-00000-of-00001",
                  "runs/7/ckpt-3.index"));
  EXPECT_THAT(Manager()->latest_checkpoint(),
              Optional(absl::StrCat(kFolder, "/ckpt-3")));
  EXPECT_THAT(Restore(), IsOkAndHolds(3));
}

TEST_F(ObjectCheckpointTest, WritesDataThenTheIndexThenTheState) {
  ASSERT_OK(Manager()->Save(WriteModel(1)));
  EXPECT_THAT(TakeWrittenKeys(),
              ElementsAre("runs/7/ckpt-1.data-00000-of-00001",
                          "runs/7/ckpt-1.part-00000-of-00001.index",
                          "runs/7/ckpt-1.index", "runs/7/checkpoint"));
}

// The data files of the new checkpoint have other names, so the old one is
// intact until the index replaces it.
TEST_F(ObjectCheckpointTest, ReplacesACheckpointOfTheSameName) {
  const auto manager = Manager();
  for (int step = 1; step <= 3; ++step) {
    ASSERT_OK(manager->Save(WriteModel(step), /*number=*/5));
    EXPECT_THAT(Restore(), IsOkAndHolds(step));
    EXPECT_EQ(Keys().size(), step % 2 == 1 ? 3 : 4);
  }
  FailRequestsOf("ckpt-5.index");
  EXPECT_THAT(manager->Save(WriteModel(4), /*number=*/5),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("SlowDown")));
  FailRequestsOf("");
  EXPECT_THAT(Restore(), IsOkAndHolds(3));
  ASSERT_OK(manager->Save(WriteModel(5), /*number=*/5));
  EXPECT_THAT(Restore(), IsOkAndHolds(5));
}

TEST_F(ObjectCheckpointTest, AFailedSaveLeavesTheCheckpointBefore) {
  const auto manager = Manager();
  ASSERT_OK(manager->Save(WriteModel(1)));
  const std::vector<std::string> keys = Keys();
  for (const std::string failing :
       {"ckpt-2.data", "ckpt-2.part", "ckpt-2.index"}) {
    FailRequestsOf(failing);
    EXPECT_THAT(manager->Save(WriteModel(2)),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("s3://bucket/runs/7/ckpt-2"),
                               HasSubstr("503 SlowDown"))));
    FailRequestsOf("");
    EXPECT_THAT(Restore(), IsOkAndHolds(1));
  }
  ASSERT_OK(manager->Save(WriteModel(2)));
  EXPECT_THAT(Restore(), IsOkAndHolds(2));
  EXPECT_EQ(Keys().size(), keys.size() + 2);  // No leftovers.
}

TEST_F(ObjectCheckpointTest, FallsBackFromADamagedObject) {
  const auto manager = Manager();
  ASSERT_OK(manager->Save(WriteModel(1)));
  ASSERT_OK(manager->Save(WriteModel(2)));
  const std::string key = "runs/7/ckpt-2.data-00000-of-00001";
  std::string content = server_->Objects()[key];
  content[content.size() / 2] ^= 1;
  server_->Set(key, content);
  testing::internal::CaptureStderr();
  EXPECT_THAT(Restore(), IsOkAndHolds(1));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("checkpoint s3://bucket/runs/7/ckpt-2 cannot be "
                              "used"),
                    HasSubstr(key)));
  // The state is damaged too: the objects are listed instead.
  server_->Set("runs/7/checkpoint", "damaged");
  EXPECT_THAT(Restore(), IsOkAndHolds(1));
}

TEST_F(ObjectCheckpointTest, AStoreThatDoesNotAnswerHasNoEmptyFolder) {
  ASSERT_OK(Manager()->Save(WriteModel(1)));
  FailRequestsOf("checkpoint");
  EXPECT_THAT(
      CheckpointManager::Create({.folder = kFolder, .disk = disk_.get()}),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("SlowDown")));
}

TEST_F(ObjectCheckpointTest, ShardsOfSeveralWritersAreUploadedInParts) {
  constexpr int kShards = 2;
  constexpr int64_t kWeights = 6 << 20;  // 24 MiB: two parts.
  const std::string prefix = absl::StrCat(kFolder, "/sharded");
  for (int round = 0; round < 2; ++round) {
    for (int shard = 0; shard < kShards; ++shard) {
      ASSERT_OK_AND_ASSIGN(
          const auto writer,
          TensorBundleWriter::Create(disk_.get(), prefix, {shard, kShards}));
      ASSERT_OK(writer->Add(
          absl::StrCat("weights", shard),
          Tensor::Full(DType::kFloat32, {kWeights}, shard + 10.0 * round)));
      ASSERT_OK(writer->Finish());
    }
    ASSERT_OK(PublishTensorBundle(disk_.get(), prefix, kShards));
    ASSERT_OK_AND_ASSIGN(const auto reader,
                         TensorBundleReader::Open(disk_.get(), prefix));
    EXPECT_OK(reader->Verify());
    ASSERT_OK_AND_ASSIGN(const Tensor weights, reader->Read("weights1"));
    EXPECT_EQ(weights.flat<float>()[kWeights - 1], 1 + 10.0f * round);
  }
  EXPECT_EQ(server_->open_upload_count(), 0);
}

}  // namespace
}  // namespace muster
