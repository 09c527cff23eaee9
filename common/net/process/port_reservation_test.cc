#include "common/net/process/port_reservation.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <vector>

#include "common/core/base/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Opens `port` as a server does: SO_REUSEADDR, bind, listen. Returns true if
// that succeeds.
bool CanServe(int port, int* fd) {
  *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind(*fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
             0 &&
         listen(*fd, 1) == 0;
}

TEST(PortReservationTest, PortsDiffer) {
  std::vector<std::unique_ptr<PortReservation>> reservations;
  std::set<int> ports;
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK_AND_ASSIGN(reservations.emplace_back(),
                         PortReservation::Create());
    ports.insert(reservations.back()->port());
  }
  EXPECT_EQ(ports.size(), 50u);
}

TEST(PortReservationTest, AServerAndItsSuccessorGetTheReservedPort) {
  ASSERT_OK_AND_ASSIGN(const auto reservation, PortReservation::Create());
  for (int start = 0; start < 2; ++start) {
    int fd;
    EXPECT_TRUE(CanServe(reservation->port(), &fd)) << start;
    close(fd);
  }
}

// A client of "localhost" may connect to ::1.
TEST(PortReservationTest, ReservesThePortOverIpv6) {
  ASSERT_OK_AND_ASSIGN(const auto reservation, PortReservation::Create());
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) GTEST_SKIP() << "this machine has no IPv6";
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  address.sin6_port = htons(static_cast<uint16_t>(reservation->port()));
  EXPECT_NE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
            0);
  close(fd);
}

TEST(PortReservationTest, ASecondServerIsRefused) {
  ASSERT_OK_AND_ASSIGN(const auto reservation, PortReservation::Create());
  int first;
  int second;
  EXPECT_TRUE(CanServe(reservation->port(), &first));
  EXPECT_FALSE(CanServe(reservation->port(), &second));
  close(first);
  close(second);
}

}  // namespace
}  // namespace muster
