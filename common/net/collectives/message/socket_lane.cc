#include "common/net/collectives/message/socket_lane.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr int kSocketBufferBytes = 4 << 20;
// Payloads that are reduced as they arrive pass through this buffer. It is
// small enough for them to stay in the second-level cache until they are
// reduced.
constexpr size_t kInputBytes = size_t{256} << 10;
// FindAbort() reads at most this many bytes: more than a kernel buffers for a
// socket.
constexpr size_t kLookAheadBytesMax = size_t{64} << 20;

// Compares addresses, because a connection to a machine's own external address
// also uses the loopback device.
bool IsSameHost(const sockaddr_storage& self, const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(self).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(peer).sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(self).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr,
                     sizeof(in6_addr)) == 0;
}

void SetOption(int fd, int level, int name, int value) {
  // Errors are ignored: without the option, the socket is slower but correct.
  setsockopt(fd, level, name, &value, sizeof(value));
}

void SetUpTcp(int fd, bool is_loopback, absl::Duration silence_timeout) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  const int timeout_ms =
      static_cast<int>(absl::ToInt64Milliseconds(silence_timeout));
  const int probe_interval_s = std::max(1, timeout_ms / 6000);
  // If no data is in transit, the probes detect that a machine is gone.
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, 2 * probe_interval_s);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, probe_interval_s);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, timeout_ms);
  if (!is_loopback) return;
  // Congestion controllers that model the bandwidth of a path slow the loopback
  // device down to half its speed.
  constexpr char kController[] = "reno";
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kController,
             sizeof(kController) - 1);
}

// Sets up the socket. Returns true if the peer is on this host, judging by its
// address.
bool SetUp(int fd, absl::Duration silence_timeout) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  SetOption(fd, SOL_SOCKET, SO_SNDBUF, kSocketBufferBytes);
  SetOption(fd, SOL_SOCKET, SO_RCVBUF, kSocketBufferBytes);
  sockaddr_storage self = {};
  sockaddr_storage peer = {};
  socklen_t self_bytes = sizeof(self);
  socklen_t peer_bytes = sizeof(peer);
  getsockname(fd, reinterpret_cast<sockaddr*>(&self), &self_bytes);
  getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_bytes);
  if (peer.ss_family != AF_INET && peer.ss_family != AF_INET6) return true;
  const bool is_loopback = IsSameHost(self, peer);
  SetUpTcp(fd, is_loopback, silence_timeout);
  return is_loopback;
}

class SocketLane final : public Lane {
 public:
  SocketLane(std::unique_ptr<SocketStream> stream, std::string transport,
             absl::Duration silence_timeout)
      : transport_(std::move(transport)),
        is_same_host_(SetUp(stream->fd(), silence_timeout)),
        stream_(std::move(stream)),
        input_(kInputBytes) {}
  ~SocketLane() override { Close(); }

  std::string transport() const override { return transport_; }
  bool is_same_host() const override { return is_same_host_; }
  void SetWaker(LaneWaker*) override {}
  int fd() const override { return stream_ == nullptr ? -1 : stream_->fd(); }
  bool HoldsPayloads() const override { return false; }

  absl::StatusOr<bool> Send(OutgoingFrame& frame) override;
  absl::StatusOr<const FrameHeader*> NextFrame() override;
  absl::StatusOr<bool> ReceivePayload(PayloadSink& sink) override;
  absl::Status FindAbort() override;

  void Close() override {
    if (stream_ == nullptr) return;
    stream_->FinishWriting();
    // Closing a socket that has unread bytes resets the connection, and the
    // last frames would be lost.
    input_begin_ = input_end_ = 0;
    FillInput().IgnoreError();
    stream_ = nullptr;
  }

 private:
  size_t available() const { return input_end_ - input_begin_; }

  // Returns the number of bytes read; 0 if none are available.
  absl::StatusOr<size_t> Read(absl::Span<const iovec> parts);
  // Appends to the bytes in the input buffer. Returns the number of bytes read.
  absl::StatusOr<size_t> FillInput();
  // Reads more of the payload, of which the input buffer has no bytes. Returns
  // true if any bytes were read.
  absl::StatusOr<bool> ReceiveMore(PayloadSink& sink);

  const std::string transport_;
  const bool is_same_host_;
  std::unique_ptr<SocketStream> stream_;  // Null once closed.
  std::vector<uint8_t> input_;
  size_t input_begin_ = 0;
  size_t input_end_ = 0;
  std::optional<FrameHeader> next_;
  uint64_t payload_left_bytes_ = 0;
  // The header of the frame that is being sent, encoded once.
  EncodedFrameHeader outgoing_header_;
};

