// A store continues with a server that was restarted with its log.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/compute/variables/variable_session.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/tensor/tensor.h"
#include "common/net/rpc/network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/client/partitioner.h"
#include "ps/client/remote_variable_store.h"
#include "ps/parameter_server.h"
#include "ps/testing/store_fixture.h"

namespace muster {
namespace {

class ServerReturnTest : public StoreFixture,
                         public testing::WithParamInterface<bool> {
 protected:
  ServerReturnTest() : StoreFixture(/*shared_memory=*/GetParam()) {}

  void SetUp() override {
    folder_ = absl::StrCat(testing::TempDir(), "/server_return");
    std::filesystem::remove_all(folder_);
    servers_.resize(2);
    partitioner_ = MakeFixedShardsPartitioner(2).value();
    for (int i = 0; i < 2; ++i) Start(i, 100 + i, "127.0.0.1:0");
    store_ = OpenStore("chief");
  }

  void Start(int index, uint64_t incarnation, const std::string& address) {
    ParameterServer::Options options;
    options.self = {"ps", index, incarnation};
    options.address = address;
    options.log = LogKeeper::Options{
        .folder = absl::StrCat(folder_, "/ps-", index), .boot_id = "boot"};
    servers_[index] = ParameterServer::Start(Network::Grpc(), options).value();
  }

  void Restart(int index, uint64_t incarnation) {
    const std::string address = servers_[index]->address();
    servers_[index] = nullptr;
    Start(index, incarnation, address);
  }

  std::string folder_;
};

TEST_P(ServerReturnTest, AStepContinuesAndIsCountedOnce) {
  const Shape shape({512, 64});
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, shape)));
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<VariableSession> session,
      store_->OpenSession(
          {{{.name = "x", .is_read = true, .is_updated = true}}}));
  const Tensor one = Tensor::Full(DType::kFloat32, shape, 1);
  for (uint64_t step = 1; step <= 6; ++step) {
    ASSERT_OK(session->Begin(step));
    ASSERT_OK_AND_ASSIGN(const Tensor before, session->Read(0));
    EXPECT_EQ(before.flat<float>()[0], static_cast<float>(step - 1));
    ASSERT_OK(session->Update(0, UpdateKind::kAssignAdd, one, Tensor()));
    // The step has read its values, and its update reaches another process.
    Restart(static_cast<int>(step % 2), 1000 + step);
    ASSERT_OK(session->Commit());
  }
  ASSERT_OK_AND_ASSIGN(const Tensor value, store_->Read("x"));
  for (const float element : value.flat<float>()) ASSERT_EQ(element, 6);
  for (const auto& server : servers_) {
    EXPECT_TRUE(server->service().segments().AwaitSegmentCount(
        GetParam() ? 1 : 0, absl::Seconds(30)));
  }
}

TEST_P(ServerReturnTest, AServerWithoutItsStateIsNotFollowed) {
  ASSERT_OK(store_->Create(Spec("x", DType::kFloat32, Shape({4}))));
  std::filesystem::remove_all(folder_);
  Restart(0, 500);
  EXPECT_THAT(store_->Read("x").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

INSTANTIATE_TEST_SUITE_P(SharedMemory, ServerReturnTest, testing::Bool());

}  // namespace
}  // namespace muster
