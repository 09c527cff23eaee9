#include "common/net/rpc/port_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/core/base/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A socket of this process that listens on a port of the loopback interface.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size),
              0);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { close(fd_); }

  int port() const { return port_; }

 private:
  const int fd_;
  int port_ = 0;
};

// The kernel keeps 15 characters of a program's name.
std::string ThisProgram() {
  return std::string(program_invocation_short_name).substr(0, 15);
}

TEST(PortCheckTest, ATakenPortIsReportedWithItsOwner) {
  const Listener listener;
  for (const std::string host : {"127.0.0.1", "[::]"}) {
    const std::string address = absl::StrCat(host, ":", listener.port());
    EXPECT_THAT(CheckPortIsFree(address),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr(absl::StrCat(
                                   "cannot listen on ", address, ": port ",
                                   listener.port(), " is taken by process ",
                                   getpid(), " (")),
                               HasSubstr(ThisProgram()),
                               HasSubstr("another port in TF_CONFIG"))));
  }
}

TEST(PortCheckTest, AFreePortPassesAndStaysFree) {
  EXPECT_OK(CheckPortIsFree("localhost:0"));
  std::string address;
  {
    const Listener listener;
    address = absl::StrCat("127.0.0.1:", listener.port());
  }
  EXPECT_OK(CheckPortIsFree(address));
  EXPECT_OK(CheckPortIsFree(address));
}

TEST(PortCheckTest, AnAddressOfAnotherMachineIsReported) {
  EXPECT_THAT(CheckPortIsFree("192.0.2.1:2222"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("192.0.2.1 is no address of this machine")));
}

}  // namespace
}  // namespace muster
