#include "ps/client/remote_variable_store.h"

#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/compute/variables/local_variable_store.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/fault_point.h"
#include "common/net/rpc/status_detail.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/optimizer.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/rpc.pb.h"
#include "proto/variable.pb.h"
#include "ps/parameter_server.h"
#include "ps/testing/store_fixture.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

proto::Optimizer Sgd(double learning_rate) {
  proto::Optimizer optimizer;
  optimizer.mutable_sgd()->set_learning_rate(learning_rate);
  return optimizer;
}

proto::Optimizer Adam() {
  proto::Optimizer optimizer;
  optimizer.mutable_adam()->set_learning_rate(0.1);
  return optimizer;
}

Tensor Floats(const Shape& shape, std::vector<float> values) {
  return Tensor::FromSpan<float>(shape, values);
}

Tensor Rows(std::vector<int64_t> rows) {
  return Tensor::FromSpan<int64_t>(Shape({static_cast<int64_t>(rows.size())}),
                                   rows);
}

std::vector<float> Flat(const Tensor& tensor) {
  const auto flat = tensor.flat<float>();
  return std::vector<float>(flat.begin(), flat.end());
}

// The transport of tensors.
enum class TransportKind { kGrpc, kSharedMemory };

class RemoteVariableStoreTest
    : public StoreFixture,
      public testing::WithParamInterface<TransportKind> {
 protected:
  RemoteVariableStoreTest()
      : StoreFixture(GetParam() == TransportKind::kSharedMemory) {}
};

// Sharded variables have the same initial values on several servers as in one
// process, and the same bits after training.
TEST_P(RemoteVariableStoreTest, ShardedTrainingMatchesOneProcess) {
  LocalVariableStore local;
  std::vector<VariableStore*> stores = {store_.get(), &local};
  const Shape table({7, 3});
  for (VariableStore* store : stores) {
    ASSERT_OK(store->Create(RandomSpec("table", table, 5)));
    ASSERT_OK(store->Create(RandomSpec("bias", Shape(), 6)));
    ASSERT_OK(store->SetOptimizer(Adam()));
    ASSERT_OK_AND_ASSIGN(
        auto session,
        store->OpenSession({{{.name = "table", .is_updated = true},
                             {.name = "bias", .is_updated = true}}}));
    for (int step = 1; step <= 5; ++step) {
      ASSERT_OK(session->Begin(step));
      Tensor gathered;
      ASSERT_OK(session->Gather(0, Rows({6, 0, 6}), &gathered));
      ASSERT_OK(session->Update(0, UpdateKind::kApplySparseGradient, gathered,
                                Rows({6, 0, 6})));
      ASSERT_OK(session->Update(1, UpdateKind::kApplyGradient,
                                Tensor::Scalar(0.5f * step), Tensor()));
      ASSERT_OK(session->Commit());
    }
    // A dense gradient after sparse ones: it uses the same step count on all
    // shards.
    ASSERT_OK_AND_ASSIGN(const Tensor value, store->Read("table"));
    ASSERT_OK(session->Begin(6));
    ASSERT_OK(session->Update(0, UpdateKind::kApplyGradient, value, Tensor()));
    ASSERT_OK(session->Commit());
    EXPECT_THAT(store->UpdateCounts({"bias", "table"}),
                IsOkAndHolds(ElementsAre(5, 6)));
  }
  for (const char* name : {"table", "bias"}) {
    ASSERT_OK_AND_ASSIGN(const Tensor remote_value, store_->Read(name));
    ASSERT_OK_AND_ASSIGN(const Tensor local_value, local.Read(name));
    EXPECT_TRUE(BitwiseEqual(remote_value, local_value))
        << remote_value.DebugString() << " and " << local_value.DebugString();
  }
}

