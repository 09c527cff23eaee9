#include "common/learn/strategy/input/distributed_dataset.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/sources.h"
#include "common/learn/strategy/input/rebatch.h"
#include "common/learn/strategy/input/replica_batch.h"
#include "common/learn/strategy/input/testing/test_groups.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;

const auto kInvalid = absl::StatusCode::kInvalidArgument;
using Policy = AutoShardPolicy;

TEST(DistributeDataset, DataGivesEveryStepTheBatchOfOneProcess) {
  ForEachGroup([](int worker_count, int replicas) {
    for (const int64_t rows : {0, 1, 7, 12, 29}) {
      for (const RebatchRule rule :
           {RebatchRule::kDefault, RebatchRule::kBalanced,
            RebatchRule::kLegacy}) {
        // A decorrelated shuffle has one order nevertheless.
        const Dataset dataset =
            Rows(rows).Shuffle(9, {.seed = 2, .decorrelate = true}).Batch(5);
        const auto workers = Distribute(
            dataset, worker_count, replicas,
            {.auto_shard_policy = Policy::kData, .rebatch_rule = rule});
        for (const int64_t epoch : {0, 1}) {
          EXPECT_EQ(RunGroup(workers, epoch).steps, BatchesOf(dataset, epoch));
        }
        EXPECT_EQ(workers[0].StepCount(), (rows + 4) / 5);
      }
    }
  });
}

TEST(DistributeDataset, DropRemainderLeavesTheSameRowsOut) {
  ForEachGroup([](int worker_count, int replicas) {
    const Dataset dataset = Rows(29).Batch(6, {.drop_remainder = true});
    const Epoch epoch = RunGroup(Distribute(
        dataset, worker_count, replicas, {.auto_shard_policy = Policy::kData}));
    EXPECT_EQ(epoch.steps, BatchesOf(dataset));
    EXPECT_EQ(epoch.steps.size(), 4);
  });
}

TEST(DistributeDataset, RepeatedDataGoesOnAcrossPasses) {
  ForEachGroup([](int worker_count, int replicas) {
    const Dataset dataset = Rows(7).Shuffle(7, {.seed = 1}).Batch(4).Repeat();
    const auto workers = Distribute(dataset, worker_count, replicas,
                                    {.auto_shard_policy = Policy::kData});
    EXPECT_EQ(workers[0].StepCount(), Dataset::kInfinite);
    EXPECT_EQ(RunGroup(workers, 0, 9).steps, BatchesOf(dataset.Take(9)));
  });
}

TEST(DistributeDataset, FileGivesEveryExampleToOneReplica) {
  const std::vector<std::string> paths =
      WriteFiles({5, 0, 9, 1, 14, 3, 8});  // 40 rows.
  ForEachGroup([&](int worker_count, int replicas) {
    for (const int64_t batch_size : {1, 4, 8, 13}) {
      for (const RebatchRule rule :
           {RebatchRule::kBalanced, RebatchRule::kLegacy}) {
        const Dataset dataset =
            CsvFiles(paths)
                .Shuffle(6, {.seed = 3, .decorrelate = true})
                .Batch(batch_size);
        const auto workers = Distribute(
            dataset, worker_count, replicas,
            {.auto_shard_policy = Policy::kFile, .rebatch_rule = rule});
        for (const int64_t number : {0, 1}) {
          const Epoch epoch = RunGroup(workers, number);
          EXPECT_THAT(epoch.sorted_rows(), ElementsAreArray(CountTo(40)));
          for (const auto& step : epoch.steps) {
            if (rule == RebatchRule::kLegacy) continue;
            EXPECT_LE(static_cast<int64_t>(step.size()), batch_size);
          }
        }
      }
    }
  });
}

TEST(DistributeDataset, FileStepsAreFullWhileAllWorkersHaveData) {
  // Two files of 24 rows, global batches of 8 on 2 workers.
  const Dataset dataset = CsvFiles(WriteFiles({24, 24})).Batch(8);
  const auto workers =
      Distribute(dataset, 2, 3, {.auto_shard_policy = Policy::kFile});
  const Epoch epoch = RunGroup(workers);
  ASSERT_EQ(epoch.steps.size(), 6);
  for (size_t step = 0; step < 6; ++step) {
    EXPECT_EQ(epoch.steps[step].size(), 8);
  }
  // Sizes 2, 2, 1, 1, 1, 1; worker 1 begins at the fourth.
  EXPECT_THAT(epoch.sizes[0], ElementsAre(2, 2, 1, 1, 1, 1));
  EXPECT_THAT(epoch.sizes[1], ElementsAre(1, 1, 1, 2, 2, 1));
  EXPECT_THAT(epoch.steps[0], ElementsAre(0, 1, 2, 3, 4, 24, 25, 26));
  EXPECT_THAT(epoch.step_counts, ElementsAre(6, 6));
}

