#include "common/net/rpc/local_handshake.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/file_descriptor.h"
#include "common/net/rpc/secret.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

FileDescriptor Connect(const std::string& endpoint, absl::string_view says) {
  FileDescriptor connected(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = LocalEndpoint::SocketAddress(endpoint);
  EXPECT_OK(address.status());
  EXPECT_EQ(
      connect(connected.get(), reinterpret_cast<const sockaddr*>(&*address),
              sizeof(*address)),
      0);
  EXPECT_EQ(send(connected.get(), says.data(), says.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(says.size()));
  return connected;
}

// Returns true if this process can switch to another user: root can, unless it
// runs in a sandbox without other users.
bool CanBecomeNobody() {
  const pid_t pid = fork();
  if (pid == 0) _exit(setuid(kNobody) == 0 ? 0 : 1);
  int status = 0;
  return waitpid(pid, &status, 0) == pid && status == 0;
}

// Runs `work` in a process of another user.
template <typename Work>
void RunAsNobody(Work work) {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    if (setuid(kNobody) != 0) _exit(1);
    work();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_EQ(status, 0);
}

TEST(LocalHandshakeTest, ConnectsBothEnds) {
  ASSERT_OK_AND_ASSIGN(LocalOffer offer, LocalOffer::Make());
  ASSERT_OK_AND_ASSIGN(LocalSockets server, ConnectTo(offer.request()));
  ASSERT_OK_AND_ASSIGN(const LocalSockets client, offer.Take());
  char byte = 'x';
  ASSERT_EQ(send(server.calls.get(), &byte, 1, 0), 1);
  ASSERT_EQ(recv(client.calls.get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_FALSE(HasEnded(client.tether));
  server.tether = FileDescriptor();
  EXPECT_TRUE(HasEnded(client.tether));
}

TEST(LocalHandshakeTest, DropsConnectionsWithoutTheToken) {
  ASSERT_OK_AND_ASSIGN(LocalOffer offer, LocalOffer::Make());
  std::string token = offer.request().token();
  token.back() ^= 1;
  const FileDescriptor one = Connect(offer.request().endpoint(), token);
  const FileDescriptor other = Connect(offer.request().endpoint(), token);
  const FileDescriptor silent = Connect(offer.request().endpoint(), "");
  EXPECT_THAT(offer.Take(), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_OK(ConnectTo(offer.request()).status());
}

TEST(LocalHandshakeTest, IgnoresStrangersInTheQueue) {
  ASSERT_OK_AND_ASSIGN(LocalOffer offer, LocalOffer::Make());
  const FileDescriptor silent = Connect(offer.request().endpoint(), "");
  ASSERT_OK_AND_ASSIGN(const LocalSockets server, ConnectTo(offer.request()));
  ASSERT_OK_AND_ASSIGN(const LocalSockets client, offer.Take());
  char byte = 'x';
  ASSERT_EQ(send(client.calls.get(), &byte, 1, 0), 1);
  EXPECT_EQ(recv(server.calls.get(), &byte, 1, 0), 1);
}

TEST(LocalHandshakeTest, RefusesOffersOfOtherHosts) {
  ASSERT_OK_AND_ASSIGN(const LocalOffer offer, LocalOffer::Make());
  proto::OpenLocalConnectionRequest request = offer.request();
  request.set_endpoint(absl::StrCat("0", offer.request().endpoint()));
  EXPECT_THAT(ConnectTo(request),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("another host")));
  request.set_endpoint("");
  EXPECT_FALSE(ConnectTo(request).ok());
  request = offer.request();
  request.set_token("short");
  EXPECT_THAT(ConnectTo(request), StatusIs(absl::StatusCode::kInvalidArgument));
}

// A caller must not be able to make the server connect to sockets of other
// programs, such as the user's desktop.
TEST(LocalHandshakeTest, RefusesSocketsOfOtherPrograms) {
  const FileDescriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = absl::StrCat("other-", RandomSecret());
  name.copy(address.sun_path + 1, name.size());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)),
            0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  ASSERT_OK_AND_ASSIGN(const LocalOffer offer, LocalOffer::Make());
  proto::OpenLocalConnectionRequest request = offer.request();
  const std::string& endpoint = offer.request().endpoint();
  request.set_endpoint(
      absl::StrCat(endpoint.substr(0, endpoint.rfind('/') + 1), name));
  EXPECT_FALSE(ConnectTo(request).ok());
}

TEST(LocalHandshakeTest, DropsServersOfOtherUsers) {
  if (!CanBecomeNobody()) GTEST_SKIP() << "needs root outside of a sandbox";
  ASSERT_OK_AND_ASSIGN(LocalOffer offer, LocalOffer::Make());
  ASSERT_NO_FATAL_FAILURE(RunAsNobody([&] {
    Connect(offer.request().endpoint(), offer.request().token());
    Connect(offer.request().endpoint(), offer.request().token());
  }));
  EXPECT_THAT(offer.Take(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(LocalHandshakeTest, RefusesOffersOfOtherUsers) {
  if (!CanBecomeNobody()) GTEST_SKIP() << "needs root outside of a sandbox";
  // The kernel records the user that called listen(2). So the child's socket
  // belongs to another user in this process, too.
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const FileDescriptor here(ends[0]);
  FileDescriptor there(ends[1]);
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    if (setuid(kNobody) != 0) _exit(1);
    auto offer = LocalOffer::Make();
    if (!offer.ok()) _exit(1);
    const std::string bytes = offer->request().SerializeAsString();
    char byte = 0;
    // Listens until the parent has tried to connect.
    _exit(write(there.get(), bytes.data(), bytes.size()) > 0 &&
                  read(there.get(), &byte, 1) == 1
              ? 0
              : 1);
  }
  there = FileDescriptor();
  char bytes[512];
  const ssize_t size = read(here.get(), bytes, sizeof(bytes));
  ASSERT_GT(size, 0);
  proto::OpenLocalConnectionRequest request;
  ASSERT_TRUE(request.ParseFromArray(bytes, static_cast<int>(size)));
  EXPECT_THAT(ConnectTo(request),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("another user")));
  EXPECT_EQ(write(here.get(), "x", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace muster
