#include "worker/worker_session.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/compute/graph/graph_builder.h"
#include "common/compute/graph/graph_codec.h"
#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/graph.pb.h"
#include "proto/worker.pb.h"
#include "worker/client/step_signature.h"
#include "worker/client/worker_protocol.h"
#include "worker/graph_cache.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kEcho = 1;

// Collects the reports of a session.
class Reports {
 public:
  void Add(const Message& message) ABSL_LOCKS_EXCLUDED(mutex_) {
    proto::WorkerReport report;
    ASSERT_TRUE(report.ParseFromString(message.body));
    absl::MutexLock lock(&mutex_);
    ++message_count_;
    for (const auto& range : report.finished()) count_ += range.count();
    count_ +=
        report.results_size() + report.failures_size() + report.returned_size();
    all_.MergeFrom(report);
  }

  // Blocks until `count` closures have been reported, and returns all reports
  // merged.
  proto::WorkerReport Await(int64_t count) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [this, count]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return count_ >= count;
    };
    EXPECT_TRUE(Clock::Real()->AwaitWithDeadline(
        &mutex_, absl::Condition(&enough),
        Clock::Real()->Now() + absl::Seconds(60)));
    return all_;
  }

  int message_count() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return message_count_;
  }

 private:
  absl::Mutex mutex_;
  proto::WorkerReport all_ ABSL_GUARDED_BY(mutex_);
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  int message_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

class WorkerSessionTest : public testing::Test {
 protected:
  void Start() {
    session_ = std::make_unique<WorkerSession>(
        options_, StepRunner::Environment{.ops = &ops_, .kernels = &kernels_},
        &graphs_, Clock::Real(),
        [this](Message message) { reports_.Add(message); },
        [](const absl::Status&) {});
    GraphBuilder builder(&ops_, "echo");
    builder.AddResult(builder.Parameter("x", {DType::kFloat32, {-1}},
                                        ToAttributes({.argument = 0})));
    const std::string graph =
        EncodeGraph(*std::move(builder).Build()).SerializeAsString();
    proto::WorkerCommand command;
    proto::FunctionDefinition* const function = command.add_functions();
    function->set_function_id(kEcho);
    function->set_fingerprint(GraphFingerprint(graph));
    function->set_graph(graph);
    ASSERT_OK(session_->Accept(command, {}));
  }

  static void AddRun(uint64_t first_id, uint32_t count,
                     proto::WorkerCommand* command) {
    proto::ClosureRun* const run = command->add_runs();
    run->set_first_id(first_id);
    run->set_count(count);
    run->set_function_id(kEcho);
    run->add_arguments()->set_tensor(0);
  }

  OpRegistry ops_;
  KernelRegistry kernels_;
  GraphCache graphs_{&ops_};
  WorkerSession::Options options_;
  Reports reports_;
  std::unique_ptr<WorkerSession> session_;
  const Tensor small_ = Tensor::FromValues<float>({2}, {1, 2});
};

TEST_F(WorkerSessionTest, ReportsManyClosuresInFewMessages) {
  Start();
  proto::WorkerCommand command;
  AddRun(1, 5000, &command);
  command.mutable_runs(0)->set_results_unwanted(true);
  ASSERT_OK(session_->Accept(command, {small_}));
  const proto::WorkerReport report = reports_.Await(5000);
  EXPECT_EQ(report.results_size(), 0);
  int64_t step_count = 0;
  for (const proto::FunctionTime& time : report.function_times()) {
    EXPECT_EQ(time.function_id(), kEcho);
    EXPECT_GT(time.busy_ns(), 0);
    step_count += time.step_count();
  }
  EXPECT_EQ(step_count, 5000);
  EXPECT_LT(reports_.message_count(), 2500);
}

TEST_F(WorkerSessionTest, SendsSmallResultsAndKeepsLargeOnes) {
  options_.inline_result_bytes_max = 8;
  options_.kept_result_bytes_max = 48;
  Start();
  const Tensor large = Tensor::Full(DType::kFloat32, {10}, 1);
  proto::WorkerCommand command;
  AddRun(1, 1, &command);
  AddRun(2, 2, &command);
  command.mutable_runs(1)->mutable_arguments(0)->set_tensor(1);
  ASSERT_OK(session_->Accept(command, {small_, large}));
  const proto::WorkerReport report = reports_.Await(3);
  ASSERT_EQ(report.results_size(), 3);
  EXPECT_FALSE(report.results(0).kept());
  EXPECT_TRUE(report.results(1).kept());
  // The limit allows one kept result.
  EXPECT_FALSE(report.results(2).kept());
  ASSERT_OK_AND_ASSIGN(const auto kept, session_->FetchResult(2));
  EXPECT_TRUE(BitwiseEqual(kept[0], large));

  proto::WorkerCommand release;
  release.add_released(2);
  ASSERT_OK(session_->Accept(release, {}));
  EXPECT_THAT(session_->FetchResult(2),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("closure 2")));
}

TEST_F(WorkerSessionTest, ReturnsRecalledClosuresThatHaveNotStarted) {
  // Without runners no closure is started.
  options_.runner_count = 0;
  Start();
  proto::WorkerCommand command;
  AddRun(10, 5, &command);
  ASSERT_OK(session_->Accept(command, {small_}));
  proto::WorkerCommand recall;
  for (const uint64_t id : {12, 10, 14, 12, 99}) recall.add_recalled(id);
  ASSERT_OK(session_->Accept(recall, {}));
  const proto::WorkerReport report = reports_.Await(3);
  EXPECT_THAT(
      std::vector<uint64_t>(report.returned().begin(), report.returned().end()),
      testing::ElementsAre(12, 10, 14));
}

TEST_F(WorkerSessionTest, ReportsTheErrorOfAFailedClosure) {
  Start();
  proto::WorkerCommand command;
  AddRun(1, 1, &command);
  ASSERT_OK(session_->Accept(command, {Tensor::Scalar(1.0f)}));
  const proto::WorkerReport report = reports_.Await(1);
  ASSERT_EQ(report.failures_size(), 1);
  EXPECT_EQ(report.failures(0).id(), 1u);
  EXPECT_EQ(report.failures(0).status().code(),
            static_cast<int>(absl::StatusCode::kInvalidArgument));
}

TEST_F(WorkerSessionTest, RejectsInconsistentCommands) {
  Start();
  proto::WorkerCommand command;
  AddRun(1, 1, &command);
  // The tensor is missing.
  EXPECT_THAT(session_->Accept(command, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  command.mutable_runs(0)->mutable_arguments(0)->set_iterator_id(3);
  EXPECT_THAT(
      session_->Accept(command, {small_}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("iterator 3")));
  command.mutable_runs(0)->set_function_id(77);
  EXPECT_THAT(
      session_->Accept(command, {small_}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("function 77")));
  command.mutable_runs(0)->set_count(0xffffffff);
  EXPECT_THAT(session_->Accept(command, {small_}),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(WorkerSessionTest, StoppedSessionStartsAndReportsNothing) {
  Start();
  session_->Stop();
  proto::WorkerCommand command;
  AddRun(1, 10, &command);
  EXPECT_OK(session_->Accept(command, {small_}));
  session_->Join();
  EXPECT_EQ(reports_.message_count(), 0);
}

}  // namespace
}  // namespace muster