TEST(DistributeDataset, SevenFilesForThreeWorkersEndUnevenly) {
  const std::vector<std::string> paths = WriteFiles({4, 4, 4, 4, 4, 4, 4});
  const auto workers = Distribute(CsvFiles(paths).Batch(6), 3, 1,
                                  {.auto_shard_policy = Policy::kFile});
  EXPECT_EQ(workers[0].plan().file_count, 7);
  EXPECT_EQ(workers[0].plan().local_file_count, 3);
  EXPECT_EQ(workers[2].plan().local_file_count, 2);
  EXPECT_EQ(workers[0].StepCount(), Dataset::kUnknownCardinality);
  const Epoch epoch = RunGroup(workers);
  EXPECT_THAT(epoch.sorted_rows(), ElementsAreArray(CountTo(28)));
  // Two rows per step: 12 rows last 6 steps and 8 rows last 4.
  EXPECT_THAT(epoch.step_counts, ElementsAre(6, 4, 4));
  EXPECT_THAT(epoch.sizes[5], ElementsAre(2, 0, 0));
}

TEST(DistributeDataset, FileNeedsAFileForEachWorker) {
  const Dataset two = CsvFiles(WriteFiles({3, 3})).Batch(3);
  EXPECT_THAT(
      DistributeError(two, 3, {.auto_shard_policy = Policy::kFile}),
      StatusIs(kInvalid, AllOf(HasSubstr("2 files"), HasSubstr("3 workers"),
                               HasSubstr("DATA"), HasSubstr("OFF"))));
  EXPECT_THAT(DistributeError(Rows(9).Batch(3), 3,
                              {.auto_shard_policy = Policy::kFile}),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("no files"), HasSubstr("DATA"))));
}

TEST(DistributeDataset, AutoTakesFilesWhereTheySuffice) {
  const std::vector<std::string> paths = WriteFiles({3, 3, 3});
  const auto policy = [](const Dataset& dataset, int worker_count) {
    return DistributeDataset(dataset, {.worker_count = worker_count})
        ->plan()
        .policy;
  };
  EXPECT_EQ(policy(CsvFiles(paths).Batch(4), 3), Policy::kFile);
  EXPECT_EQ(policy(CsvFiles(paths).Batch(4), 1), Policy::kOff);
  EXPECT_EQ(policy(Rows(9).ShardByPipeline().Batch(4), 3), Policy::kHint);

  const auto warning = [&](const Dataset& dataset) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(policy(dataset, 4), Policy::kData);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warning(CsvFiles(paths).Batch(4)),
              AllOf(HasSubstr("(DATA)"), HasSubstr("reads 3 files"),
                    HasSubstr("4 workers")));
  EXPECT_THAT(warning(Rows(9).Batch(4)),
              AllOf(HasSubstr("(DATA)"), HasSubstr("no files")));
  EXPECT_THAT(warning(CsvFiles(WriteFiles({1, 1, 1, 1})).Take(2).Batch(4)),
              AllOf(HasSubstr("(DATA)"), HasSubstr("Take()")));
}

TEST(DistributeDataset, AutoSeesEveryExampleOnce) {
  const std::vector<std::string> paths = WriteFiles({4, 9, 2});
  ForEachGroup([&](int worker_count, int replicas) {
    EXPECT_THAT(RunGroup(Distribute(CsvFiles(paths).Batch(6), worker_count,
                                    replicas, {}))
                    .sorted_rows(),
                ElementsAreArray(CountTo(15)));
  });
}

TEST(DistributeDataset, HintShardsAtItsPosition) {
  ForEachGroup([](int worker_count, int replicas) {
    for (const int64_t rows : {0, 5, 31}) {
      const Dataset dataset =
          Rows(rows).ShardByPipeline().Shuffle(8, {.seed = 4}).Batch(7);
      const auto workers = Distribute(dataset, worker_count, replicas,
                                      {.auto_shard_policy = Policy::kHint});
      EXPECT_THAT(RunGroup(workers).sorted_rows(),
                  ElementsAreArray(CountTo(rows)));
    }
  });
  EXPECT_THAT(DistributeError(Rows(9).Batch(3), 2,
                              {.auto_shard_policy = Policy::kHint}),
              StatusIs(kInvalid, HasSubstr("no ShardByPipeline()")));
  for (const Policy policy : {Policy::kFile, Policy::kData}) {
    EXPECT_THAT(
        DistributeError(CsvFiles(WriteFiles({2, 2})).ShardByPipeline().Batch(3),
                        2, {.auto_shard_policy = policy}),
        StatusIs(kInvalid,
                 AllOf(HasSubstr("sharded twice"),
                       HasSubstr(std::string(AutoShardPolicyName(policy))))));
  }
}

TEST(DistributeDataset, OffShowsTheDataToEveryWorker) {
  ForEachGroup([](int worker_count, int replicas) {
    testing::internal::CaptureStderr();
    const auto workers = Distribute(Rows(20).Batch(6), worker_count, replicas,
                                    {.auto_shard_policy = Policy::kOff});
    const std::string log = testing::internal::GetCapturedStderr();
    if (worker_count > 1) {
      EXPECT_THAT(log, HasSubstr(absl::StrCat("sees the data ", worker_count,
                                              " times")));
    }
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < 20; ++i) {
      expected.insert(expected.end(), worker_count, i);
    }
    EXPECT_THAT(RunGroup(workers).sorted_rows(), ElementsAreArray(expected));
  });
  const auto workers =
      Distribute(Rows(24).Batch(6), 3, 2, {.auto_shard_policy = Policy::kOff});
  EXPECT_EQ(workers[0].StepCount(), 12);
  EXPECT_EQ(RunGroup(workers).steps.size(), 12);
}

