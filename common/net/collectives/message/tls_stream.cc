#include "common/net/collectives/message/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
// Bytes that one system call receives, and bytes that are encrypted before a
// system call sends them. For a record of 16 KiB, a system call costs as much
// as the cipher.
constexpr size_t kBatchBytes = size_t{256} << 10;
// TLS_AES_128_GCM_SHA256. A pre-shared key belongs to the hash of a suite, so
// only one is offered.
constexpr unsigned char kCipherId[] = {0x13, 0x01};
constexpr char kCipherName[] = "TLS_AES_128_GCM_SHA256";
// Each listener has its own key, so all keys may have the same name.
constexpr absl::string_view kKeyName = "muster-lane";

// Buffers the bytes between OpenSSL and a socket. It replaces OpenSSL's own
// read-ahead, which moves all buffered bytes to the front of its buffer for
// each record.
class Wire {
 public:
  explicit Wire(int fd) : fd_(fd), input_(kBatchBytes) {}

  // Returns -1 with errno set, 0 at the end, or the number of bytes.
  int Read(char* data, int size_bytes) {
    if (begin_ == end_) {
      const ssize_t count = recv(fd_, input_.data(), input_.size(), 0);
      if (count <= 0) return static_cast<int>(count);
      begin_ = 0;
      end_ = static_cast<size_t>(count);
    }
    const size_t count = std::min<size_t>(size_bytes, end_ - begin_);
    std::memcpy(data, input_.data() + begin_, count);
    begin_ += count;
    return static_cast<int>(count);
  }

  // Buffers bytes for the next Flush().
  void Write(const char* data, int size_bytes) {
    output_.append(data, static_cast<size_t>(size_bytes));
  }

  // Returns true if all buffered bytes were sent.
  absl::StatusOr<bool> Flush() {
    while (sent_ < output_.size()) {
      const ssize_t count = send(fd_, output_.data() + sent_,
                                 output_.size() - sent_, MSG_NOSIGNAL);
      if (count < 0) {
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
        return absl::UnavailableError(
            absl::StrCat("cannot send: ", std::strerror(errno)));
      }
      sent_ += static_cast<size_t>(count);
    }
    output_.clear();
    sent_ = 0;
    return true;
  }

 private:
  const int fd_;
  std::vector<char> input_;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::string output_;
  size_t sent_ = 0;
};

int WriteToWire(BIO* bio, const char* data, int size_bytes) {
  BIO_clear_retry_flags(bio);
  static_cast<Wire*>(BIO_get_data(bio))->Write(data, size_bytes);
  return size_bytes;
}

int ReadFromWire(BIO* bio, char* data, int size_bytes) {
  BIO_clear_retry_flags(bio);
  const int count =
      static_cast<Wire*>(BIO_get_data(bio))->Read(data, size_bytes);
  if (count < 0 && BIO_sock_should_retry(-1)) BIO_set_retry_read(bio);
  if (count == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return count;
}

long ControlWire(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF);
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO* NewBio(Wire* wire) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "lane");
    MUSTER_CHECK(made != nullptr);
    BIO_meth_set_write(made, WriteToWire);
    BIO_meth_set_read(made, ReadFromWire);
    BIO_meth_set_ctrl(made, ControlWire);
    return made;
  }();
  BIO* const bio = BIO_new(method);
  MUSTER_CHECK(bio != nullptr);
  BIO_set_data(bio, wire);
  BIO_set_init(bio, 1);
  return bio;
}

SSL_CTX* Context() {
  static SSL_CTX* const context = [] {
    SSL_CTX* const made = SSL_CTX_new(TLS_method());
    MUSTER_CHECK(made != nullptr);
    MUSTER_CHECK(SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) == 1);
    MUSTER_CHECK(SSL_CTX_set_ciphersuites(made, kCipherName) == 1);
    SSL_CTX_set_options(made, SSL_OP_NO_TICKET);
    SSL_CTX_clear_options(made, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
    SSL_CTX_set_num_tickets(made, 0);
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
    return made;
  }();
  return context;
}

