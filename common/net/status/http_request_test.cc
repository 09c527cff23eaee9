#include "common/net/status/http_request.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(HttpRequestTest, ParsesWhatServersUse) {
  const absl::StatusOr<HttpRequest> request = ParseHttpRequest(
      "GET /status.json?a=b HTTP/1.1\r\nhOST:localhost:80 \r\n"
      "Authorization: Bearer abc\r\nAccept: */*\r\nAccept: a\r\n\r\n");
  ASSERT_OK(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/status.json");
  EXPECT_EQ(request->host, "localhost:80");
  EXPECT_EQ(request->authorization, "Bearer abc");
  EXPECT_FALSE(request->has_body);
}

TEST(HttpRequestTest, KnowsBodies) {
  const auto has_body = [](absl::string_view header) {
    return ParseHttpRequest(
               absl::StrCat("GET / HTTP/1.0\r\n", header, "\r\n\r\n"))
        ->has_body;
  };
  EXPECT_FALSE(has_body("Content-Length: 0"));
  EXPECT_TRUE(has_body("Content-Length: 1"));
  EXPECT_TRUE(has_body("Content-Length: 00"));
  EXPECT_TRUE(has_body("Transfer-Encoding: chunked"));
}

TEST(HttpRequestTest, RefusesWhatIsMalformed) {
  for (const std::string text :
       {"", "\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2\r\n\r\n",
        "GET  / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1 \r\n\r\n",
        "GET http://localhost/ HTTP/1.1\r\n\r\n", "G(T / HTTP/1.1\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1\r\n: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\nc: d\r\n\r\n",
        "GET / HTTP/1.1\r\nA: \x7f\r\n\r\n"}) {
    EXPECT_THAT(ParseHttpRequest(text).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, testing::_))
        << text;
  }
}

TEST(HttpRequestTest, KnowsIpAddresses) {
  for (const char* const address : {"1.2.3.4", "::", "::1", "fd00::1.2.3.4"}) {
    EXPECT_TRUE(IsIpAddress(address)) << address;
  }
  for (const char* const other : {"", "1.2.3", "1.2.3.256", "[::1]",
                                  "dead:beef", "1.2.3.4.example", ":::"}) {
    EXPECT_FALSE(IsIpAddress(other)) << other;
  }
}

TEST(HttpRequestTest, KnowsOwnHosts) {
  EXPECT_TRUE(IsOwnHost("LOCALHOST:1", "localhost", {}));
  EXPECT_TRUE(IsOwnHost("[::1]:80", "localhost", {}));
  EXPECT_TRUE(IsOwnHost("[::1]", "localhost", {}));
  EXPECT_TRUE(IsOwnHost("10.0.0.7:80", "0.0.0.0", {}));
  EXPECT_TRUE(IsOwnHost("ps-0.job:80", "0.0.0.0", {"ps-0.job"}));
  EXPECT_FALSE(IsOwnHost("ps-1.job:80", "0.0.0.0", {"ps-0.job"}));
  EXPECT_FALSE(IsOwnHost("1.2.3.4.attacker.example", "0.0.0.0", {}));
  EXPECT_FALSE(IsOwnHost("10.0.0.999", "0.0.0.0", {}));
  EXPECT_FALSE(IsOwnHost("", "localhost", {""}));
}

TEST(HttpRequestTest, AHostIsReadToItsEnd) {
  for (const char* const header :
       {"[::1", "[::1].attacker.example", "[::1]attacker.example",
        "[::1]:80.attacker.example", "[::1]:", "[localhost]", "[ps-0.job]",
        "[127.0.0.1]", "localhost:", "localhost:80.attacker.example",
        "localhost:80:80", "localhost@attacker.example", "localhost:123456",
        "attacker.example/localhost", "::1"}) {
    EXPECT_FALSE(IsOwnHost(header, "localhost", {"ps-0.job"})) << header;
    EXPECT_FALSE(IsOwnHost(header, "0.0.0.0", {"ps-0.job"})) << header;
  }
}

}  // namespace
}  // namespace muster
