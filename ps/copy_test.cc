// A server keeps a copy on another one, which takes over.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/parameter_server.pb.h"
#include "ps/client/methods.h"
#include "ps/client/remote_variable_store.h"
#include "ps/parameter_server.h"
#include "ps/testing/shard_state.h"
#include "ps/testing/store_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 512;
constexpr int64_t kColumns = 64;

// Server 0 of the store can be served by either task.
class CopyTest : public StoreFixture, public testing::WithParamInterface<bool> {
 protected:
  CopyTest() : StoreFixture(/*shared_memory=*/GetParam()) {}

  void SetUp() override {
    for (int i = 0; i < 2; ++i) {
      servers_.push_back(StartServer(i, 100 + i));
      channels_.push_back(Connect(i));
    }
    copy_count_ = 2;
    store_ = OpenStore("chief");
    ASSERT_OK(
        store_->Create(RandomSpec("x", Shape({kRows, kColumns}), /*seed=*/5)));
    ASSERT_OK(store_->SetOptimizer(Adam({.learning_rate = 0.01})));
  }

  void Restart(int task, uint64_t incarnation) {
    const std::string address = servers_[task]->address();
    // Calls in progress get their answers.
    servers_[task]->Shutdown();
    servers_[task] = nullptr;
    servers_[task] = StartServer(task, incarnation, address);
    channels_[task] = Connect(task);
  }

  std::unique_ptr<Channel> Connect(int task) {
    ChannelOptions channel;
    channel.address = servers_[task]->address();
    channel.peer_task_type = "ps";
    channel.peer_task_index = task;
    channel.caller = {"chief", 0, 7};
    channel.job_id = "job";
    channel.target_incarnation = servers_[task]->incarnation();
    return Network::Grpc()->Connect(channel);
  }

  absl::Status KeepCopy(int source, int holder) {
    proto::KeepCopyRequest request;
    request.mutable_holder()->set_task_index(holder);
    request.mutable_holder()->set_incarnation(servers_[holder]->incarnation());
    request.mutable_holder()->set_address(servers_[holder]->address());
    return channels_[source]
        ->Call<proto::KeepCopyResponse>(kKeepCopyMethod, request, {})
        .status();
  }
  absl::Status DropCopy(int source) {
    return channels_[source]
        ->Call<proto::KeepCopyResponse>(kKeepCopyMethod,
                                        proto::KeepCopyRequest(), {})
        .status();
  }
  absl::Status TakeOver(int holder, uint64_t state_id) {
    proto::TakeOverRequest request;
    request.set_state_id(state_id);
    return channels_[holder]
        ->Call<proto::TakeOverResponse>(kTakeOverMethod, request, {})
        .status();
  }
  proto::CopyStatus Status(int task) {
    return servers_[task]->service().copy_status();
  }
  void AwaitComplete(int source) {
    ASSERT_TRUE(AwaitTrue([&] { return Status(source).is_complete(); }));
  }

  // Pushes gradients until stop(), each from its own step. Returns the number
  // of pushes that were acknowledged.
  int64_t Push(uint64_t first_step, const std::atomic<bool>* stop) {
    const auto store = OpenStore("worker", /*retry_for=*/absl::Seconds(30));
    auto session =
        store
            ->OpenSession(
                {{{.name = "x", .is_read = true, .is_updated = true}}})
            .value();
    int64_t count = 0;
    for (uint64_t step = first_step; !*stop; ++step) {
      const Tensor gradient = Tensor::Full(
          DType::kFloat32, Shape({kRows, kColumns}), 0.001 * (step % 7));
      // A server that ends cancels calls. As a closure, the step then runs
      // again under its id.
      absl::Status pushed = absl::CancelledError();
      for (int attempt = 0; attempt < 100 && absl::IsCancelled(pushed);
           ++attempt) {
        pushed = RunStep(session.get(), step, gradient);
      }
      EXPECT_OK(pushed);
      if (!pushed.ok()) break;
      ++count;
    }
    return count;
  }

  static absl::Status RunStep(VariableSession* session, uint64_t step,
                              const Tensor& gradient) {
    RETURN_IF_ERROR(session->Begin(step));
    RETURN_IF_ERROR(session->Read(0).status());
    RETURN_IF_ERROR(
        session->Update(0, UpdateKind::kApplyGradient, gradient, Tensor()));
    return session->Commit();
  }

  int64_t UpdateCount(int task) {
    return servers_[task]
        ->service()
        .shard()
        .Describe()
        .shards(0)
        .update_count();
  }

