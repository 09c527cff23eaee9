#include "common/learn/strategy/input/sharding_plan.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/files/sources.h"
#include "common/learn/strategy/input/distributed_dataset.h"
#include "common/learn/strategy/input/replica_batch.h"
#include "common/learn/strategy/input/testing/test_groups.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Policy = AutoShardPolicy;

constexpr Policy kPolicies[] = {Policy::kAuto, Policy::kFile, Policy::kData,
                                Policy::kHint, Policy::kOff};

ShardingPlan PlanOf(const ShardingRequest& request) {
  auto plan = PlanSharding(request);
  EXPECT_OK(plan);
  return plan.ok() ? *std::move(plan) : ShardingPlan();
}

// What a dataset has that decides about a policy.
struct Source {
  std::string name;
  Dataset dataset;
  int file_count = 0;
  bool has_hint = false;
  bool counts_elements = false;
};

std::vector<Source> Sources() {
  const Dataset two = CsvFiles(WriteFiles({9, 4}));
  const Dataset four = CsvFiles(WriteFiles({9, 0, 4, 6}));
  return {
      {"memory", Rows(19)},
      {"two files", two, 2},
      {"four files", four, 4},
      {"four files, Take()", four.Take(17), 4, false, true},
      {"four files, hint", four.ShardByPipeline(), 4, true},
      {"memory, hint, Skip()", Rows(19).ShardByPipeline().Skip(1), 0, true,
       true},
  };
}

// The policy that is followed; an error: why none can be.
absl::StatusOr<Policy> ExpectedPolicy(const Source& source, Policy wanted,
                                      int worker_count) {
  if (worker_count == 1) return Policy::kOff;
  const bool has_files = source.file_count >= worker_count;
  switch (wanted) {
    case Policy::kAuto:
      if (source.has_hint) return Policy::kHint;
      return has_files && !source.counts_elements ? Policy::kFile
                                                  : Policy::kData;
    case Policy::kFile:
      if (source.has_hint) return absl::InvalidArgumentError("sharded twice");
      if (has_files) return Policy::kFile;
      return source.file_count == 0 ? absl::NotFoundError("reads no files")
                                    : absl::InvalidArgumentError("2 files");
    case Policy::kData:
      if (source.has_hint) return absl::InvalidArgumentError("sharded twice");
      return Policy::kData;
    case Policy::kHint:
      if (source.has_hint) return Policy::kHint;
      return absl::InvalidArgumentError("no ShardByPipeline()");
    case Policy::kOff:
      return Policy::kOff;
  }
  return absl::InternalError("no policy");
}

bool ExpectsWarning(const Source& source, Policy wanted, Policy followed,
                    const InputPlacement& placement, int64_t batch_size) {
  if (placement.replica_count() > batch_size) return true;
  if (placement.worker_count == 1) return false;
  return (wanted == Policy::kAuto && followed == Policy::kData) ||
         (wanted == Policy::kFile && source.counts_elements) ||
         (wanted == Policy::kOff && !source.has_hint);
}

