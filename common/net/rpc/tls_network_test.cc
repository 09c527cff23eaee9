// Servers and channels over TLS: which callers are admitted, and what happens
// when certificates are replaced.
#include "common/net/rpc/tls_network.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/log_format.h"
#include "common/core/system/testing/await_true.h"
#include "common/io/storage/private_file.h"
#include "common/net/rpc/certificate_authority.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr absl::string_view kForWorkers = "/muster.ParameterServer/Exchange";
constexpr absl::string_view kForTheChief = "/muster.ParameterServer/Save";
constexpr absl::Duration kPatience = absl::Seconds(60);

class TlsNetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_ + "/other");
    ASSERT_OK_AND_ASSIGN(authority_,
                         CertificateAuthority::Create(absl::Hours(1)));
    for (const absl::string_view method : {kForWorkers, kForTheChief}) {
      service_.AddUnary(
          method, [](ReceivedMessage message, Responder responder) {
            responder.Respond(Message{std::string(message.body()), {}});
          });
    }
    ASSERT_OK_AND_ASSIGN(server_files_,
                         WriteTaskFiles(*authority_, kPs, folder_));
    ASSERT_OK_AND_ASSIGN(server_network_, NetworkOf(server_files_));
    ASSERT_OK_AND_ASSIGN(
        server_, server_network_->Listen({.address = "127.0.0.1:0"}, &service_,
                                         &admission_check_));
  }

  static absl::StatusOr<std::unique_ptr<Network>> NetworkOf(
      const TlsFiles& files) {
    auto tls = TlsContext::Load(files);
    if (!tls.ok()) return tls.status();
    return MakeTlsNetwork(*std::move(tls));
  }

  // Calls the server as `caller`, with a certificate that `authority` signs.
  // The channel expects the server to be `peer`.
  absl::Status Call(const CertificateAuthority& authority,
                    const SpiffeId& caller, absl::string_view method,
                    const std::string& claimed_type = "",
                    const SpiffeId& peer = kPs) {
    auto files = WriteTaskFiles(authority, caller, folder_ + "/other");
    if (!files.ok()) return files.status();
    return CallWith(*files, caller, method, claimed_type, peer);
  }
  absl::Status CallWith(const TlsFiles& files, const SpiffeId& caller,
                        absl::string_view method,
                        const std::string& claimed_type, const SpiffeId& peer) {
    auto network = NetworkOf(files);
    if (!network.ok()) return network.status();
    const auto channel = Connect(network->get(), caller, claimed_type, peer);
    return channel->CallAndWait(method, {"x", {}}, {.timeout = kPatience})
        .status();
  }
  std::unique_ptr<Channel> Connect(Network* network, const SpiffeId& caller,
                                   const std::string& claimed_type = "",
                                   const SpiffeId& peer = kPs) {
    ChannelOptions options;
    options.address = server_->address();
    options.peer_task_type = peer.role;
    options.peer_task_index = peer.index;
    options.caller = {claimed_type.empty() ? caller.role : claimed_type,
                      caller.index, 5};
    return network->Connect(options);
  }
  // Makes a call by a client that accepts any server. The client has no
  // certificate if `files` is empty.
  grpc::StatusCode CallWithoutJobCertificate(const TlsFiles& files) {
    using grpc::experimental::FileWatcherCertificateProvider;
    grpc::experimental::TlsChannelCredentialsOptions options;
    if (files.empty()) {
      options.set_certificate_provider(
          std::make_shared<FileWatcherCertificateProvider>(server_files_.ca,
                                                           1));
    } else {
      options.set_certificate_provider(
          std::make_shared<FileWatcherCertificateProvider>(
              files.key, files.certificate, server_files_.ca, 1));
      options.watch_identity_key_cert_pairs();
    }
    options.watch_root_certs();
    options.set_verify_server_certs(true);
    options.set_check_call_host(false);
    options.set_certificate_verifier(
        std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
    grpc::GenericStub stub(grpc::CreateChannel(
        server_->address(), grpc::experimental::TlsCredentials(options)));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    grpc::ByteBuffer request(nullptr, 0);
    grpc::ByteBuffer response;
    grpc::Status status;
    absl::Notification is_done;
    stub.UnaryCall(&context, std::string(kForWorkers), grpc::StubOptions(),
                   &request, &response, [&](grpc::Status given) {
                     status = std::move(given);
                     is_done.Notify();
                   });
    EXPECT_TRUE(is_done.WaitForNotificationWithTimeout(kTestWaitMax));
    return status.error_code();
  }
  // Runs openssl(1) to make a handshake with the server, and returns its
  // status.
  int OpenSsl(const std::string& arguments) {
    return std::system(
        absl::StrCat("openssl s_client -connect ", server_->address(),
                     " -alpn h2 -CAfile ", server_files_.ca, " ", arguments,
                     " < /dev/null > ", folder_, "/openssl.log 2>&1")
            .c_str());
  }
  std::string OpenSslLog() {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/openssl.log").rdbuf();
    return text.str();
  }

  inline static const SpiffeId kPs = {"job1", "ps", 0};
  inline static const SpiffeId kWorker = {"job1", "worker", 1};
  inline static const SpiffeId kChief = {"job1", "chief", 0};

  std::string folder_;
  std::unique_ptr<CertificateAuthority> authority_;
  Service service_;
  AdmissionCheck admission_check_{{"ps", 0, 77}};
  TlsFiles server_files_;
  std::unique_ptr<Network> server_network_;
  std::unique_ptr<Server> server_;
};