absl::StatusOr<bool> SocketLane::Send(OutgoingFrame& frame) {
  if (stream_ == nullptr) return absl::UnavailableError("the lane is closed");
  constexpr size_t kHeaderBytes = FrameHeader::kEncodedBytes;
  if (frame.sent_bytes == 0) {
    outgoing_header_ = EncodeFrameHeader(frame.header);
  }
  const size_t total_bytes = kHeaderBytes + frame.header.payload_bytes;
  while (frame.sent_bytes < total_bytes) {
    iovec parts[2];
    int part_count = 0;
    size_t payload_sent = 0;
    if (frame.sent_bytes < kHeaderBytes) {
      parts[part_count++] = {outgoing_header_.data() + frame.sent_bytes,
                             kHeaderBytes - frame.sent_bytes};
    } else {
      payload_sent = frame.sent_bytes - kHeaderBytes;
    }
    if (payload_sent < frame.header.payload_bytes) {
      parts[part_count++] = {const_cast<uint8_t*>(frame.payload) + payload_sent,
                             frame.header.payload_bytes - payload_sent};
    }
    ASSIGN_OR_RETURN(const size_t sent,
                     stream_->Write(absl::MakeConstSpan(parts, part_count)));
    if (sent == 0) return false;
    frame.sent_bytes += sent;
  }
  return true;
}

absl::StatusOr<size_t> SocketLane::Read(absl::Span<const iovec> parts) {
  if (stream_ == nullptr) return absl::UnavailableError("the lane is closed");
  return stream_->Read(parts);
}

absl::StatusOr<size_t> SocketLane::FillInput() {
  std::memmove(input_.data(), input_.data() + input_begin_, available());
  input_end_ = available();
  input_begin_ = 0;
  ASSIGN_OR_RETURN(
      const size_t read,
      Read({{input_.data() + input_end_, input_.size() - input_end_}}));
  input_end_ += read;
  return read;
}

absl::StatusOr<const FrameHeader*> SocketLane::NextFrame() {
  if (next_.has_value()) return &*next_;
  constexpr size_t kHeaderBytes = FrameHeader::kEncodedBytes;
  if (available() < kHeaderBytes) {
    RETURN_IF_ERROR(FillInput().status());
    if (available() < kHeaderBytes) return nullptr;
  }
  EncodedFrameHeader encoded;
  std::memcpy(encoded.data(), input_.data() + input_begin_, kHeaderBytes);
  input_begin_ += kHeaderBytes;
  ASSIGN_OR_RETURN(next_, DecodeFrameHeader(encoded));
  payload_left_bytes_ = next_->payload_bytes;
  return &*next_;
}

absl::StatusOr<bool> SocketLane::ReceivePayload(PayloadSink& sink) {
  while (payload_left_bytes_ > 0) {
    if (available() == 0) {
      ASSIGN_OR_RETURN(const bool is_more, ReceiveMore(sink));
      if (!is_more) return false;
    }
    const size_t count = std::min<size_t>(available(), payload_left_bytes_);
    if (count == 0) continue;
    sink.Take(input_.data() + input_begin_, count);
    input_begin_ += count;
    payload_left_bytes_ -= count;
  }
  next_.reset();
  return true;
}

absl::StatusOr<bool> SocketLane::ReceiveMore(PayloadSink& sink) {
  PayloadMemory* const memory = sink.memory();
  if (memory == nullptr) {
    ASSIGN_OR_RETURN(const size_t read, FillInput());
    return read > 0;
  }
  // The same system call reads the bytes after the payload, usually the next
  // header.
  input_begin_ = input_end_ = 0;
  ASSIGN_OR_RETURN(const size_t read,
                   Read({{memory->next(), payload_left_bytes_},
                         {input_.data(), input_.size()}}));
  const size_t to_direct = std::min<size_t>(read, payload_left_bytes_);
  memory->Wrote(to_direct);
  payload_left_bytes_ -= to_direct;
  input_end_ = read - to_direct;
  return read > 0;
}

absl::Status SocketLane::FindAbort() {
  if (stream_ == nullptr) return absl::OkStatus();
  absl::Status status;
  while (status.ok() && available() < kLookAheadBytesMax) {
    if (input_end_ == input_.size()) input_.resize(2 * input_.size());
    absl::StatusOr<size_t> read = FillInput();
    status = read.status();
    if (read.ok() && *read == 0) break;
  }
  // Goes from header to header without removing any bytes from the input.
  size_t offset = input_begin_ + payload_left_bytes_;
  while (offset + FrameHeader::kEncodedBytes <= input_end_) {
    EncodedFrameHeader encoded;
    std::memcpy(encoded.data(), input_.data() + offset, encoded.size());
    const absl::StatusOr<FrameHeader> header = DecodeFrameHeader(encoded);
    // A caller that receives up to this header gets the error.
    if (!header.ok()) break;
    offset += encoded.size();
    if (header->kind == FrameKind::kAbort &&
        offset + header->payload_bytes <= input_end_) {
      return DecodeAbort({reinterpret_cast<const char*>(&input_[offset]),
                          header->payload_bytes});
    }
    offset += header->payload_bytes;
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Lane> MakeSocketLane(std::unique_ptr<SocketStream> stream,
                                     std::string transport,
                                     absl::Duration silence_timeout) {
  return std::make_unique<SocketLane>(std::move(stream), std::move(transport),
                                      silence_timeout);
}

}  // namespace muster
