#include "coordinator/definitions.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/duration_histogram.h"
#include "coordinator/per_worker_dataset.h"
#include "coordinator/worker_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/worker.pb.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(DefinitionsTest, FunctionsWithTheSameGraphAreOne) {
  Definitions definitions;
  EXPECT_FALSE(definitions.has_functions());
  EXPECT_EQ(definitions.AddFunction("a", "graph"), 0u);
  EXPECT_EQ(definitions.AddFunction("b", "another graph"), 1u);
  EXPECT_EQ(definitions.AddFunction("c", "graph"), 0u);
  EXPECT_TRUE(definitions.has_functions());
}

TEST(DefinitionsTest, TellsAWorkerEachDefinitionOnce) {
  Definitions definitions;
  definitions.AddFunction("a", "graph");
  WorkerRecord record;
  proto::WorkerCommand first;
  definitions.AddTo(&record, &first);
  ASSERT_EQ(first.functions_size(), 1);
  EXPECT_EQ(first.functions(0).graph(), "graph");

  definitions.AddFunction("b", "another graph");
  proto::WorkerCommand second;
  definitions.AddTo(&record, &second);
  ASSERT_EQ(second.functions_size(), 1);
  EXPECT_EQ(second.functions(0).function_id(), 1u);
}

TEST(DefinitionsTest, SendsNoGraphThatTheWorkerHas) {
  Definitions definitions;
  definitions.AddFunction("a", "graph");
  WorkerRecord record;
  proto::WorkerCommand command;
  definitions.AddTo(&record, &command);
  // The next session of the same process, which has kept the graph.
  const auto kept = record.known_fingerprints;
  record.ResetSession();
  record.known_fingerprints = kept;
  command.Clear();
  definitions.AddTo(&record, &command);
  ASSERT_EQ(command.functions_size(), 1);
  EXPECT_EQ(command.functions(0).graph(), "");
}

TEST(DefinitionsTest, SendsAWorkerItsIterator) {
  IteratorRecord iterator;
  iterator.serialized_datasets = {"of worker 0", "of worker 1"};
  iterator.contexts.resize(2);
  iterator.contexts[1].set_epoch(5);
  Definitions definitions;
  EXPECT_EQ(definitions.AddIterator(std::move(iterator)), 0u);
  WorkerRecord record;
  record.worker = 1;
  record.sessions_open_count = 3;
  proto::WorkerCommand command;
  definitions.AddTo(&record, &command);
  ASSERT_EQ(command.iterators_size(), 1);
  EXPECT_EQ(command.iterators(0).dataset(), "of worker 1");
  // The worker has reconnected twice; each new session begins another pass.
  EXPECT_EQ(command.iterators(0).epoch(), 7u);
}

TEST(DefinitionsTest, AddsUpTheDurationsOfSteps) {
  Definitions definitions;
  definitions.AddFunction("a", "graph");
  proto::WorkerReport report;
  proto::FunctionTime* const time = report.add_function_times();
  time->set_step_count(4);
  time->set_busy_ns(8000);
  ASSERT_OK(definitions.AddStepDurations(report));
  EXPECT_EQ(definitions.TotalStepDuration(), absl::Microseconds(8));
  EXPECT_EQ(definitions.StepDurations(0).count(), 4);

  time->set_function_id(1);
  EXPECT_THAT(definitions.AddStepDurations(report),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("4 steps of function 1; expected one step or "
                                 "more of one of 1 functions")));
}

}  // namespace
}  // namespace muster
