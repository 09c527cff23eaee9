// Saves and restores shards of parameter servers over real sockets and real
// files while steps run.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/compute/variables/checkpoint_names.h"
#include "common/compute/variables/variable_store.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/io/checkpoint/bundle_files.h"
#include "common/io/checkpoint/publish_tensor_bundle.h"
#include "common/io/checkpoint/tensor_bundle_reader.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/testing/simulated_disk.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/rpc.pb.h"
#include "proto/variable.pb.h"
#include "ps/checkpoint_handler.h"
#include "ps/client/partitioner.h"
#include "ps/client/remote_variable_store.h"
#include "ps/parameter_server.h"
#include "ps/testing/store_fixture.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

proto::Optimizer Adam() {
  proto::Optimizer optimizer;
  optimizer.mutable_adam()->set_learning_rate(0.1);
  return optimizer;
}

// An optimizer with a slot whose initial value is that of the variable.
proto::Optimizer ScheduleFreeAdamW() {
  proto::Optimizer optimizer;
  optimizer.mutable_schedule_free_adamw()->set_learning_rate(0.1);
  return optimizer;
}

std::vector<float> Flat(const Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  return std::vector<float>(flat.begin(), flat.end());
}

class CheckpointTest : public StoreFixture {
 protected:
  CheckpointTest() : StoreFixture(/*shared_memory=*/false) {}