void CheckDivided(const Source& source, Policy wanted,
                  const InputPlacement& placement) {
  constexpr int64_t kBatchSize = 5;
  const Dataset dataset = source.dataset.Batch(kBatchSize);
  const auto plan = PlanSharding({.dataset = dataset,
                                  .placement = placement,
                                  .options = {.auto_shard_policy = wanted}});
  const absl::StatusOr<Policy> policy =
      ExpectedPolicy(source, wanted, placement.worker_count);
  if (!policy.ok()) {
    EXPECT_THAT(
        plan,
        StatusIs(policy.status().code(),
                 AllOf(HasSubstr(std::string(policy.status().message())),
                       HasSubstr(std::string(AutoShardPolicyName(wanted))))));
    return;
  }
  ASSERT_OK(plan);
  EXPECT_EQ(plan->policy, *policy);
  const bool is_alone = placement.worker_count == 1;
  const bool reads_everything = is_alone || *policy == Policy::kData;
  EXPECT_EQ(plan->context.num_input_pipelines,
            reads_everything ? 1 : placement.worker_count);
  EXPECT_EQ(plan->context.input_pipeline_id,
            reads_everything ? 0 : placement.worker_index);
  EXPECT_EQ(plan->context.num_replicas_in_sync, placement.replica_count());
  EXPECT_FALSE(plan->decorrelates_all_shuffles);
  EXPECT_EQ(plan->continues_at_end, !is_alone);
  EXPECT_EQ(plan->dataset.node() != dataset.node(), *policy == Policy::kFile);
  const bool is_whole = placement.replica_count() == 1;
  EXPECT_EQ(plan->division, is_whole           ? Division::kNone
                            : reads_everything ? Division::kOneStep
                                               : Division::kManySteps);
  EXPECT_EQ(plan->rebatch_rule, *policy == Policy::kData
                                    ? RebatchRule::kLegacy
                                    : RebatchRule::kBalanced);
  EXPECT_EQ(plan->batch_size, is_whole ? 0 : kBatchSize);
  EXPECT_EQ(plan->element_types[0].shape.dim(0), Shape::kUnknown);
  EXPECT_EQ(plan->file_count, *policy == Policy::kFile ? source.file_count : 0);
  const bool warns =
      ExpectsWarning(source, wanted, *policy, placement, kBatchSize);
  EXPECT_EQ(plan->has_warning, warns);
  EXPECT_EQ(plan->is_logged,
            placement.worker_index == 0 && (warns || !is_alone));
}

TEST(PlanSharding, FollowsEveryPolicyOnEveryGroup) {
  for (const Source& source : Sources()) {
    for (const Policy policy : kPolicies) {
      ForEachGroup([&](int worker_count, int replicas) {
        SCOPED_TRACE(
            absl::StrCat(source.name, ", ", AutoShardPolicyName(policy)));
        for (int worker = 0; worker < worker_count; ++worker) {
          CheckDivided(source, policy,
                       {.worker_count = worker_count,
                        .worker_index = worker,
                        .replicas_per_worker = replicas});
        }
      });
    }
  }
}

TEST(PlanSharding, ANumberThatIsNoPolicyIsRefused) {
  for (const int number : {-2, 4, 1000}) {
    EXPECT_THAT(
        PlanSharding(
            {.dataset = Rows(4).Batch(2),
             .placement = {.worker_count = 2},
             .options = {.auto_shard_policy = static_cast<Policy>(number)}}),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(absl::StrCat("auto_shard_policy is ", number))));
  }
}

TEST(PlanSharding, ExactlyOnceReadsEverythingWhateverThePolicy) {
  for (const Source& source : Sources()) {
    for (const Policy policy : kPolicies) {
      ForEachGroup([&](int worker_count, int replicas) {
        const ShardingPlan plan = PlanOf(
            {.dataset = source.dataset.Batch(12),
             .placement = {.worker_count = worker_count,
                           .worker_index = worker_count - 1,
                           .replicas_per_worker = replicas},
             .options = {.auto_shard_policy = policy, .exactly_once = true}});
        EXPECT_EQ(plan.policy,
                  worker_count == 1 ? Policy::kOff : Policy::kData);
        EXPECT_EQ(plan.context.num_input_pipelines, 1);
        EXPECT_EQ(plan.context.input_pipeline_id, 0);
        EXPECT_EQ(plan.division, worker_count * replicas == 1
                                     ? Division::kNone
                                     : Division::kOneStep);
        EXPECT_FALSE(plan.is_logged);
      });
    }
  }
}

