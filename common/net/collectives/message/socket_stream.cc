#include "common/net/collectives/message/socket_stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace muster {
namespace {

absl::Status Broken(absl::string_view what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

class PlaintextStream final : public SocketStream {
 public:
  explicit PlaintextStream(int fd) : fd_(fd) {}
  ~PlaintextStream() override { close(fd_); }
  PlaintextStream(const PlaintextStream&) = delete;
  PlaintextStream& operator=(const PlaintextStream&) = delete;

  int fd() const override { return fd_; }
  absl::StatusOr<bool> Handshake() override { return true; }

  absl::StatusOr<size_t> Write(absl::Span<const iovec> parts) override {
    msghdr message = {};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    ssize_t sent = 0;
    do {
      sent = sendmsg(fd_, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (WouldBlock(errno)) return 0;
    return Broken("cannot send", errno);
  }

  absl::StatusOr<size_t> Read(absl::Span<const iovec> parts) override {
    ssize_t read = 0;
    do {
      read = readv(fd_, parts.data(), static_cast<int>(parts.size()));
    } while (read < 0 && errno == EINTR);
    if (read > 0) return static_cast<size_t>(read);
    if (read == 0) {
      return absl::UnavailableError("the other end closed the connection");
    }
    if (WouldBlock(errno)) return 0;
    return Broken("cannot receive", errno);
  }

  void FinishWriting() override { shutdown(fd_, SHUT_WR); }

 private:
  const int fd_;
};

}  // namespace

std::unique_ptr<SocketStream> MakePlaintextStream(int fd) {
  return std::make_unique<PlaintextStream>(fd);
}

}  // namespace muster
