#include "common/net/cluster/address.h"

#include <string>

#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

std::string Complaint(absl::string_view text) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(text);
  EXPECT_THAT(parsed, StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  return std::string(parsed.status().message());
}

TEST(AddressTest, ParsesHostAndPort) {
  EXPECT_THAT(ParseHostPort("h0:2222"), IsOkAndHolds(HostPort{"h0", 2222}));
  EXPECT_THAT(ParseHostPort("10.0.0.1:1"),
              IsOkAndHolds(HostPort{"10.0.0.1", 1}));
  EXPECT_THAT(ParseHostPort("job-ps-0.ns.svc:65535"),
              IsOkAndHolds(HostPort{"job-ps-0.ns.svc", 65535}));
}

TEST(AddressTest, RemovesTheScheme) {
  EXPECT_THAT(ParseHostPort("grpc://h0:2222"),
              IsOkAndHolds(HostPort{"h0", 2222}));
  EXPECT_THAT(ParseHostPort("http://[::1]:80"),
              IsOkAndHolds(HostPort{"::1", 80}));
}

TEST(AddressTest, WritesIpv6InBrackets) {
  ASSERT_OK_AND_ASSIGN(const HostPort address, ParseHostPort("[fd00::1]:2222"));
  EXPECT_EQ(address.host, "fd00::1");
  EXPECT_EQ(address.ToString(), "[fd00::1]:2222");
}

TEST(AddressTest, ErrorsSayWhatIsWrongAndHowToFixIt) {
  EXPECT_THAT(Complaint("h0"), HasSubstr("has no port; write \"h0:2222\""));
  EXPECT_THAT(Complaint("h0:"), HasSubstr("has no port; write \"h0:2222\""));
  EXPECT_THAT(Complaint("[::1]"), HasSubstr("has no port"));
  EXPECT_THAT(Complaint(":2222"), HasSubstr("has no host"));
  EXPECT_THAT(Complaint(""), HasSubstr("has no host"));
  EXPECT_THAT(Complaint("h0:0"), HasSubstr("a port is 1 to 65535"));
  EXPECT_THAT(Complaint("h0:65536"), HasSubstr("a port is 1 to 65535"));
  EXPECT_THAT(Complaint("h0:-1"), HasSubstr("a port is 1 to 65535"));
  EXPECT_THAT(Complaint("h0:http"), HasSubstr("a port is 1 to 65535"));
  EXPECT_THAT(Complaint("h0:99999999999"), HasSubstr("a port is 1 to 65535"));
  EXPECT_THAT(Complaint("fd00::1:2222"), HasSubstr("\"[fd00::1]:2222\""));
  EXPECT_THAT(Complaint("[fd00::1:2222"), HasSubstr("no closing bracket"));
  EXPECT_THAT(Complaint("[h0]:2222"), HasSubstr("not IPv6"));
  EXPECT_THAT(Complaint("[::1]2222"), HasSubstr("a colon after"));
  EXPECT_THAT(Complaint("h 0:2222"), HasSubstr("is not an address"));
  EXPECT_THAT(Complaint("h0/path:2222"), HasSubstr("is not an address"));
  EXPECT_THAT(Complaint(std::string(300, 'h') + ":1"),
              HasSubstr("longer than 253"));
}

TEST(AddressTest, RecognizesHostsOfThisMachine) {
  EXPECT_TRUE(IsLoopbackHost("localhost"));
  EXPECT_TRUE(IsLoopbackHost("127.0.1.1"));
  EXPECT_TRUE(IsLoopbackHost("::1"));
  EXPECT_FALSE(IsLoopbackHost("localhost.example"));
  EXPECT_FALSE(IsLoopbackHost("10.127.0.1"));
  EXPECT_FALSE(IsLoopbackHost("127.example"));
  EXPECT_FALSE(IsLoopbackHost("127.0.0.1.example"));
  EXPECT_TRUE(IsWildcardHost("0.0.0.0"));
  EXPECT_TRUE(IsWildcardHost("::"));
  EXPECT_FALSE(IsWildcardHost("0.0.0.1"));
}

}  // namespace
}  // namespace muster