// A variable whose constraint needs the norms of columns is not sharded. Other
// constraints are applied to each shard. The large variable has several
// stripes.
TEST_P(RemoteVariableStoreTest, ConstraintsAreThoseOfOneProcess) {
  const std::vector<Shape> shapes = {{7, 3}, {50000, 3}};
  int64_t last_step = 0;
  for (const char* const text :
       {"max_norm { max_value: 0.5 axis: 0 }", "unit_norm {}", "non_neg {}",
        "min_max_norm { min_value: 0.2 max_value: 0.4 rate: 0.5 axis: 1 }"}) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      const std::string name = absl::StrCat(text, i);
      SCOPED_TRACE(name);
      LocalVariableStore local;
      std::vector<VariableStore*> stores = {store_.get(), &local};
      std::vector<Tensor> values;
      for (VariableStore* store : stores) {
        proto::VariableSpec spec = RandomSpec(name, shapes[i], 5);
        ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
            text, spec.mutable_constraint()));
        ASSERT_OK(store->Create(spec));
        ASSERT_OK(store->SetOptimizer(Sgd(0.5)));
        ASSERT_OK_AND_ASSIGN(
            auto session,
            store->OpenSession({{{.name = name, .is_updated = true}}}));
        for (int step = 0; step < 3; ++step) {
          ASSERT_OK(session->Begin(++last_step));
          ASSERT_OK(session->Update(0, UpdateKind::kApplySparseGradient,
                                    Floats({2, 3}, {1, -2, 3, -4, 5, -6}),
                                    Rows({6, 0})));
          ASSERT_OK(session->Commit());
        }
        ASSERT_OK_AND_ASSIGN(Tensor gradient, store->Read(name));
        ASSERT_OK(session->Begin(++last_step));
        ASSERT_OK(
            session->Update(0, UpdateKind::kApplyGradient, gradient, Tensor()));
        ASSERT_OK(session->Commit());
        ASSERT_OK_AND_ASSIGN(values.emplace_back(), store->Read(name));
        spec.mutable_constraint()->mutable_unit_norm()->add_axis(-1);
        EXPECT_THAT(store->Create(spec),
                    StatusIs(absl::StatusCode::kAlreadyExists,
                             HasSubstr("exists with constraint")));
      }
      EXPECT_TRUE(BitwiseEqual(values[0], values[1]));
    }
  }
}

TEST_P(RemoteVariableStoreTest, EveryUpdateKindReachesEveryShard) {
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, Shape({5, 1}))));
  ASSERT_OK(store_->Assign("x", Floats({5, 1}, {0, 1, 2, 3, 4})));
  ASSERT_OK_AND_ASSIGN(
      auto session,
      store_->OpenSession(
          {{{.name = "x", .is_read = true, .is_updated = true}}}));
  ASSERT_OK(session->Begin(1));
  const Tensor ones = Tensor::Full(DType::kFloat32, Shape({5, 1}), 1);
  ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd, ones, Tensor()));
  ASSERT_OK(session->Update(0, UpdateKind::kAssignSub, ones, Tensor()));
  ASSERT_OK(session->Update(0, UpdateKind::kScatterAdd,
                            Floats({4, 1}, {10, 20, 30, 40}),
                            Rows({4, 0, 4, 2})));
  ASSERT_OK(session->Update(0, UpdateKind::kScatterSub, Floats({1, 1}, {5}),
                            Rows({3})));
  // The last update of a repeated row wins.
  ASSERT_OK(session->Update(0, UpdateKind::kScatterUpdate,
                            Floats({2, 1}, {8, 9}), Rows({1, 1})));
  ASSERT_OK(session->Commit());
  ASSERT_OK_AND_ASSIGN(const Tensor value, store_->Read("x"));
  EXPECT_THAT(Flat(value), ElementsAre(20, 9, 42, -2, 44));
}

TEST_P(RemoteVariableStoreTest, AReadSeesTheStepsOwnUpdates) {
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, Shape({3, 1}))));
  ASSERT_OK_AND_ASSIGN(auto session,
                       store_->OpenSession({{{.name = "x",
                                              .is_read = true,
                                              .is_gathered = true,
                                              .is_updated = true}}}));
  ASSERT_OK(session->Begin(1));
  const Tensor ones = Tensor::Full(DType::kFloat32, Shape({3, 1}), 1);
  ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd, ones, Tensor()));
  ASSERT_OK_AND_ASSIGN(Tensor read, session->Read(0));
  EXPECT_THAT(Flat(read), Each(1.0f));
  ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd, ones, Tensor()));
  Tensor rows;
  ASSERT_OK(session->Gather(0, Rows({2, 2}), &rows));
  EXPECT_THAT(Flat(rows), ElementsAre(2, 2));
  ASSERT_OK(session->Commit());
  // A second attempt reads the same values and changes nothing.
  ASSERT_OK(session->Begin(1));
  ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd, ones, Tensor()));
  ASSERT_OK_AND_ASSIGN(read, session->Read(0));
  EXPECT_THAT(Flat(read), Each(2.0f));
  ASSERT_OK(session->Commit());
}