TEST(PlanSharding, ARebatchRuleOverridesThatOfThePolicy) {
  for (const RebatchRule rule :
       {RebatchRule::kBalanced, RebatchRule::kLegacy}) {
    for (const Policy policy : {Policy::kData, Policy::kOff}) {
      EXPECT_EQ(PlanOf({.dataset = Rows(9).Batch(4),
                        .placement = {.worker_count = 2},
                        .options = {.auto_shard_policy = policy,
                                    .rebatch_rule = rule}})
                    .rebatch_rule,
                rule);
    }
  }
}

TEST(PlanSharding, CountsTheStepsThatOneWorkerKnows) {
  const auto steps = [](const Dataset& dataset, int worker_count, int replicas,
                        Policy policy) {
    return PlanOf({.dataset = dataset,
                   .placement = {.worker_count = worker_count,
                                 .replicas_per_worker = replicas},
                   .options = {.auto_shard_policy = policy}})
        .step_count;
  };
  constexpr int64_t kUnknown = Dataset::kUnknownCardinality;
  const Dataset full = Rows(20).Batch(5, {.drop_remainder = true});
  const Dataset short_end = Rows(19).Batch(5);
  const Dataset files = CsvFiles(WriteFiles({9, 4})).Batch(5);
  const Dataset hint = Rows(19).ShardByPipeline().Batch(5);
  for (const int replicas : {1, 3}) {
    for (const Dataset& dataset : {full, short_end}) {
      EXPECT_EQ(steps(dataset, 1, replicas, Policy::kAuto), 4);
      EXPECT_EQ(steps(dataset, 2, replicas, Policy::kData), 4);
    }
    EXPECT_EQ(steps(full, 2, replicas, Policy::kOff), 8);
    // The last batch of each worker lasts for fewer steps.
    EXPECT_EQ(steps(short_end, 2, replicas, Policy::kOff), kUnknown);
    EXPECT_EQ(steps(files, 1, replicas, Policy::kAuto), kUnknown);
    EXPECT_EQ(steps(files, 2, replicas, Policy::kFile), kUnknown);
    EXPECT_EQ(steps(hint, 2, replicas, Policy::kHint), kUnknown);
    for (const Policy policy : {Policy::kAuto, Policy::kData, Policy::kOff}) {
      EXPECT_EQ(steps(full.Repeat(), 2, replicas, policy), Dataset::kInfinite);
    }
  }
}