// Returns the key of the stream that owns `ssl` in the form that OpenSSL
// requires.
SSL_SESSION* NewSession(SSL* ssl) {
  const auto& key = *static_cast<const std::string*>(SSL_get_app_data(ssl));
  SSL_SESSION* const session = SSL_SESSION_new();
  MUSTER_CHECK(session != nullptr);
  MUSTER_CHECK(SSL_SESSION_set1_master_key(
                   session, reinterpret_cast<const unsigned char*>(key.data()),
                   key.size()) == 1);
  MUSTER_CHECK(
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kCipherId)) == 1);
  MUSTER_CHECK(SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1);
  return session;
}

int OfferKey(SSL* ssl, const EVP_MD*, const unsigned char** name,
             size_t* name_bytes, SSL_SESSION** session) {
  *name = reinterpret_cast<const unsigned char*>(kKeyName.data());
  *name_bytes = kKeyName.size();
  *session = NewSession(ssl);
  return 1;
}

int FindKey(SSL* ssl, const unsigned char* name, size_t name_bytes,
            SSL_SESSION** session) {
  const absl::string_view wanted(reinterpret_cast<const char*>(name),
                                 name_bytes);
  *session = wanted == kKeyName ? NewSession(ssl) : nullptr;
  return 1;
}

class TlsStream final : public SocketStream {
 public:
  TlsStream(int fd, TlsStreamOptions options)
      : fd_(fd),
        options_(std::move(options)),
        wire_(fd),
        ssl_(SSL_new(Context())) {
    MUSTER_CHECK(ssl_ != nullptr);
    MUSTER_CHECK(SSL_set_app_data(ssl_, &options_.key) == 1);
    BIO* const bio = NewBio(&wire_);
    SSL_set_bio(ssl_, bio, bio);
    if (options_.role == TlsRole::kClient) {
      SSL_set_psk_use_session_callback(ssl_, OfferKey);
      // No authority is trusted, so that a certificate never replaces the key.
      SSL_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);
      SSL_set_connect_state(ssl_);
    } else {
      SSL_set_psk_find_session_callback(ssl_, FindKey);
      SSL_set_accept_state(ssl_);
    }
  }
  ~TlsStream() override {
    SSL_free(ssl_);
    close(fd_);
  }
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  int fd() const override { return fd_; }
  absl::StatusOr<bool> Handshake() override;
  absl::StatusOr<size_t> Write(absl::Span<const iovec> parts) override;
  absl::StatusOr<size_t> Read(absl::Span<const iovec> parts) override;
  void FinishWriting() override;

 private:
  // Returns OK if the call that returned `result` must wait for the socket,
  // else the error.
  absl::Status Check(int result);
  // OpenSSL must not be called again after an error.
  absl::Status Break(absl::Status status) {
    broken_ = std::move(status);
    return broken_;
  }
  // Encrypts the beginning of `parts`. Returns the number of bytes.
  absl::StatusOr<size_t> Encrypt(absl::Span<const iovec> parts);
  // Encrypts one record. Never waits, because the Wire buffers all bytes.
  absl::Status EncryptRecord(const void* data, size_t size_bytes);

  const int fd_;
  const TlsStreamOptions options_;
  Wire wire_;
  SSL* const ssl_;
  absl::Status broken_;
  size_t bytes_with_key_ = 0;
  // The size of the encrypted plaintext that has not been sent completely.
  size_t unsent_bytes_ = 0;
  std::vector<uint8_t> record_;
};

absl::Status TlsStream::Check(int result) {
  const int error = errno;
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return absl::OkStatus();
    case SSL_ERROR_ZERO_RETURN:
      return Break(
          absl::UnavailableError("the other end closed the connection"));
    case SSL_ERROR_SYSCALL:
      return Break(absl::UnavailableError(
          absl::StrCat("the connection is broken: ", std::strerror(error))));
    default:
      break;
  }
  const unsigned long code = ERR_peek_error();
  if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    return Break(absl::UnavailableError("the other end closed the connection"));
  }
  const char* const reason = ERR_reason_error_string(code);
  return Break(absl::PermissionDeniedError(
      absl::StrCat("TLS 1.3 with this lane's key failed: ",
                   reason == nullptr ? absl::StrCat("error ", code) : reason)));
}