  void SetUp() override {
    StoreFixture::SetUp();
    folder_ = absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::string Prefix(int number) const {
    return absl::StrCat(folder_, "/ckpt-", number);
  }

  absl::Status Save(const std::string& prefix) {
    const int count = store_->checkpoint_shard_count();
    absl::Status status = store_->SaveShards(prefix, count);
    status.Update(PublishTensorBundle(Disk::Real(), prefix, count));
    return status;
  }

  // Replaces the servers with new, empty ones.
  void ReplaceServers(int server_count, int64_t parts) {
    store_ = nullptr;
    servers_.clear();
    for (int i = 0; i < server_count; ++i) {
      servers_.push_back(StartServer(i, 200 + i));
    }
    partitioner_ = MakeFixedShardsPartitioner(parts).value();
    store_ = OpenStore("chief");
  }

  static absl::Status Train(VariableStore* store, float gradient) {
    ASSIGN_OR_RETURN(
        const auto session,
        store->OpenSession({{{.name = "table", .is_updated = true},
                             {.name = "bias", .is_updated = true}}}));
    RETURN_IF_ERROR(session->Begin(0));
    RETURN_IF_ERROR(session->Update(
        0, UpdateKind::kApplyGradient,
        Tensor::Full(DType::kFloat32, TableShape(), gradient), Tensor()));
    RETURN_IF_ERROR(session->Update(
        1, UpdateKind::kApplyGradient,
        Tensor::Full(DType::kFloat32, Shape(), gradient), Tensor()));
    return session->Commit();
  }

  static Shape TableShape() { return Shape({7, 3}); }

  absl::Status CreateVariables(const proto::Optimizer& optimizer = Adam()) {
    RETURN_IF_ERROR(store_->Create(RandomSpec("table", TableShape(), 5)));
    RETURN_IF_ERROR(store_->Create(RandomSpec("bias", Shape(), 6)));
    RETURN_IF_ERROR(store_->Create(RandomSpec("mean", Shape({5}), 7)));
    return store_->SetOptimizer(optimizer);
  }

  std::vector<std::vector<float>> Values() {
    std::vector<std::vector<float>> values;
    for (const char* name : {"table", "bias", "mean"}) {
      values.push_back(Flat(store_->Read(name).value()));
    }
    return values;
  }

  std::string folder_;
};

TEST_F(CheckpointTest, RestoresIdenticalBitsWithOtherServersAndPartitions) {
  ASSERT_OK(CreateVariables());
  for (const float gradient : {1.0f, -2.0f, 0.5f}) {
    ASSERT_OK(Train(store_.get(), gradient));
  }
  ASSERT_OK(Save(Prefix(1)));
  const auto saved = Values();
  ASSERT_OK(Train(store_.get(), 3.0f));
  const auto next = Values();
  ASSERT_NE(saved, next);

  for (const auto& [server_count, parts] :
       {std::pair(3, 3), std::pair(1, 1), std::pair(2, 7)}) {
    SCOPED_TRACE(absl::StrCat(server_count, " servers, ", parts, " parts"));
    ReplaceServers(server_count, parts);
    ASSERT_OK(CreateVariables());
    ASSERT_OK(store_->Restore(Prefix(1), /*values_only=*/false));
    EXPECT_EQ(Values(), saved);
    ASSERT_OK_AND_ASSIGN(const int64_t count, store_->UpdateCount("table"));
    EXPECT_EQ(count, 3);
    // Without slots and counts, Adam would take a different step.
    ASSERT_OK(Train(store_.get(), 3.0f));
    EXPECT_EQ(Values(), next);
  }
}

TEST_F(CheckpointTest, RollbackOnTheSameServersRestoresEverything) {
  for (const proto::Optimizer& optimizer : {Adam(), ScheduleFreeAdamW()}) {
    SCOPED_TRACE(optimizer.ShortDebugString());
    ReplaceServers(2, 2);
    ASSERT_OK(CreateVariables(optimizer));
    ASSERT_OK(Save(Prefix(1)));  // No slots yet.
    const auto initial = Values();
    ASSERT_OK(Train(store_.get(), 1.0f));
    const auto first = Values();
    ASSERT_OK(Train(store_.get(), 1.0f));
    ASSERT_OK(store_->Restore(Prefix(1), /*values_only=*/false));
    EXPECT_EQ(Values(), initial);
    ASSERT_OK(Train(store_.get(), 1.0f));
    EXPECT_EQ(Values(), first);
  }
}

// In synchronous training the mean of several gradients is one step.
TEST_F(CheckpointTest, AnOpenRoundContinuesUnlessRoundsHaveAnotherSize) {
  gradients_per_step_ = 2;
  ReplaceServers(2, 2);
  ASSERT_OK(CreateVariables());
  const auto train = [&] { ASSERT_OK(Train(store_.get(), 1)); };
  for (int i = 0; i < 3; ++i) train();
  ASSERT_OK(Save(Prefix(1)));
  const auto saved = Values();
  train();
  const auto next = Values();
  ASSERT_NE(saved, next);

  const auto restore = [&](int64_t gradients_per_step) {
    gradients_per_step_ = gradients_per_step;
    ReplaceServers(1, 3);
    ASSERT_OK(CreateVariables());
    ASSERT_OK(store_->Restore(Prefix(1), /*values_only=*/false));
    EXPECT_EQ(Values(), saved);
  };
  restore(2);
  EXPECT_THAT(store_->UpdateCount("table"), IsOkAndHolds(3));
  train();
  EXPECT_EQ(Values(), next);
  restore(3);
  EXPECT_THAT(store_->UpdateCount("table"), IsOkAndHolds(3));
  train();
  train();
  EXPECT_EQ(Values(), saved);
  train();
  EXPECT_EQ(Values(), next);
  restore(1);
  EXPECT_THAT(store_->UpdateCount("table"), IsOkAndHolds(1));
  train();
  EXPECT_EQ(Values(), next);
}

TEST_F(CheckpointTest, SaveAfterRollbackToInitialValuesIsComplete) {
  ASSERT_OK(CreateVariables());
  const auto initial = Values();
  ASSERT_OK(Train(store_.get(), 1.0f));
  const auto first = Values();
  // One server restarts empty; the other still has the optimizer's slots.
  const std::string address = servers_[0]->address();
  servers_[0] = nullptr;
  servers_[0] = StartServer(0, /*incarnation=*/300, address);
  const std::vector<RemoteVariableStore::ReplacedServer> returned = {
      {.server = 0, .incarnation = 300}};
  ASSERT_OK(store_->RecoverServers(returned, /*generation=*/1,
                                   /*low_water_mark=*/1,
                                   /*starts_over=*/true));
  store_->ForgetValues();
  EXPECT_EQ(Values(), initial);
  ASSERT_OK(Save(Prefix(1)));
  ASSERT_OK(Train(store_.get(), 1.0f));
  EXPECT_EQ(Values(), first);
  ASSERT_OK(store_->Restore(Prefix(1), /*values_only=*/false));
  EXPECT_EQ(Values(), initial);
}

TEST_F(CheckpointTest, RestoringValuesOnlyKeepsTheSlots) {
  ASSERT_OK(CreateVariables());
  ASSERT_OK(Train(store_.get(), 1.0f));
  ASSERT_OK(Save(Prefix(1)));
  const auto saved = Values();
  ASSERT_OK(Train(store_.get(), -5.0f));
  ASSERT_OK(store_->Restore(Prefix(1), /*values_only=*/true));
  EXPECT_EQ(Values(), saved);
  ASSERT_OK_AND_ASSIGN(const int64_t count, store_->UpdateCount("table"));
  EXPECT_EQ(count, 2);
}

TEST_F(CheckpointTest, RestoredSlotsAreKeptUntilTheOptimizerIsSet) {
  ASSERT_OK(CreateVariables());
  ASSERT_OK(Train(store_.get(), 1.0f));
  ASSERT_OK(Save(Prefix(1)));
  ASSERT_OK(Train(store_.get(), -5.0f));
  const auto next = Values();
  ReplaceServers(2, 2);
  ASSERT_OK(store_->Create(RandomSpec("table", TableShape(), 5)));
  ASSERT_OK(store_->Create(RandomSpec("bias", Shape(), 6)));
  ASSERT_OK(store_->Create(RandomSpec("mean", Shape({5}), 7)));
  ASSERT_OK(store_->Restore(Prefix(1), /*values_only=*/false));
  ASSERT_OK(store_->SetOptimizer(Adam()));
  ASSERT_OK(Train(store_.get(), -5.0f));
  EXPECT_EQ(Values(), next);
}

// Each step adds one to every element, so a snapshot must hold equal elements.
TEST_F(CheckpointTest, SavesAConsistentSnapshotWhileStepsRun) {
  constexpr int kSaves = 5;
  partitioner_ = nullptr;
  store_ = OpenStore("chief");
  const Shape shape({1024, 768});  // 3 MiB: many blocks.
  for (const char* name : {"a", "unused", "b"}) {
    proto::VariableSpec spec = Spec(name, DType::kFloat32, shape);
    ASSERT_OK(store_->Create(spec));
  }
  absl::Notification stop;
  const auto worker = OpenStore("worker");
  std::thread trainer([&] {
    const Tensor ones = Tensor::Full(DType::kFloat32, shape, 1);
    const auto session =
        worker
            ->OpenSession({{{.name = "a", .is_updated = true},
                            {.name = "b", .is_updated = true}}})
            .value();
    while (!stop.HasBeenNotified()) {
      ASSERT_OK(session->Begin(0));
      ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd, ones, Tensor()));
      ASSERT_OK(session->Update(1, UpdateKind::kAssignAdd, ones, Tensor()));
      ASSERT_OK(session->Commit());
    }
  });
  std::vector<float> counts;
  for (int save = 1; save <= kSaves; ++save) {
    ASSERT_OK(Save(Prefix(save)));
    ASSERT_OK_AND_ASSIGN(const auto reader,
                         TensorBundleReader::Open(Disk::Real(), Prefix(save)));
    ASSERT_OK_AND_ASSIGN(const Tensor a, reader->Read(VariableValueKey("a")));
    ASSERT_OK_AND_ASSIGN(const Tensor b, reader->Read(VariableValueKey("b")));
    counts.push_back(a.flat<float>()[0]);
    EXPECT_THAT(a.flat<float>(), Each(counts.back()));
    // `b` is on the same server and is changed by the same messages.
    EXPECT_THAT(b.flat<float>(), Each(counts.back()));
  }
  stop.Notify();
  trainer.join();
  EXPECT_LT(counts.front(), counts.back());
}