// If the address is a name, the client sends the name to the server, and the
// server looks for a certificate with this name.
TEST_F(TlsNetworkTest, AServerWithoutACertificateOfItsNameWarnsOfNothing) {
  const int64_t warning_count = ReadRecentProblems().warning_count;
  ASSERT_OK_AND_ASSIGN(const auto server,
                       server_network_->Listen({.address = "localhost:0"},
                                               &service_, &admission_check_));
  ASSERT_OK_AND_ASSIGN(const auto files,
                       WriteTaskFiles(*authority_, kWorker, folder_));
  ASSERT_OK_AND_ASSIGN(const auto network, NetworkOf(files));
  ChannelOptions options;
  options.address = absl::StrCat(
      "localhost", server->address().substr(server->address().rfind(':')));
  options.peer_task_type = kPs.role;
  options.peer_task_index = kPs.index;
  options.caller = {kWorker.role, kWorker.index, 5};
  EXPECT_OK(network->Connect(options)
                ->CallAndWait(kForWorkers, {"x", {}}, {.timeout = kPatience})
                .status());
  EXPECT_EQ(ReadRecentProblems().warning_count, warning_count);
}

TEST_F(TlsNetworkTest, TasksOfTheJobCallWhatTheirRoleMay) {
  EXPECT_OK(Call(*authority_, kWorker, kForWorkers));
  EXPECT_OK(Call(*authority_, kChief, kForWorkers));
  EXPECT_OK(Call(*authority_, kChief, kForTheChief));
  EXPECT_THAT(Call(*authority_, kWorker, kForTheChief),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("worker 1 may not call "
                                 "/muster.ParameterServer/Save")));
  EXPECT_THAT(Call(*authority_, {"job1", "ps", 1}, kForWorkers),
              StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(Call(*authority_, {"job1", "evaluator", 0}, kForWorkers),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(TlsNetworkTest, ACallerCannotTakeAnothersName) {
  EXPECT_THAT(Call(*authority_, kWorker, kForTheChief, "chief"),
              StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(Call(*authority_, kWorker, kForWorkers, "ps"),
              StatusIs(absl::StatusCode::kUnauthenticated));
}

TEST_F(TlsNetworkTest, AnotherJobsCertificateOpensNoConnection) {
  EXPECT_THAT(Call(*authority_, {"job2", "worker", 1}, kForWorkers),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(TlsNetworkTest, AnotherAuthoritysCertificateIsRefused) {
  ASSERT_OK_AND_ASSIGN(const auto other,
                       CertificateAuthority::Create(absl::Hours(1)));
  ASSERT_OK_AND_ASSIGN(const TlsFiles files,
                       WriteTaskFiles(*other, kWorker, folder_ + "/other"));
  EXPECT_EQ(CallWithoutJobCertificate(files), grpc::StatusCode::UNAVAILABLE);
  // The client refuses the server as well.
  EXPECT_THAT(CallWith(files, kWorker, kForWorkers, "", kPs),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(TlsNetworkTest, WithoutACertificateThereIsNoConnection) {
  EXPECT_EQ(CallWithoutJobCertificate({}), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TlsNetworkTest, ACallThatNamesNoCallerIsRefused) {
  ASSERT_OK_AND_ASSIGN(
      const TlsFiles files,
      WriteTaskFiles(*authority_, kWorker, folder_ + "/other"));
  EXPECT_EQ(CallWithoutJobCertificate(files),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(TlsNetworkTest, OlderVersionsOfTlsAreRefused) {
  ASSERT_OK_AND_ASSIGN(
      const TlsFiles files,
      WriteTaskFiles(*authority_, kWorker, folder_ + "/other"));
  const std::string certificate =
      absl::StrCat(" -cert ", files.certificate, " -key ", files.key);
  EXPECT_EQ(OpenSsl("-tls1_3" + certificate), 0) << OpenSslLog();
  EXPECT_NE(OpenSsl("-tls1_2" + certificate), 0) << OpenSslLog();
  EXPECT_NE(OpenSsl("-tls1_1" + certificate), 0) << OpenSslLog();
}

TEST_F(TlsNetworkTest, PlaintextIsRefused) {
  const auto channel = Connect(Network::Grpc(), kWorker);
  EXPECT_THAT(channel->CallAndWait(kForWorkers, {"x", {}}, {}).status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(TlsNetworkTest, AServerThatIsAnotherTaskIsRefused) {
  EXPECT_THAT(
      Call(*authority_, kWorker, kForWorkers, "", {"job1", "ps", 1}),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("and not of ps 1")));
}

TEST_F(TlsNetworkTest, ReplacedFilesAreUsedWithoutARestart) {
  ASSERT_OK_AND_ASSIGN(
      const TlsFiles files,
      WriteTaskFiles(*authority_, kWorker, folder_ + "/other"));
  ASSERT_OK_AND_ASSIGN(const auto network, NetworkOf(files));
  const auto channel = Connect(network.get(), kWorker);
  const CallOptions patient = {.timeout = kPatience};
  ASSERT_OK(channel->CallAndWait(kForWorkers, {"x", {}}, patient));
  const auto serial = [&] {
    OpenSsl(absl::StrCat("-tls1_3 -cert ", files.certificate, " -key ",
                         files.key, " -showcerts"));
    const std::string log = OpenSslLog();
    const size_t begin = log.find("BEGIN CERTIFICATE");
    return log.substr(begin, log.find("END CERTIFICATE") - begin);
  };
  const std::string before = serial();
  ASSERT_OK(WriteTaskFiles(*authority_, kPs, folder_));
  const absl::Time deadline = absl::Now() + kPatience;
  while (serial() == before) ASSERT_LT(absl::Now(), deadline);
  // The old connection still works, and so do new ones.
  EXPECT_OK(channel->CallAndWait(kForWorkers, {"x", {}}, patient));
  EXPECT_OK(Connect(network.get(), kWorker)
                ->CallAndWait(kForWorkers, {"x", {}}, patient));
}

TEST_F(TlsNetworkTest, FilesThatDoNotFitAreRefusedAtTheStart) {
  TlsFiles files = server_files_;
  files.key = folder_ + "/missing";
  EXPECT_THAT(TlsContext::Load(files),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("--tls_key")));
  ASSERT_OK_AND_ASSIGN(
      const TlsFiles worker,
      WriteTaskFiles(*authority_, kWorker, folder_ + "/other"));
  files.key = worker.key;
  EXPECT_THAT(TlsContext::Load(files),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is not the key of")));
  files = server_files_;
  files.certificate = files.ca;
  EXPECT_THAT(TlsContext::Load(files),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(const auto other,
                       CertificateAuthority::Create(absl::Hours(1)));
  ASSERT_OK_AND_ASSIGN(const CertificateAuthority::Pem pem, other->Export());
  files = server_files_;
  files.ca = folder_ + "/other.pem";
  ASSERT_OK(ReplacePrivateFile(files.ca, pem.certificate));
  EXPECT_THAT(TlsContext::Load(files),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not valid under --tls_ca")));
}

TEST_F(TlsNetworkTest, OnlyTheOwnerMayReadTheFiles) {
  for (const std::string& file :
       {server_files_.certificate, server_files_.key, server_files_.ca}) {
    EXPECT_EQ(std::filesystem::status(file).permissions(),
              std::filesystem::perms::owner_read |
                  std::filesystem::perms::owner_write)
        << file;
  }
}

}  // namespace
}  // namespace muster