  void ExpectEqualStates() {
    const std::vector<std::string> expected =
        StateOf(servers_[0]->service().shard());
    const std::vector<std::string> actual =
        StateOf(servers_[1]->service().shard());
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      ASSERT_TRUE(actual[i] == expected[i]) << "part " << i;
    }
  }

  std::vector<std::unique_ptr<Channel>> channels_;
};

TEST_P(CopyTest, AHolderHasTheSameBits) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> workers;
  for (uint64_t worker = 0; worker < 3; ++worker) {
    workers.emplace_back([&, worker] { Push(1 + worker * 1'000'000, &stop); });
  }
  ASSERT_TRUE(AwaitTrue([&] { return UpdateCount(0) > 20; }));
  ASSERT_OK(KeepCopy(0, 1));
  AwaitComplete(0);
  const int64_t before = UpdateCount(0);
  ASSERT_TRUE(AwaitTrue([&] { return UpdateCount(0) > before + 50; }));
  stop = true;
  for (std::thread& worker : workers) worker.join();
  ASSERT_TRUE(AwaitTrue([&] { return UpdateCount(1) == UpdateCount(0); }));
  ExpectEqualStates();
}

TEST_P(CopyTest, PushesContinueWithTheHolderAndAreAppliedOnce) {
  ASSERT_OK(KeepCopy(0, 1));
  AwaitComplete(0);
  std::atomic<bool> stop = false;
  std::atomic<int64_t> acknowledged = 0;
  std::vector<std::thread> workers;
  for (uint64_t worker = 0; worker < 3; ++worker) {
    workers.emplace_back(
        [&, worker] { acknowledged += Push(1 + worker * 1'000'000, &stop); });
  }
  int serving = 0;
  for (uint64_t life = 1; life <= 4; ++life) {
    const int64_t before = UpdateCount(serving);
    ASSERT_TRUE(AwaitTrue([&] { return UpdateCount(serving) > before + 20; }));
    // The source is not told. It learns that it was replaced.
    const int holder = 1 - serving;
    const uint64_t state_id = servers_[serving]->service().state_id();
    ASSERT_OK(TakeOver(holder, state_id));
    EXPECT_EQ(servers_[holder]->service().state_id(), state_id);
    EXPECT_EQ(servers_[serving]
                  ->service()
                  .AwaitEnd({.timeout = absl::Minutes(1)}, absl::Minutes(1))
                  .end,
              ParameterService::End::kReplaced);
    Restart(serving, /*incarnation=*/200 + life);
    ASSERT_OK(KeepCopy(holder, serving));
    AwaitComplete(holder);
    serving = holder;
  }
  stop = true;
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(UpdateCount(serving), acknowledged);
}

TEST_P(CopyTest, AnswersWaitForALostHolderUntilTheCopyIsDropped) {
  ASSERT_OK(KeepCopy(0, 1));
  AwaitComplete(0);
  auto session =
      store_
          ->OpenSession({{{.name = "x", .is_read = true, .is_updated = true}}})
          .value();
  ASSERT_OK(session->Begin(1));
  ASSERT_OK(session->Read(0).status());
  ASSERT_OK(session->Update(
      0, UpdateKind::kApplyGradient,
      Tensor::Full(DType::kFloat32, Shape({kRows, kColumns}), 1), Tensor()));
  servers_[1] = nullptr;
  ASSERT_TRUE(AwaitTrue([&] { return !Status(0).problem().empty(); }));
  std::atomic<bool> has_ended = false;
  std::thread worker([&] {
    EXPECT_OK(session->Commit());
    has_ended = true;
  });
  // The update is applied, and its answer waits.
  ASSERT_TRUE(AwaitTrue([&] { return UpdateCount(0) == 1; }));
  EXPECT_FALSE(has_ended);
  ASSERT_OK(DropCopy(0));
  worker.join();
  EXPECT_EQ(UpdateCount(0), 1);
}

TEST_P(CopyTest, AHolderServesNoTaskAndTakesOverACompleteCopyOnly) {
  EXPECT_THAT(TakeOver(1, servers_[0]->incarnation()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("holds no complete copy")));
  ASSERT_OK(KeepCopy(0, 1));
  AwaitComplete(0);
  EXPECT_THAT(TakeOver(1, 4711),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(channels_[1]
                  ->Call<proto::FreezeResponse>(kFreezeMethod,
                                                proto::FreezeRequest(), {})
                  .status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("holds a copy of ps 0")));
  EXPECT_THAT(KeepCopy(1, 0), StatusIs(absl::StatusCode::kFailedPrecondition));
}

INSTANTIATE_TEST_SUITE_P(SharedMemory, CopyTest, testing::Bool());

}  // namespace
}  // namespace muster
