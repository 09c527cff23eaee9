// Every task answers probes of the service grpc.health.v1
// (https://github.com/grpc/grpc/blob/master/doc/health-checking.md).
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/rpc/certificate_authority.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/service.h"
#include "common/net/rpc/tls_context.h"
#include "common/net/rpc/tls_network.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// HealthCheckResponse{status: SERVING}.
constexpr char kServing[] = "\x08\x01";

struct Answer {
  grpc::Status status;
  std::string bytes;
};

// Calls Check with HealthCheckRequest{}, which asks about the whole server.
Answer Check(const std::string& address,
             const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::GenericStub stub(grpc::CreateChannel(address, credentials));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  grpc::ByteBuffer request(nullptr, 0);
  grpc::ByteBuffer response;
  Answer answer;
  const auto call = stub.PrepareUnaryCall(
      &context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  call->Finish(&response, &answer.status, &answer);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  std::vector<grpc::Slice> slices;
  if (answer.status.ok() && response.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      answer.bytes.append(reinterpret_cast<const char*>(slice.begin()),
                          slice.size());
    }
  }
  return answer;
}

class HealthTest : public testing::Test {
 protected:
  Service service_;
  AdmissionCheck admission_check_{
      {.task_type = "worker", .task_index = 0, .incarnation = 1}};
};

TEST_F(HealthTest, AServerInPlaintextAnswersEveryProcess) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       Network::Grpc()->Listen({.address = "localhost:0"},
                                               &service_, &admission_check_));
  const Answer answer =
      Check(server->address(), grpc::InsecureChannelCredentials());
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.bytes, kServing);
}

TEST_F(HealthTest, AServerWithTlsAnswersTasksOfItsJob) {
  const std::string folder = testing::TempDir() + "/health_certificates";
  std::filesystem::create_directories(folder);
  ASSERT_OK_AND_ASSIGN(const auto authority,
                       CertificateAuthority::Create(absl::Hours(1)));
  const auto load = [&](const SpiffeId& task) {
    const auto files = WriteTaskFiles(*authority, task, folder);
    EXPECT_OK(files);
    auto tls = TlsContext::Load(*files);
    EXPECT_OK(tls);
    return *std::move(tls);
  };
  const auto network = MakeTlsNetwork(load({"job1", "worker", 0}));
  ASSERT_OK_AND_ASSIGN(const auto server,
                       network->Listen({.address = "localhost:0"}, &service_,
                                       &admission_check_));
  // This role may call no other method.
  const auto prober = load({"job1", "evaluator", 0});
  const Answer answer =
      Check(server->address(), prober->ChannelCredentials("worker", 0));
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.bytes, kServing);
  EXPECT_FALSE(
      Check(server->address(), grpc::InsecureChannelCredentials()).status.ok());
  const auto stranger = load({"job2", "worker", 1});
  EXPECT_FALSE(
      Check(server->address(), stranger->ChannelCredentials("worker", 0))
          .status.ok());
}

}  // namespace
}  // namespace muster