// One attempt finds an infinite gradient, the other does not, in either order:
// the loss scale is updated once, the weights at most once.
TEST_P(RemoteVariableStoreTest, AttemptsThatDifferInAppliedGradientsCountOnce) {
  ASSERT_OK(store_->SetOptimizer(Sgd(1)));
  const std::vector<std::string> names = {"w", "v", "scale"};
  for (const std::string& name : names) {
    ASSERT_OK(store_->Create(Spec(name, DType::kFloat32,
                                  name == "scale" ? Shape() : Shape({3, 1}))));
  }
  const auto use = [](const std::string& name, int position) {
    return VariableUse{.name = name,
                       .is_read = true,
                       .is_updated = true,
                       .updates = {{.position = position,
                                    .kind = UpdateKind::kApplyGradient,
                                    .loss_scale = "scale"}}};
  };
  ASSERT_OK_AND_ASSIGN(
      auto session,
      store_->OpenSession(
          {use("w", 0), use("v", 1), {.name = "scale", .is_read = true}}));
  const auto attempt = [&](uint64_t step, float gradient) -> absl::Status {
    RETURN_IF_ERROR(session->Begin(step));
    for (const int variable : {0, 1}) {
      RETURN_IF_ERROR(session->Update(
          variable, UpdateKind::kApplyGradient,
          Tensor::Full(DType::kFloat32, Shape({3, 1}), gradient), Tensor()));
    }
    return session->Commit();
  };
  const float infinity = std::numeric_limits<float>::infinity();
  ASSERT_OK(attempt(1, infinity));
  ASSERT_OK(attempt(1, 1));
  EXPECT_THAT(store_->UpdateCounts(names), IsOkAndHolds(ElementsAre(1, 1, 1)));
  ASSERT_OK(attempt(2, 1));
  ASSERT_OK(attempt(2, infinity));
  EXPECT_THAT(store_->UpdateCounts(names), IsOkAndHolds(ElementsAre(2, 2, 2)));
  ASSERT_OK(attempt(3, infinity));
  ASSERT_OK(attempt(3, infinity));
  EXPECT_THAT(store_->UpdateCounts(names), IsOkAndHolds(ElementsAre(2, 2, 3)));
}

// A read of x also sends the pending updates of y.
TEST_P(RemoteVariableStoreTest, AReadSeesUpdatesSentByAnotherRead) {
  for (const char* const name : {"x", "y"}) {
    ASSERT_OK(store_->Create(Spec(name, DType::kFloat32, Shape({3, 1}))));
  }
  ASSERT_OK_AND_ASSIGN(
      auto session,
      store_->OpenSession(
          {{{.name = "x", .is_read = true, .is_updated = true},
            {.name = "y", .is_read = true, .is_updated = true}}}));
  ASSERT_OK(session->Begin(1));
  const Tensor ones = Tensor::Full(DType::kFloat32, Shape({3, 1}), 1);
  for (const float expected : {1.0f, 2.0f}) {
    for (const int variable : {0, 1}) {
      ASSERT_OK(
          session->Update(variable, UpdateKind::kAssignAdd, ones, Tensor()));
    }
    for (const int variable : {0, 1}) {
      ASSERT_OK_AND_ASSIGN(const Tensor read, session->Read(variable));
      EXPECT_THAT(Flat(read), Each(expected));
    }
  }
  ASSERT_OK(session->Commit());
}