absl::StatusOr<bool> TlsStream::Handshake() {
  RETURN_IF_ERROR(broken_);
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  const absl::Status status = result == 1 ? absl::OkStatus() : Check(result);
  // Also sends the alert that says why this end refuses the peer. It fits into
  // the empty send buffer of a new socket.
  const absl::StatusOr<bool> is_flushed = wire_.Flush();
  RETURN_IF_ERROR(status);
  if (!is_flushed.ok()) return Break(is_flushed.status());
  if (result != 1) return false;
  if (SSL_session_reused(ssl_) != 1) {
    return Break(absl::PermissionDeniedError(
        "TLS 1.3 was agreed on without this lane's key"));
  }
  return true;
}

absl::Status TlsStream::EncryptRecord(const void* data, size_t size_bytes) {
  ERR_clear_error();
  const int result = SSL_write(ssl_, data, static_cast<int>(size_bytes));
  if (result <= 0) {
    RETURN_IF_ERROR(Check(result));
    return Break(absl::UnavailableError("OpenSSL takes no data"));
  }
  bytes_with_key_ += size_bytes;
  if (bytes_with_key_ < options_.bytes_per_key) return absl::OkStatus();
  bytes_with_key_ = 0;
  if (SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1) {
    return absl::OkStatus();
  }
  return Break(absl::UnavailableError("cannot change the key of the lane"));
}

absl::StatusOr<size_t> TlsStream::Encrypt(absl::Span<const iovec> parts) {
  size_t total_bytes = 0;
  // The header of a frame and the beginning of its payload share a record.
  record_.clear();
  for (const iovec& part : parts) {
    const auto* data = static_cast<const uint8_t*>(part.iov_base);
    size_t left_bytes = std::min(part.iov_len, kBatchBytes - total_bytes);
    total_bytes += left_bytes;
    while (left_bytes > 0) {
      const size_t count = std::min(left_bytes, kRecordBytes - record_.size());
      if (record_.empty() && count == kRecordBytes) {
        RETURN_IF_ERROR(EncryptRecord(data, count));
      } else {
        record_.insert(record_.end(), data, data + count);
      }
      data += count;
      left_bytes -= count;
      if (record_.size() < kRecordBytes) continue;
      RETURN_IF_ERROR(EncryptRecord(record_.data(), record_.size()));
      record_.clear();
    }
  }
  if (!record_.empty()) {
    RETURN_IF_ERROR(EncryptRecord(record_.data(), record_.size()));
  }
  return total_bytes;
}

absl::StatusOr<size_t> TlsStream::Write(absl::Span<const iovec> parts) {
  RETURN_IF_ERROR(broken_);
  if (unsent_bytes_ == 0) {
    ASSIGN_OR_RETURN(unsent_bytes_, Encrypt(parts));
  }
  const absl::StatusOr<bool> is_flushed = wire_.Flush();
  if (!is_flushed.ok()) return Break(is_flushed.status());
  // Until the bytes are sent, the caller calls again with the same bytes.
  return *is_flushed ? std::exchange(unsent_bytes_, 0) : 0;
}

absl::StatusOr<size_t> TlsStream::Read(absl::Span<const iovec> parts) {
  RETURN_IF_ERROR(broken_);
  size_t total_bytes = 0;
  for (const iovec& part : parts) {
    size_t part_bytes = 0;
    while (part_bytes < part.iov_len) {
      size_t read_bytes = 0;
      ERR_clear_error();
      const int result =
          SSL_read_ex(ssl_, static_cast<uint8_t*>(part.iov_base) + part_bytes,
                      part.iov_len - part_bytes, &read_bytes);
      if (result != 1) {
        const absl::Status status = Check(result);
        // Bytes received before the error are returned first.
        if (!status.ok() && total_bytes == 0) return status;
        return total_bytes;
      }
      part_bytes += read_bytes;
      total_bytes += read_bytes;
    }
  }
  return total_bytes;
}

void TlsStream::FinishWriting() {
  if (broken_.ok() && SSL_is_init_finished(ssl_)) {
    ERR_clear_error();
    SSL_shutdown(ssl_);
    wire_.Flush().IgnoreError();
  }
  shutdown(fd_, SHUT_WR);
}

}  // namespace

std::unique_ptr<SocketStream> MakeTlsStream(int fd, TlsStreamOptions options) {
  return std::make_unique<TlsStream>(fd, std::move(options));
}

}  // namespace muster