// Callbacks may save at the same step or a step later.
TEST_F(CheckpointTest, ConcurrentSavesWriteTheirOwnSnapshots) {
  ASSERT_OK(CreateVariables());
  const int count = store_->checkpoint_shard_count();
  constexpr int kSaves = 5;  // One more than the limit.
  std::vector<std::unique_ptr<VariableSnapshot>> snapshots;
  std::vector<std::vector<std::vector<float>>> values;
  for (int save = 0; save < kSaves; ++save) {
    if (save != 2) {
      ASSERT_OK(Train(store_.get(), 1.0f));
    }
    ASSERT_OK_AND_ASSIGN(snapshots.emplace_back(), store_->TakeSnapshot());
    values.push_back(Values());
  }
  ASSERT_OK(Train(store_.get(), 1.0f));
  EXPECT_THAT(snapshots[0]->WriteShards(Disk::Real(), Prefix(0), count),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("4 newer snapshots replaced it")));
  for (const int save : {2, 1, 4, 3}) {
    ASSERT_OK(snapshots[save]->WriteShards(Disk::Real(), Prefix(save), count));
    ASSERT_OK(PublishTensorBundle(Disk::Real(), Prefix(save), count));
    ASSERT_OK(Train(store_.get(), 1.0f));
  }
  for (int save = 1; save < kSaves; ++save) {
    ASSERT_OK(store_->Restore(Prefix(save), /*values_only=*/false));
    EXPECT_EQ(Values(), values[save]) << save;
  }
}