TEST_P(RemoteVariableStoreTest, LookupsOfAnyShapeRouteByRow) {
  ASSERT_OK(store_->Create(RandomSpec("table", Shape({100, 4}), 3)));
  ASSERT_OK_AND_ASSIGN(const Tensor table, store_->Read("table"));
  ASSERT_OK_AND_ASSIGN(
      auto session,
      store_->OpenSession({{{.name = "table", .is_gathered = true}}}));
  RandomStream random(1);
  for (int64_t count : {0, 1, 7, 500}) {
    Tensor indices(DType::kInt32, Shape({count, 2}));
    for (int32_t& index : indices.mutable_flat<int32_t>()) {
      index = static_cast<int32_t>(random.Below(100));
    }
    ASSERT_OK(session->Begin(0));
    Tensor rows;
    ASSERT_OK(session->Gather(0, indices, &rows));
    ASSERT_OK(session->Commit());
    ASSERT_EQ(rows.shape(), Shape({count, 2, 4}));
    for (int64_t i = 0; i < 2 * count; ++i) {
      const int64_t row = indices.flat<int32_t>()[i];
      for (int64_t k = 0; k < 4; ++k) {
        ASSERT_EQ(rows.flat<float>()[i * 4 + k],
                  table.flat<float>()[row * 4 + k]);
      }
    }
  }
}

TEST_P(RemoteVariableStoreTest, AnotherProcessFindsWhatWasCreated) {
  auto other = OpenStore("worker");
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, Shape({3}))));
  ASSERT_OK(store_->Create(Spec("y", DType::kInt64, Shape())));
  EXPECT_OK(other->Read("x"));
  const auto specs = other->List();
  ASSERT_EQ(specs.size(), 2);
  EXPECT_EQ(specs[0].name(), "x");
  EXPECT_EQ(specs[1].name(), "y");
  EXPECT_THAT(other->Read("z"), StatusIs(absl::StatusCode::kNotFound,
                                         HasSubstr("no variable \"z\"")));
  // The other process continues the placement of the first one.
  ASSERT_OK(other->Create(Spec("z", DType::kFloat32, Shape())));
  EXPECT_EQ(servers_[1]->service().shard().Describe().shards_size(), 2);
}

TEST_P(RemoteVariableStoreTest, AStepSeesWhatWasAppliedBeforeItWasScheduled) {
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, Shape())));
  auto other = OpenStore("worker");
  const std::vector<VariableUse> uses = {
      {.name = "x", .is_read = true, .is_updated = true}};
  ASSERT_OK_AND_ASSIGN(auto session, store_->OpenSession(uses));
  const Tensor one = Tensor::Scalar(1.0f);
  store_->NoteScheduled(2);
  ASSERT_OK(session->Begin(1));
  ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd, one, Tensor()));
  ASSERT_OK(session->Commit());
  ASSERT_OK(other->Assign("x", Tensor::Scalar(10.0f)));
  // Step 2 was scheduled before step 1 committed, so it uses the values that
  // the response to that commit contained.
  ASSERT_OK(session->Begin(2));
  EXPECT_EQ(session->Read(0)->scalar<float>(), 1);
  ASSERT_OK(session->Commit());
  // Step 3 is scheduled later, so it requests the value again.
  store_->NoteScheduled(3);
  ASSERT_OK(session->Begin(3));
  EXPECT_EQ(session->Read(0)->scalar<float>(), 10);
}