TEST(PlanSharding, MicroBatchesAreThoseOfOneProcess) {
  for (const int worker_count : {1, 2}) {
    for (int worker = 0; worker < worker_count; ++worker) {
      const ShardingPlan plan =
          PlanOf({.dataset = CsvFiles(WriteFiles({3, 3})).Batch(6),
                  .placement = {.worker_count = worker_count,
                                .worker_index = worker,
                                .micro_batch_count = 4}});
      EXPECT_EQ(plan.policy, Policy::kOff);
      EXPECT_EQ(plan.placement.worker_count, 1);
      EXPECT_EQ(plan.placement.worker_index, 0);
      EXPECT_EQ(plan.placement.replica_count(), 4);
      EXPECT_EQ(plan.context.num_input_pipelines, 1);
      EXPECT_EQ(plan.division, Division::kOneStep);
      EXPECT_EQ(plan.rebatch_rule, RebatchRule::kBalanced);
      // All workers take part in the step that finds the end.
      EXPECT_EQ(plan.continues_at_end, worker_count == 2);
    }
  }
  EXPECT_THAT(PlanSharding({.dataset = Rows(4).Batch(2),
                            .placement = {.micro_batch_count = 1 << 21}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(PlanSharding, AFunctionMakesBatchesOfOneReplica) {
  ForEachGroup([](int worker_count, int replicas) {
    for (const int64_t rows : {0, 8, 9}) {
      const ShardingPlan plan =
          PlanOf({.path = BatchPath::kMadePerReplica,
                  .function =
                      [&](const InputContext& context) {
                        EXPECT_EQ(context.num_input_pipelines, worker_count);
                        EXPECT_EQ(context.input_pipeline_id, worker_count - 1);
                        EXPECT_EQ(context.num_replicas_in_sync,
                                  worker_count * replicas);
                        return Rows(rows).Batch(2);
                      },
                  .placement = {.worker_count = worker_count,
                                .worker_index = worker_count - 1,
                                .replicas_per_worker = replicas}});
      EXPECT_EQ(plan.division, Division::kNone);
      EXPECT_EQ(plan.batch_size, 2);
      EXPECT_EQ(plan.continues_at_end, worker_count > 1);
      const int64_t batches = (rows + 1) / 2;
      EXPECT_EQ(plan.step_count, worker_count == 1
                                     ? (batches + replicas - 1) / replicas
                                     : Dataset::kUnknownCardinality);
    }
  });
}

TEST(PlanSharding, CopiesNeverEndAndHaveOrdersOfTheirOwn) {
  const auto plan_of = [](const Dataset& dataset) {
    return PlanSharding({.path = BatchPath::kCopied,
                         .dataset = dataset,
                         .placement = {.worker_count = 3}});
  };
  const Dataset finite = Rows(9).Batch(4);
  ASSERT_OK_AND_ASSIGN(const ShardingPlan plan, plan_of(finite));
  EXPECT_EQ(plan.step_count, 3);
  EXPECT_EQ(plan.dataset.Cardinality(), Dataset::kInfinite);
  EXPECT_TRUE(plan.decorrelates_all_shuffles);
  EXPECT_EQ(plan.context.num_input_pipelines, 3);
  EXPECT_EQ(plan.context.num_replicas_in_sync, 1);
  EXPECT_EQ(plan.division, Division::kNone);
  const Dataset infinite = finite.Repeat();
  ASSERT_OK_AND_ASSIGN(const ShardingPlan same, plan_of(infinite));
  EXPECT_EQ(same.step_count, Dataset::kInfinite);
  EXPECT_EQ(same.dataset.node(), infinite.node());
  EXPECT_THAT(plan_of(CsvFiles(WriteFiles({3})).Batch(2)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the length of the data is unknown")));
}

TEST(PlanSharding, WhatAProgramMakesPerWorkerStaysAsItIs) {
  const Dataset dataset = CsvFiles(WriteFiles({3})).Shuffle(2);
  const ShardingPlan plan =
      PlanOf({.path = BatchPath::kMadePerWorker,
              .dataset = dataset,
              .placement = {.worker_count = 3, .worker_index = 2}});
  EXPECT_EQ(plan.dataset.node(), dataset.node());
  EXPECT_FALSE(plan.decorrelates_all_shuffles);
  EXPECT_FALSE(plan.continues_at_end);
  EXPECT_EQ(plan.context.input_pipeline_id, 2);
  EXPECT_EQ(plan.element_types, dataset.element_types());
}

TEST(PlanSharding, ShufflesFollowThePipeline) {
  const Dataset dataset =
      Rows(40).Shuffle(40, {.seed = 3, .decorrelate = true}).Batch(40);
  const auto rows_of = [&](Policy policy, int worker) {
    const ShardingPlan plan =
        PlanOf({.dataset = dataset,
                .placement = {.worker_count = 2, .worker_index = worker},
                .options = {.auto_shard_policy = policy}});
    Element batch;
    EXPECT_THAT((*plan.MakeIterator(/*epoch=*/1))->Next(&batch),
                IsOkAndHolds(true));
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < 40; ++i) rows.push_back(NumberOf(batch[0], i));
    return rows;
  };
  const std::vector<int64_t> alone = BatchesOf(dataset, /*epoch=*/1)[0];
  EXPECT_EQ(rows_of(Policy::kData, 0), alone);
  EXPECT_EQ(rows_of(Policy::kData, 1), alone);
  EXPECT_EQ(rows_of(Policy::kOff, 0), alone);
  EXPECT_NE(rows_of(Policy::kOff, 1), alone);
}

TEST(PlanSharding, PrintsItselfInOneLine) {
  const Dataset files = CsvFiles(WriteFiles({4, 4, 4, 4, 4, 4, 4})).Batch(6);
  const auto text = [](const Dataset& dataset, int worker, int replicas,
                       const InputOptions& options) {
    return PlanOf({.dataset = dataset,
                   .placement = {.worker_count = 3,
                                 .worker_index = worker,
                                 .replicas_per_worker = replicas},
                   .options = options})
        .ToString();
  };
  EXPECT_EQ(text(files, 1, 1, {}),
            "auto_shard_policy AUTO: files are sharded among 3 workers (FILE); "
            "worker 1 of 3: reads files 1 + 3 i (2 of 7); takes 3 steps for "
            "each batch of 6, with at most 2 rows per replica (BALANCED); at "
            "the end continues without rows until all workers reach their end; "
            "shuffles as "
            "pipeline 1 of 3");
  EXPECT_EQ(text(Rows(9).Batch(7), 2, 1, {}),
            "auto_shard_policy AUTO: each of 3 workers reads everything and "
            "takes its rows of each batch (DATA), because a source of the "
            "dataset reads no files: it is in memory or made on the fly; set "
            "auto_shard_policy to DATA if that is meant; worker 2 of 3: takes "
            "rows 6 to below 7 for each batch of 7, with at most 3 rows per "
            "replica (LEGACY); at the end continues without rows until all "
            "workers reach their end; shuffles as pipeline 0 of 1");
  EXPECT_THAT(text(Rows(9).Batch(7), 0, 1, {.auto_shard_policy = Policy::kOff}),
              HasSubstr("(OFF); unless it is sharded already, an epoch sees "
                        "the data 3 times; worker 0 of 3"));
  EXPECT_THAT(text(files, 0, 3, {}),
              HasSubstr("a global batch of 6 for 9 replicas"));
  EXPECT_EQ(PlanOf({.dataset = Dataset::Range(3)}).ToString(),
            "one worker reads everything; worker 0 of 1: takes whole batches; "
            "shuffles as pipeline 0 of 1");
  EXPECT_EQ(PlanOf({.path = BatchPath::kCopied,
                    .dataset = Dataset::Range(3),
                    .placement = {.worker_count = 2}})
                .ToString(),
            "every worker draws from a copy of the dataset, which starts again "
            "at its end; worker 0 of 2: takes whole batches; shuffles as "
            "pipeline 0 of 2, each in another order");
}

std::string LogOf(const Dataset& dataset, const InputPlacement& placement,
                  const InputOptions& options) {
  testing::internal::CaptureStderr();
  EXPECT_OK(DistributeDataset(dataset, placement, options));
  return testing::internal::GetCapturedStderr();
}

TEST(LogPlan, OneOfSeveralWorkersLogsThePlanOnce) {
  const Dataset dataset = Rows(9).Batch(4);
  const InputOptions options = {.auto_shard_policy = Policy::kData};
  const InputPlacement first = {.worker_count = 2};
  const std::string log = LogOf(dataset, first, options);
  const std::string plan =
      PlanOf({.dataset = dataset, .placement = first, .options = options})
          .ToString();
  EXPECT_THAT(log, AllOf(StartsWith("I"), HasSubstr(plan)));
  EXPECT_EQ(log.find(plan), log.rfind(plan));
  EXPECT_THAT(LogOf(dataset, {.worker_count = 2, .worker_index = 1}, options),
              IsEmpty());
  EXPECT_THAT(LogOf(dataset, {.replicas_per_worker = 2}, options), IsEmpty());
  EXPECT_THAT(LogOf(dataset, first, {.exactly_once = true}), IsEmpty());
}

TEST(PlanSharding, LogsNothing) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(PlanOf({.dataset = Rows(9).Batch(4),
                      .placement = {.worker_count = 5},
                      .options = {.auto_shard_policy = Policy::kOff}})
                  .has_warning);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
}

}  // namespace
}  // namespace muster
