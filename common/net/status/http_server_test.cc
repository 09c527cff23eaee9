#include "common/net/status/http_server.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "common/net/status/testing/http_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::map<std::string, HttpPage> Pages() {
  std::map<std::string, HttpPage> pages;
  pages["/hello"] = {.read = [] { return HttpResponse{.body = "hello\n"}; }};
  pages["/open"] = {.read = [] { return HttpResponse{.body = "open\n"}; },
                    .is_public = true};
  pages["/large"] = {
      .read = [] { return HttpResponse{.body = std::string(8 << 20, 'x')}; }};
  return pages;
}

std::unique_ptr<HttpServer> Start(HttpServer::Options options = {}) {
  absl::StatusOr<std::unique_ptr<HttpServer>> server =
      HttpServer::Start(options, Pages());
  EXPECT_OK(server.status());
  return *std::move(server);
}

// Returns the status code of the answer to `request`; 0 if there is no answer.
int CodeOf(const HttpServer& server, absl::string_view request) {
  const absl::StatusOr<HttpAnswer> answer = SendRequest(server.url(), request);
  return answer.ok() ? answer->status_code : 0;
}

TEST(HttpServerTest, AnswersGetAndHead) {
  const auto server = Start();
  const absl::StatusOr<HttpAnswer> get = HttpGet(server->url(), "/hello");
  ASSERT_OK(get);
  EXPECT_EQ(get->status_code, 200);
  EXPECT_EQ(get->body, "hello\n");
  EXPECT_THAT(get->head,
              AllOf(HasSubstr("Content-Length: 6\r\n"),
                    HasSubstr("Content-Security-Policy: default-src 'none'"),
                    HasSubstr("X-Content-Type-Options: nosniff\r\n"),
                    HasSubstr("Cache-Control: no-store\r\n")));
  const absl::StatusOr<HttpAnswer> head = SendRequest(
      server->url(), "HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_OK(head);
  EXPECT_EQ(head->status_code, 200);
  EXPECT_EQ(head->body, "");
  EXPECT_THAT(head->head, HasSubstr("Content-Length: 6\r\n"));
  // The query is ignored.
  EXPECT_EQ(HttpGet(server->url(), "/hello?a=b")->status_code, 200);
  EXPECT_EQ(HttpGet(server->url(), "/large")->body.size(), size_t{8} << 20);
}

TEST(HttpServerTest, RefusesOtherPathsAndMethods) {
  const auto server = Start();
  for (const char* const path :
       {"/", "/hello/", "/../etc/passwd", "/%2e%2e/etc/passwd", "/hello%00",
        "//hello/x"}) {
    const absl::StatusOr<HttpAnswer> answer = HttpGet(server->url(), path);
    ASSERT_OK(answer);
    EXPECT_THAT(answer->status_code, testing::AnyOf(404, 400)) << path;
    EXPECT_THAT(answer->body, Not(HasSubstr("root:")));
  }
  for (const char* const method :
       {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "PATCH", "PROPFIND"}) {
    const int code =
        CodeOf(*server, absl::StrCat(method,
                                     " /hello HTTP/1.1\r\nHost: localhost\r\n"
                                     "Content-Length: 0\r\n\r\n"));
    EXPECT_EQ(code, 405) << method;
  }
  // A preflight request, which browsers send before some requests of another
  // origin.
  EXPECT_EQ(CodeOf(*server,
                   "OPTIONS /hello HTTP/1.1\r\nHost: localhost\r\n"
                   "Origin: http://example.com\r\n"
                   "Access-Control-Request-Method: GET\r\n\r\n"),
            405);
}

TEST(HttpServerTest, RefusesMalformedRequests) {
  const auto server = Start();
  EXPECT_EQ(CodeOf(*server, "nonsense\r\n\r\n"), 400);
  EXPECT_EQ(CodeOf(*server, "GET /hello HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(CodeOf(*server,
                   "GET /hello HTTP/1.1\r\nHost: localhost\r\n"
                   "Content-Length: 5\r\n\r\nhello"),
            413);
  EXPECT_EQ(CodeOf(*server,
                   "GET /hello HTTP/1.1\r\nHost: localhost\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            413);
  const std::string long_line(64 * 1024, 'a');
  EXPECT_THAT(CodeOf(*server, absl::StrCat("GET /", long_line,
                                           " HTTP/1.1\r\nHost: localhost"
                                           "\r\n\r\n")),
              testing::AnyOf(0, 400));
  EXPECT_THAT(CodeOf(*server, absl::StrCat("GET /hello HTTP/1.1\r\nHost: "
                                           "localhost\r\nA: ",
                                           long_line, "\r\n\r\n")),
              testing::AnyOf(0, 400));
  EXPECT_EQ(HttpGet(server->url(), "/hello")->status_code, 200);
}

TEST(HttpServerTest, RefusesForeignHosts) {
  const auto server = Start();
  const auto code_for = [&server](absl::string_view host) {
    return CodeOf(*server, absl::StrCat("GET /hello HTTP/1.1\r\nHost: ", host,
                                        "\r\n\r\n"));
  };
  EXPECT_EQ(code_for("localhost:80"), 200);
  EXPECT_EQ(code_for("127.0.0.1"), 200);
  EXPECT_EQ(code_for("attacker.example"), 403);
  EXPECT_EQ(code_for("localhost.attacker.example"), 403);
  EXPECT_EQ(code_for("10.0.0.1"), 403);
  EXPECT_EQ(code_for("[::1].attacker.example"), 403);
}

TEST(HttpServerTest, RequiresTheToken) {
  const auto server = Start({.token = "a-secret-of-this-test"});
  EXPECT_EQ(HttpGet(server->url(), "/open")->status_code, 200);
  const absl::StatusOr<HttpAnswer> without = HttpGet(server->url(), "/hello");
  ASSERT_OK(without);
  EXPECT_EQ(without->status_code, 401);
  EXPECT_THAT(without->head, HasSubstr("WWW-Authenticate: Bearer\r\n"));
  const auto code_with = [&server](absl::string_view value) {
    return HttpGet(server->url(), "/hello",
                   absl::StrCat("Authorization: ", value, "\r\n"))
        ->status_code;
  };
  EXPECT_EQ(code_with("Bearer a-secret-of-this-test"), 200);
  EXPECT_EQ(code_with("Bearer a-secret-of-this-tesT"), 401);
  EXPECT_EQ(code_with("Bearer "), 401);
  EXPECT_EQ(code_with("Basic a-secret-of-this-test"), 401);
}

TEST(HttpServerTest, RefusesUnsafeOptions) {
  EXPECT_THAT(HttpServer::Start({.host = "0.0.0.0"}, Pages()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("require a token")));
  EXPECT_THAT(
      HttpServer::Start({.host = "h0"}, Pages()).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("IP address")));
  EXPECT_THAT(HttpServer::Start({.port = 65536}, Pages()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("65536")));
}

TEST(HttpServerTest, RefusesAPortInUse) {
  const auto server = Start();
  const std::string& url = server->url();
  const size_t colon = url.rfind(':');
  const int port = std::stoi(url.substr(colon + 1));
  EXPECT_THAT(HttpServer::Start({.port = port}, Pages()).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("in use")));
}

// There are more silent clients than the server has connections. The timeout of
// requests is so long that it does not free any connection.
TEST(HttpServerTest, ProbesDoNotWaitForSilentClients) {
  const auto server =
      Start({.connection_count_max = 64, .timeout = absl::Minutes(10)});
  std::vector<RawConnection> silent;
  for (int i = 0; i < 200; ++i) {
    absl::StatusOr<RawConnection> connection =
        RawConnection::Open(server->url());
    ASSERT_OK(connection);
    // The server may have closed the connection, so Send() may fail.
    if (i % 2 == 0) connection->Send("GET /open HTT");
    silent.push_back(*std::move(connection));
    if (i % 10 != 0) continue;
    const absl::StatusOr<HttpAnswer> answer = HttpGet(server->url(), "/open");
    ASSERT_OK(answer);
    EXPECT_EQ(answer->status_code, 200);
  }
  EXPECT_EQ(HttpGet(server->url(), "/hello")->status_code, 200);
}

TEST(HttpServerTest, ProbesDoNotWaitForOtherPages) {
  absl::Notification may_end;
  std::map<std::string, HttpPage> pages = Pages();
  pages["/slow"] = {.read = [&may_end] {
    EXPECT_TRUE(may_end.WaitForNotificationWithTimeout(kTestWaitMax));
    return HttpResponse{.body = "slow\n"};
  }};
  const absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start(
      {.answer_count_max = 2, .timeout = absl::Minutes(10)}, std::move(pages));
  ASSERT_OK(server);
  std::vector<RawConnection> slow;
  for (int i = 0; i < 10; ++i) {
    absl::StatusOr<RawConnection> connection =
        RawConnection::Open((*server)->url());
    ASSERT_OK(connection);
    ASSERT_TRUE(
        connection->Send("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    slow.push_back(*std::move(connection));
    EXPECT_EQ(HttpGet((*server)->url(), "/open")->status_code, 200);
  }
  may_end.Notify();
  for (RawConnection& connection : slow) {
    const absl::StatusOr<std::string> answer = connection.ReadAll();
    ASSERT_OK(answer);
    EXPECT_THAT(*answer, HasSubstr("slow\n"));
  }
}

TEST(HttpServerTest, ASlowRequestGets408) {
  const auto server = Start({.timeout = absl::Milliseconds(100)});
  EXPECT_EQ(CodeOf(*server, "GET /hello HTTP/1.1\r\nHost: loc"), 408);
}

TEST(HttpServerTest, AnswersWhatItIsReadingAtItsEnd) {
  absl::Notification is_read;
  absl::Notification may_end;
  std::map<std::string, HttpPage> pages;
  pages["/slow"] = {.read = [&] {
    is_read.Notify();
    EXPECT_TRUE(may_end.WaitForNotificationWithTimeout(kTestWaitMax));
    return HttpResponse{.body = "slow\n"};
  }};
  absl::StatusOr<std::unique_ptr<HttpServer>> server =
      HttpServer::Start({}, std::move(pages));
  ASSERT_OK(server);
  absl::StatusOr<RawConnection> connection =
      RawConnection::Open((*server)->url());
  ASSERT_OK(connection);
  ASSERT_TRUE(
      connection->Send("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_TRUE(is_read.WaitForNotificationWithTimeout(kTestWaitMax));
  std::thread ender([&] { server->reset(); });
  may_end.Notify();
  const absl::StatusOr<std::string> answer = connection->ReadAll();
  ender.join();
  ASSERT_OK(answer);
  EXPECT_THAT(*answer, HasSubstr("slow\n"));
}

// A client that sends single bytes has the same time limit as all others.
TEST(HttpServerTest, ATricklingClientIsDisconnected) {
  const auto server = Start({.timeout = absl::Milliseconds(300)});
  absl::StatusOr<RawConnection> connection = RawConnection::Open(server->url());
  ASSERT_OK(connection);
  ASSERT_TRUE(connection->Send("GET /hello HTTP/1.1\r\nA: "));
  absl::Notification ends;
  std::thread trickle([&] {
    while (!ends.WaitForNotificationWithTimeout(absl::Milliseconds(20)) &&
           connection->Send("a")) {
    }
  });
  EXPECT_OK(connection->ReadAll());
  ends.Notify();
  trickle.join();
}

// A client that does not read its answer must not occupy the only slot.
TEST(HttpServerTest, AClientThatDoesNotReadIsDisconnected) {
  const auto server =
      Start({.answer_count_max = 1, .timeout = absl::Milliseconds(300)});
  absl::StatusOr<RawConnection> connection = RawConnection::Open(server->url());
  ASSERT_OK(connection);
  ASSERT_TRUE(
      connection->Send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_EQ(HttpGet(server->url(), "/hello")->status_code, 200);
}

TEST(HttpServerTest, AnswersManyClientsAtOnce) {
  const auto server = Start({.answer_count_max = 4});
  std::atomic<int> answered = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&] {
      for (int j = 0; j < 10; ++j) {
        const auto answer = HttpGet(server->url(), "/hello");
        if (answer.ok() && answer->status_code == 200) ++answered;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered, 160);
}

}  // namespace
}  // namespace muster
