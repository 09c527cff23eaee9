#include "coordinator/per_worker_dataset.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/dataset/dataset.h"
#include "common/learn/strategy/input/sharding_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

ShardingPlan PlanOf(BatchPath path, const Dataset& dataset, int worker) {
  return PlanSharding(
             {.path = path,
              .dataset = dataset,
              .placement = {.worker_count = 3, .worker_index = worker}})
      .value();
}

proto::Dataset Decode(const std::string& serialized) {
  proto::Dataset dataset;
  EXPECT_TRUE(dataset.ParseFromString(serialized));
  return dataset;
}

bool HasDecorrelatedShuffle(const proto::Dataset& dataset) {
  for (const proto::DatasetStage& stage : dataset.stages()) {
    if (stage.has_shuffle()) return stage.shuffle().decorrelate();
  }
  ADD_FAILURE() << "no shuffle";
  return false;
}

TEST(EncodePerWorkerTest, OnePlanIsForAllWorkers) {
  const Dataset dataset = Dataset::Range(9).Shuffle(3, {.seed = 1});
  for (const bool is_copied : {false, true}) {
    const ShardingPlan plan =
        PlanOf(is_copied ? BatchPath::kCopied : BatchPath::kMadePerWorker,
               dataset, /*worker=*/0);
    ASSERT_OK_AND_ASSIGN(const IteratorRecord record, EncodePerWorker({plan}));
    ASSERT_EQ(record.serialized_datasets.size(), 1);
    EXPECT_EQ(HasDecorrelatedShuffle(Decode(record.serialized_datasets[0])),
              is_copied);
    ASSERT_EQ(record.contexts.size(), 3);
    for (int worker = 0; worker < 3; ++worker) {
      EXPECT_EQ(record.contexts[worker].num_input_pipelines(), 3);
      EXPECT_EQ(record.contexts[worker].input_pipeline_id(), worker);
      EXPECT_EQ(record.contexts[worker].num_replicas_in_sync(), 1);
    }
  }
}

TEST(EncodePerWorkerTest, EveryWorkerHasTheDatasetOfItsPlan) {
  std::vector<ShardingPlan> plans;
  for (int worker = 0; worker < 3; ++worker) {
    plans.push_back(
        PlanOf(BatchPath::kMadePerWorker, Dataset::Range(worker + 1), worker));
  }
  ASSERT_OK_AND_ASSIGN(const IteratorRecord record, EncodePerWorker(plans));
  ASSERT_EQ(record.serialized_datasets.size(), 3);
  EXPECT_EQ(Decode(record.serialized_datasets[2]).stages(0).range().stop(), 3);
  plans[1].dataset = Dataset::Range(2).WithNames({"x"});
  EXPECT_THAT(EncodePerWorker(plans),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("component names for worker 1 than")));
}

}  // namespace
}  // namespace muster
