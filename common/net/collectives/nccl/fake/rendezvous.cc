#include "common/net/collectives/nccl/fake/rendezvous.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/file_descriptor.h"

namespace muster {
namespace {

// The message of a rank. The answer contains those of all ranks, by rank.
struct Attendance {
  int rank = 0;
  int size = 0;
  char address[256] = {};
};

bool SendAll(int fd, const void* data, size_t size_bytes) {
  const auto* next = static_cast<const char*>(data);
  while (size_bytes > 0) {
    const ssize_t sent = send(fd, next, size_bytes, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    next += sent;
    size_bytes -= static_cast<size_t>(sent);
  }
  return true;
}

// Returns false if the peer closes the socket, or `is_over()` becomes true,
// before all bytes have arrived.
bool ReceiveAll(int fd, void* data, size_t size_bytes,
                absl::FunctionRef<bool()> is_over) {
  constexpr int kPeriodMilliseconds = 10;
  auto* next = static_cast<char*>(data);
  while (size_bytes > 0) {
    if (is_over()) return false;
    pollfd entry = {fd, POLLIN, 0};
    if (poll(&entry, 1, kPeriodMilliseconds) <= 0) continue;
    const ssize_t received = recv(fd, next, size_bytes, 0);
    if (received <= 0) return false;
    next += received;
    size_bytes -= static_cast<size_t>(received);
  }
  return true;
}

// Accepts ranks until the group is complete, then sends the answer. Returns
// early if the socket is shut down.
void Serve(const LocalEndpoint& endpoint) {
  std::vector<FileDescriptor> ranks;
  std::vector<Attendance> attendances;
  do {
    pollfd entry = {endpoint.socket().get(), POLLIN, 0};
    if (poll(&entry, 1, -1) < 0 && errno != EINTR) return;
    if ((entry.revents & POLLHUP) != 0) return;
    FileDescriptor socket(accept(endpoint.socket().get(), nullptr, nullptr));
    if (!socket.is_open()) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    Attendance attendance;
    if (!ReceiveAll(socket.get(), &attendance, sizeof(attendance),
                    [] { return false; })) {
      continue;
    }
    ranks.push_back(std::move(socket));
    attendances.push_back(attendance);
  } while (attendances.empty() ||
           static_cast<int>(ranks.size()) < attendances[0].size);
  std::sort(attendances.begin(), attendances.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  for (const FileDescriptor& rank : ranks) {
    // Errors are ignored: if a rank has ended meanwhile, the other ranks detect
    // it.
    (void)SendAll(rank.get(), attendances.data(),
                  attendances.size() * sizeof(Attendance));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Rendezvous>> Rendezvous::Open() {
  ASSIGN_OR_RETURN(std::unique_ptr<LocalEndpoint> endpoint,
                   LocalEndpoint::Listen());
  return absl::WrapUnique(new Rendezvous(std::move(endpoint)));
}

Rendezvous::Rendezvous(std::shared_ptr<LocalEndpoint> endpoint)
    : endpoint_(std::move(endpoint)) {
  const std::string& address = endpoint_->address();
  MUSTER_CHECK(address.size() < sizeof(id_.bytes));
  std::memcpy(id_.bytes, address.data(), address.size());
  std::thread([endpoint = endpoint_] { Serve(*endpoint); }).detach();
}

Rendezvous::~Rendezvous() { shutdown(endpoint_->socket().get(), SHUT_RDWR); }

absl::StatusOr<std::vector<std::string>> Rendezvous::Attend(
    const nccl::UniqueId& id, int rank, int size, absl::string_view address,
    absl::FunctionRef<bool()> is_over) {
  const std::string name(id.bytes, strnlen(id.bytes, sizeof(id.bytes)));
  ASSIGN_OR_RETURN(const sockaddr_un place, LocalEndpoint::SocketAddress(name));
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Attendance own = {rank, size, {}};
  MUSTER_CHECK(address.size() < sizeof(own.address));
  std::memcpy(own.address, address.data(), address.size());
  std::vector<Attendance> all(size);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&place),
              sizeof(place)) != 0 ||
      !SendAll(socket.get(), &own, sizeof(own)) ||
      !ReceiveAll(socket.get(), all.data(), size * sizeof(Attendance),
                  is_over)) {
    return absl::UnavailableError(
        absl::StrCat("the rendezvous of the unique id \"", name, "\" is over"));
  }
  std::vector<std::string> addresses;
  for (const Attendance& attendance : all) {
    addresses.emplace_back(attendance.address);
  }
  return addresses;
}

}  // namespace muster