// Saves are skipped while an earlier one is being written.
TEST_F(CheckpointTest, DroppedSnapshotsDoNotCountAgainstTheLimit) {
  ASSERT_OK(CreateVariables());
  const int count = store_->checkpoint_shard_count();
  ASSERT_OK_AND_ASSIGN(const auto kept, store_->TakeSnapshot());
  const auto values = Values();
  for (int i = 0; i < 10; ++i) {
    ASSERT_OK(store_->TakeSnapshot().status());
    ASSERT_OK(Train(store_.get(), 1.0f));
  }
  ASSERT_OK(kept->WriteShards(Disk::Real(), Prefix(1), count));
  ASSERT_OK(PublishTensorBundle(Disk::Real(), Prefix(1), count));
  ASSERT_OK(store_->Restore(Prefix(1), /*values_only=*/false));
  EXPECT_EQ(Values(), values);
}

TEST_F(CheckpointTest, DamagedCheckpointIsReportedAndChangesNothing) {
  ASSERT_OK(CreateVariables());
  ASSERT_OK(Save(Prefix(1)));
  ASSERT_OK(Train(store_.get(), 1.0f));
  const auto values = Values();
  const std::string path = BundleDataPath(Prefix(1), 1, 2);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(3);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(3);
    file.put(byte);
  }
  EXPECT_THAT(store_->Restore(Prefix(1), false),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(std::string(BaseName(path))),
                             HasSubstr("ps "))));
  EXPECT_EQ(Values(), values);
}

TEST_F(CheckpointTest, RejectsTheCheckpointOfAnotherModel) {
  ASSERT_OK(CreateVariables());
  ASSERT_OK(Save(Prefix(1)));
  ReplaceServers(2, 2);
  ASSERT_OK(store_->Create(RandomSpec("tabel", TableShape(), 5)));
  EXPECT_THAT(store_->Restore(Prefix(1), false),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("\"tabel\""), HasSubstr("\"table\""))));
}

TEST_F(CheckpointTest, NamesAServerThatWritesToAnotherFolder) {
  SimulatedDisk elsewhere;
  ParameterServer::Options options;
  options.self = {"ps", 1, 201};
  options.address = "127.0.0.1:0";
  options.checkpoints.disk = &elsewhere;
  servers_[1] = ParameterServer::Start(Network::Grpc(), options).value();
  store_ = OpenStore("chief");
  ASSERT_OK(CreateVariables());
  EXPECT_THAT(store_->SaveShards(Prefix(1), 2),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("ps 1"), HasSubstr("same folder"))));
  store_ = nullptr;
  servers_.clear();
}

TEST_F(CheckpointTest, AnErrorOfTheDiskKeepsTheTaskThatItNames) {
  SimulatedDisk disk;
  ParameterServer::Options options;
  options.self = {"ps", 1, 201};
  options.address = "127.0.0.1:0";
  options.checkpoints.disk = &disk;
  servers_[1] = ParameterServer::Start(Network::Grpc(), options).value();
  store_ = OpenStore("chief");
  ASSERT_OK(CreateVariables());
  proto::TaskFailure failure;
  failure.set_task_type("storage");
  failure.set_task_index(9);
  disk.FailOperation(
      disk.operation_count() + 1,
      WithTaskFailure(absl::UnavailableError("storage 9 is lost"), failure));
  const absl::Status status = store_->SaveShards(Prefix(1), 2);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("ps 1"),
                                     HasSubstr("storage 9 is lost"))));
  ASSERT_TRUE(GetTaskFailure(status).has_value());
  EXPECT_EQ(GetTaskFailure(status)->task_type(), "storage");
  EXPECT_EQ(GetTaskFailure(status)->task_index(), 9);
  store_ = nullptr;
  servers_.clear();
}