TEST_P(RemoteVariableStoreTest, MistakesAreFoundBeforeAnythingIsSent) {
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, Shape({4, 2}))));
  EXPECT_THAT(store_->Create(Spec("x", DType::kFloat32, Shape({4, 3}))),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_OK(store_->Create(Spec("x", DType::kFloat32, Shape({4, 2}))));
  EXPECT_THAT(store_->Assign("x", Tensor::Scalar(1.0f)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is a float32[4,2]")));
  EXPECT_THAT(store_->OpenSession({{{.name = "y"}}}),
              StatusIs(absl::StatusCode::kNotFound));
  ASSERT_OK_AND_ASSIGN(auto session, store_->OpenSession({{{.name = "x"}}}));
  ASSERT_OK(session->Begin(1));
  Tensor rows;
  EXPECT_THAT(session->Gather(0, Rows({4}), &rows),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("row 4 of variable \"x\" does not exist")));
  EXPECT_THAT(session->Update(0, UpdateKind::kScatterAdd, Floats({1, 1}, {1}),
                              Rows({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("takes a value float32[1,2]")));
}

// Three workers push whole numbers, and two of them run each step. Servers lose
// requests before they are applied and acknowledgements afterwards.
TEST_P(RemoteVariableStoreTest, StepsApplyOnceWhateverIsLostOrRepeated) {
  constexpr int kSteps = 40;
  ASSERT_OK(store_->Create(Spec("dense", DType::kFloat32, Shape({300, 5}))));
  ASSERT_OK(store_->Create(Spec("table", DType::kFloat32, Shape({50, 2}))));
  ASSERT_OK(store_->SetOptimizer(Sgd(1)));
  std::vector<Fault> faults;
  for (int i = 3; i < 60; i += 7) {
    faults.push_back({"ps.after_apply_before_ack", i, FaultAction::kFail, {}});
    faults.push_back({"ps.before_apply", i + 2, FaultAction::kFail, {}});
    faults.push_back({"rpc.admission_check", i * 2, FaultAction::kFail, {}});
  }
  SetFaults(std::move(faults));
  const Tensor dense = Tensor::Full(DType::kFloat32, Shape({300, 5}), -1);
  const Tensor sparse = Tensor::Full(DType::kFloat32, Shape({4, 2}), -1);
  const auto work = [&](int first, int stride) {
    auto store = OpenStore(absl::StrCat("worker"));
    auto session =
        store
            ->OpenSession(
                {{{.name = "dense", .is_read = true, .is_updated = true},
                  {.name = "table", .is_updated = true}}})
            .value();
    for (int i = 0; i < kSteps; ++i) {
      EXPECT_OK(session->Begin(1 + (first + i * stride) % kSteps));
      EXPECT_OK(session->Update(0, UpdateKind::kApplyGradient, dense, {}));
      EXPECT_OK(session->Update(1, UpdateKind::kApplySparseGradient, sparse,
                                Rows({0, 49, 49, 25})));
      EXPECT_OK(session->Commit());
    }
  };
  std::thread second([&] { work(0, 1); });
  std::thread third([&] { work(9, 3); });
  work(0, 1);
  second.join();
  third.join();
  EXPECT_GT(FaultPointPassCount("ps.after_apply_before_ack"), 60);
  SetFaults({});
  ASSERT_OK_AND_ASSIGN(const Tensor dense_value, store_->Read("dense"));
  EXPECT_THAT(Flat(dense_value), Each(float{kSteps}));
  ASSERT_OK_AND_ASSIGN(const Tensor table, store_->Read("table"));
  EXPECT_EQ(table.flat<float>()[0], float{kSteps});
  EXPECT_EQ(table.flat<float>()[99], float{2 * kSteps});
  EXPECT_EQ(table.flat<float>()[2], 0);
}

// At the beginning of the step one worker has the newest values and the other
// has to request them. Both send the same updates.
TEST_P(RemoteVariableStoreTest, AnotherAttemptMayNeedValuesThatTheFirstHeld) {
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, Shape({4}))));
  auto other = OpenStore("worker");
  store_->NoteScheduled(100);
  const std::vector<VariableUse> uses = {
      {.name = "x", .is_read = true, .is_updated = true}};
  ASSERT_OK_AND_ASSIGN(auto first, store_->OpenSession(uses));
  ASSERT_OK_AND_ASSIGN(auto second, other->OpenSession(uses));
  const Tensor ones = Tensor::Full(DType::kFloat32, Shape({4}), 1);
  for (uint64_t step = 1; step <= 5; ++step) {
    for (VariableSession* session : {first.get(), second.get()}) {
      ASSERT_OK(session->Begin(step));
      ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd, ones, Tensor()));
      ASSERT_OK(session->Commit());
    }
  }
  ASSERT_OK_AND_ASSIGN(const Tensor value, store_->Read("x"));
  EXPECT_THAT(Flat(value), Each(5.0f));
}

TEST_P(RemoteVariableStoreTest, LargeStepsGoInSeveralMessages) {
  ASSERT_OK(store_->SetOptimizer(Sgd(1)));
  const Shape shape({1024, 512});
  std::vector<VariableUse> uses;
  for (int i = 0; i < 20; ++i) {
    const std::string name = absl::StrCat("v", i);
    ASSERT_OK(store_->Create(Spec(name, DType::kFloat32, shape)));
    uses.push_back({.name = name, .is_read = true, .is_updated = true});
  }
  ASSERT_OK_AND_ASSIGN(auto session, store_->OpenSession(uses));
  store_->NoteScheduled(100);
  const Tensor gradient = Tensor::Full(DType::kFloat32, shape, -1);
  for (uint64_t step : {1, 1, 2}) {
    ASSERT_OK(session->Begin(step));
    for (int i = 0; i < 20; ++i) {
      ASSERT_OK(
          session->Update(i, UpdateKind::kApplyGradient, gradient, Tensor()));
    }
    ASSERT_OK(session->Commit());
  }
  EXPECT_GT(
      servers_[0]->service().shard().Describe().remembered_exchange_count(), 2);
  ASSERT_OK(session->Begin(3));
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(const Tensor value, session->Read(i));
    ASSERT_EQ(value.flat<float>()[0], 2);
    ASSERT_EQ(value.flat<float>()[1024 * 512 - 1], 2);
  }
}

