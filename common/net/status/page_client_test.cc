#include "common/net/status/page_client.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/status/http_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr char kToken[] = "0123456789abcdef";

std::unique_ptr<HttpServer> Serve(const std::string& token, size_t size) {
  const std::string body(size, 'x');
  auto server =
      HttpServer::Start({.token = token}, {{"/status.json", {.read = [body] {
                                              return HttpResponse{.body = body};
                                            }}}});
  EXPECT_OK(server);
  return *std::move(server);
}

TEST(PageClientTest, GetsAPageOfSeveralPackets) {
  const auto server = Serve("", size_t{1} << 20);
  const auto page = GetStatusPage(server->url(), "/status.json", "", kPatience);
  ASSERT_OK(page);
  EXPECT_EQ(*page, std::string(size_t{1} << 20, 'x'));
}

TEST(PageClientTest, SendsTheToken) {
  const auto server = Serve(kToken, 3);
  EXPECT_OK(GetStatusPage(server->url(), "/status.json", kToken, kPatience));
  EXPECT_THAT(
      GetStatusPage(server->url(), "/status.json", "", kPatience).status(),
      StatusIs(absl::StatusCode::kUnauthenticated,
               HasSubstr("--status_token_file")));
}

TEST(PageClientTest, SaysWhichPageIsMissing) {
  const auto server = Serve("", 3);
  EXPECT_THAT(GetStatusPage(server->url(), "/none", "", kPatience).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
}

TEST(PageClientTest, RefusesWhatIsNoAddress) {
  for (const char* const address : {"", "localhost", "http://:80", "h:0"}) {
    EXPECT_THAT(GetStatusPage(address, "/", "", kPatience).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, testing::_))
        << address;
  }
}

// A server on this machine that listens and never answers.
class SilentServer {
 public:
  SilentServer() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size),
              0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~SilentServer() { close(fd_); }

  void Listen() { EXPECT_EQ(listen(fd_, 1), 0); }
  const std::string& address() const { return address_; }

 private:
  const int fd_;
  std::string address_;
};

TEST(PageClientTest, NamesAnAddressWithoutAListener) {
  const SilentServer server;
  EXPECT_THAT(
      GetStatusPage(server.address(), "/", "", kPatience).status(),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr(server.address())));
}

TEST(PageClientTest, NamesAServerThatDoesNotAnswer) {
  SilentServer server;
  server.Listen();
  EXPECT_THAT(
      GetStatusPage(server.address(), "/", "", absl::Milliseconds(50)).status(),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               HasSubstr(server.address())));
}

}  // namespace
}  // namespace muster