TEST_F(CheckpointTest, FullDiskFailsTheSaveButNotTraining) {
  SimulatedDisk disk;
  ParameterServer::Options options;
  options.self = {"ps", 1, 201};
  options.address = "127.0.0.1:0";
  options.checkpoints.disk = &disk;
  disk.set_capacity_bytes(16);
  servers_[1] = ParameterServer::Start(Network::Grpc(), options).value();
  store_ = OpenStore("chief");
  ASSERT_OK(CreateVariables());
  EXPECT_THAT(store_->SaveShards(Prefix(1), 2),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("ps 1"), HasSubstr("ckpt-1.part"))));
  EXPECT_OK(Train(store_.get(), 1.0f));
  store_ = nullptr;
  servers_.clear();
}

TEST_F(CheckpointTest, RejectsHostilePrefixes) {
  CheckpointRoots roots{.folders = std::vector<std::string>{folder_}};
  std::filesystem::create_directory_symlink("/", folder_ + "/link");
  for (const std::string& prefix :
       {std::string("ckpt-1"), std::string(), folder_ + "/../ckpt-1",
        folder_ + "/", folder_ + "/.",
        absl::StrCat("/", std::string(5000, 'a')),
        absl::StrCat(folder_, "/a", std::string(1, '\0'), "b")}) {
    EXPECT_THAT(roots.Resolve(prefix),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << prefix;
  }
  for (const std::string& prefix :
       {std::string("/etc/ckpt-1"), folder_ + "x/ckpt-1",
        folder_ + "/link/etc/ckpt-1"}) {
    EXPECT_THAT(roots.Resolve(prefix),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr("--checkpoint_root")))
        << prefix;
  }
  EXPECT_OK(roots.Resolve(folder_ + "/ckpt-1"));
  EXPECT_OK(roots.Resolve(folder_ + "/new/folder/ckpt-1"));
}

TEST(CheckpointRootsTest, UrlsNeedARootThatIsAUrl) {
  const CheckpointRoots roots{.folders =
                                  std::vector<std::string>{"/", "s3://ours/a"}};
  EXPECT_THAT(roots.Resolve("s3://ours/a/ckpt-1"),
              IsOkAndHolds("s3://ours/a/ckpt-1"));
  EXPECT_OK(roots.Resolve("s3://ours/a/b/ckpt-1"));
  for (const std::string prefix :
       {"s3://theirs/a/ckpt-1", "s3://ours/ab/ckpt-1", "gs://ours/a/ckpt-1",
        "s3://ours/ckpt-1"}) {
    EXPECT_THAT(roots.Resolve(prefix),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr("--checkpoint_root")))
        << prefix;
  }
  for (const std::string prefix :
       {"s3://ours/a/../b/ckpt-1", "s3://ours/a/", "s3://ours/a//ckpt-1"}) {
    EXPECT_THAT(roots.Resolve(prefix),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << prefix;
  }
  const CheckpointRoots folders_only{.folders = std::vector<std::string>{"/"}};
  EXPECT_THAT(folders_only.Resolve("s3://ours/a/ckpt-1"),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(CheckpointTest, RejectsRequestsOfEarlierGenerations) {
  ASSERT_OK(CreateVariables());
  ASSERT_OK(Train(store_.get(), 1.0f));
  const auto values = Values();
  for (const auto& server : servers_) {
    ASSERT_OK(server->service().shard().RollBack(/*generation=*/3, 0));
    // A delayed request has no effect.
    EXPECT_THAT(server->service().shard().RollBack(/*generation=*/2, 0),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_THAT(Train(store_.get(), 1.0f),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("generation 3")));
  EXPECT_THAT(store_->Read("table"),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  generation_ = 3;
  store_ = OpenStore("chief");
  EXPECT_EQ(Values(), values);
  EXPECT_OK(Train(store_.get(), 1.0f));
}

}  // namespace
}  // namespace muster