TEST_P(RemoteVariableStoreTest, ALowWaterMarkReachesTheServers) {
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, Shape({2}))));
  ASSERT_OK_AND_ASSIGN(auto session, store_->OpenSession({{{.name = "x"}}}));
  for (uint64_t step = 1; step <= 10; ++step) {
    store_->SetLowWaterMark(step > 3 ? step - 3 : 0);
    ASSERT_OK(session->Begin(step));
    ASSERT_OK(
        session->Update(0, UpdateKind::kAssignAdd, Floats({2}, {1, 1}), {}));
    ASSERT_OK(session->Commit());
  }
  for (const auto& server : servers_) {
    EXPECT_EQ(server->service().shard().Describe().remembered_exchange_count(),
              4);
  }
}

TEST_P(RemoteVariableStoreTest, ALostServerIsNamedAndReportedToTheWatch) {
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, Shape({4}))));
  absl::Mutex mutex;
  int lost_server = -1;
  absl::Status lost_status;
  auto store = OpenStore("chief", absl::ZeroDuration());
  store->Watch(true, [&](int server, const absl::Status& status) {
    absl::MutexLock lock(&mutex);
    lost_server = server;
    lost_status = status;
  });
  ASSERT_OK(store->Read("x"));
  servers_[1].reset();
  {
    absl::MutexLock lock(&mutex);
    const auto is_lost = [&] { return lost_server >= 0; };
    ASSERT_TRUE(
        mutex.AwaitWithTimeout(absl::Condition(&is_lost), absl::Seconds(30)));
    EXPECT_EQ(lost_server, 1);
  }
  const absl::Status status = store->Read("x").status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ps 1 (")));
  const auto failure = GetTaskFailure(status);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->task_type(), "ps");
  EXPECT_EQ(failure->task_index(), 1);
  EXPECT_EQ(failure->incarnation(), 101);
}

TEST_P(RemoteVariableStoreTest, ARestartedServerRejectsRequestsForTheOldOne) {
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, Shape({4}))));
  const std::string address = servers_[0]->address();
  servers_[0].reset();
  servers_[0] = StartServer(0, 555, address);
  absl::Status status;
  do {  // The connection to the old server may not have ended yet.
    status = store_->Assign("x", Tensor::Zeros(DType::kFloat32, {4}));
  } while (absl::IsUnavailable(status));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("was restarted")));
}

TEST_P(RemoteVariableStoreTest, ServersEndWithTheJob) {
  std::vector<ParameterService::Outcome> outcomes(servers_.size());
  std::vector<std::thread> mains;
  for (size_t i = 0; i < servers_.size(); ++i) {
    mains.emplace_back([&, i] { outcomes[i] = servers_[i]->AwaitEnd(); });
  }
  EXPECT_OK(store_->ShutdownServers(3));
  for (std::thread& main : mains) main.join();
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.end, ParameterService::End::kJobEnd);
    EXPECT_EQ(outcome.exit_code, 3);
  }
}

TEST_P(RemoteVariableStoreTest, ServersEndWhenTheirCoordinatorIsLost) {
  store_->Watch(true, [](int, const absl::Status&) {});
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, Shape({4}))));
  std::thread main([&] {
    EXPECT_EQ(servers_[0]->AwaitEnd().end,
              ParameterService::End::kCoordinatorLost);
  });
  store_.reset();
  main.join();
}

INSTANTIATE_TEST_SUITE_P(Transports, RemoteVariableStoreTest,
                         testing::Values(TransportKind::kGrpc,
                                         TransportKind::kSharedMemory),
                         [](const testing::TestParamInfo<TransportKind>& info) {
                           return info.param == TransportKind::kGrpc
                                      ? "Grpc"
                                      : "SharedMemory";
                         });

}  // namespace
}  // namespace muster