TEST(DistributeDataset, OffKeepsCustomShards) {
  testing::internal::CaptureStderr();
  const auto workers = Distribute(Rows(20).ShardByPipeline().Batch(6), 2, 1,
                                  {.auto_shard_policy = Policy::kOff});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("times")));
  EXPECT_THAT(RunGroup(workers).sorted_rows(), ElementsAreArray(CountTo(20)));
}

TEST(DistributeDataset, ExactlyOnceKeepsTheOrderWhateverThePolicy) {
  const Dataset files = CsvFiles(WriteFiles({7, 5, 11, 0}));
  ForEachGroup([&](int worker_count, int replicas) {
    for (const Policy policy : {Policy::kAuto, Policy::kFile, Policy::kData,
                                Policy::kHint, Policy::kOff}) {
      for (const Dataset& dataset :
           {files.Batch(8), files.ShardByPipeline().Batch(8),
            files.Skip(3).Batch(1)}) {
        const auto workers =
            Distribute(dataset, worker_count, replicas,
                       {.auto_shard_policy = policy, .exactly_once = true});
        EXPECT_EQ(RunGroup(workers).steps, BatchesOf(dataset));
      }
    }
  });
}

absl::StatusOr<DistributedDataset> FromFunction(const DatasetFunction& function,
                                                int worker_count, int worker,
                                                int replicas) {
  return DistributeDatasetsFromFunction(function,
                                        {.worker_count = worker_count,
                                         .worker_index = worker,
                                         .replicas_per_worker = replicas});
}

TEST(DistributeDatasetsFromFunction, ReplicasDrawConsecutiveElements) {
  ForEachGroup([](int worker_count, int replicas) {
    std::vector<DistributedDataset> workers;
    for (int w = 0; w < worker_count; ++w) {
      int call_count = 0;
      const auto function =
          [&](const InputContext& context) -> absl::StatusOr<Dataset> {
        ++call_count;
        EXPECT_EQ(context.num_input_pipelines, worker_count);
        EXPECT_EQ(context.input_pipeline_id, w);
        EXPECT_EQ(context.num_replicas_in_sync, worker_count * replicas);
        return Rows(17)
            .Shard(context.num_input_pipelines, context.input_pipeline_id)
            .Batch(2);
      };
      ASSERT_OK_AND_ASSIGN(auto worker,
                           FromFunction(function, worker_count, w, replicas));
      EXPECT_EQ(call_count, 1);
      workers.push_back(std::move(worker));
    }
    const Epoch epoch = RunGroup(workers);
    EXPECT_THAT(epoch.sorted_rows(), ElementsAreArray(CountTo(17)));
    for (const int64_t size : epoch.sizes[0]) EXPECT_LE(size, 2);
    if (worker_count == 1) {
      EXPECT_EQ(workers[0].StepCount(),
                static_cast<int64_t>(epoch.steps.size()));
      EXPECT_THAT(epoch.rows(), ElementsAreArray(CountTo(17)));
    }
  });
}

TEST(DistributeDatasetsFromFunction, ErrorsAreTheFunctions) {
  EXPECT_THAT(FromFunction(
                  [](const InputContext&) -> absl::StatusOr<Dataset> {
                    return absl::DataLossError("no disk");
                  },
                  2, 0, 1),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no disk")));
  EXPECT_THAT(FromFunction([](const InputContext&) { return Rows(4).Batch(0); },
                           1, 0, 1),
              StatusIs(kInvalid));
  EXPECT_THAT(
      FromFunction([](const InputContext&) { return Rows(4); }, 2, 0, 1),
      StatusIs(kInvalid, HasSubstr("has no rows")));
  EXPECT_THAT(FromFunction(nullptr, 1, 0, 1), StatusIs(kInvalid));
  EXPECT_THAT(
      FromFunction([](const InputContext&) { return Rows(4); }, 2, 3, 1),
      StatusIs(kInvalid, HasSubstr("worker 3 of 2")));
}

TEST(InputContext, PerReplicaBatchSizesDivideTheGlobalOne) {
  const InputContext context = {.num_replicas_in_sync = 3};
  EXPECT_THAT(context.GetPerReplicaBatchSize(12), IsOkAndHolds(4));
  EXPECT_THAT(
      context.GetPerReplicaBatchSize(13),
      StatusIs(kInvalid, AllOf(HasSubstr("13"), HasSubstr("3 replicas"))));
  EXPECT_THAT(context.GetPerReplicaBatchSize(0), StatusIs(kInvalid));
}

}  // namespace
}  // namespace muster
