#include "common/net/collectives/message/tls_stream.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/core/base/random.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/net/collectives/message/socket_stream.h"
#include "common/net/rpc/certificate_authority.h"
#include "common/net/rpc/method_access.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kKey(32, 'k');

// Returns the two ends of a non-blocking socket.
std::pair<int, int> MakeSocketPair() {
  int fds[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  return {fds[0], fds[1]};
}

std::unique_ptr<SocketStream> Client(int fd, std::string key = kKey) {
  return MakeTlsStream(fd, {.role = TlsRole::kClient, .key = std::move(key)});
}

std::unique_ptr<SocketStream> Server(int fd) {
  return MakeTlsStream(fd, {.role = TlsRole::kServer, .key = kKey});
}

// Advances both ends of a handshake alternately, until both have finished or
// failed.
std::pair<absl::Status, absl::Status> ShakeHands(SocketStream& a,
                                                 SocketStream& b) {
  absl::StatusOr<bool> of_a = false;
  absl::StatusOr<bool> of_b = false;
  for (int round = 0; round < 10; ++round) {
    if (of_a.ok() && !*of_a) of_a = a.Handshake();
    if (of_b.ok() && !*of_b) of_b = b.Handshake();
  }
  const auto status_of = [](const absl::StatusOr<bool>& result) {
    if (!result.ok()) return result.status();
    return *result ? absl::OkStatus() : absl::UnknownError("not finished");
  };
  return {status_of(of_a), status_of(of_b)};
}

std::string RandomText(size_t size_bytes) {
  std::string text(size_bytes, '\0');
  for (size_t i = 0; i < size_bytes; ++i) {
    text[i] = static_cast<char>(FoldIn(1, i));
  }
  return text;
}

// Moves `text` from one stream to the other on this thread. Returns what
// arrives.
std::string Transfer(SocketStream& from, SocketStream& to, std::string text) {
  std::string header = text.substr(0, 64);
  std::string received(text.size(), '\0');
  size_t sent_bytes = 0;
  size_t received_bytes = 0;
  while (received_bytes < text.size()) {
    if (sent_bytes < text.size()) {
      // In two parts, as a frame whose header is elsewhere in memory.
      iovec parts[2];
      int count = 0;
      if (sent_bytes < header.size()) {
        parts[count++] = {header.data() + sent_bytes,
                          header.size() - sent_bytes};
      }
      const size_t begin = std::max(sent_bytes, header.size());
      parts[count++] = {text.data() + begin, text.size() - begin};
      const auto sent = from.Write({parts, static_cast<size_t>(count)});
      if (!sent.ok()) return std::string(sent.status().message());
      sent_bytes += *sent;
    }
    const auto read = to.Read(
        {{received.data() + received_bytes, text.size() - received_bytes}});
    if (!read.ok()) return std::string(read.status().message());
    received_bytes += *read;
  }
  return received;
}

TEST(TlsStreamTest, BytesArriveInOrderInBothDirections) {
  const auto [a, b] = MakeSocketPair();
  const auto client = Client(a);
  const auto server = Server(b);
  EXPECT_THAT(ShakeHands(*client, *server), testing::Pair(IsOk(), IsOk()));
  const std::string text = RandomText(5'000'003);
  EXPECT_TRUE(Transfer(*client, *server, text) == text);
  EXPECT_TRUE(Transfer(*server, *client, text) == text);
}

TEST(TlsStreamTest, TheEndOfAStreamIsAnError) {
  const auto [a, b] = MakeSocketPair();
  const auto client = Client(a);
  auto server = Server(b);
  EXPECT_THAT(ShakeHands(*client, *server), testing::Pair(IsOk(), IsOk()));
  iovec end = {const_cast<char*>(kKey.data()), 3};
  ASSERT_THAT(server->Write({&end, 1}), IsOkAndHolds(3));
  server->FinishWriting();
  server = nullptr;
  // Bytes sent before the end of the stream arrive.
  char buffer[16];
  EXPECT_THAT(client->Read({{buffer, sizeof(buffer)}}), IsOkAndHolds(3));
  EXPECT_THAT(client->Read({{buffer, sizeof(buffer)}}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("closed")));
}

TEST(TlsStreamTest, AnotherKeyIsRefusedByBothEnds) {
  const auto [a, b] = MakeSocketPair();
  const auto client = Client(a, std::string(32, 'x'));
  const auto server = Server(b);
  const auto [of_client, of_server] = ShakeHands(*client, *server);
  EXPECT_THAT(of_server, StatusIs(absl::StatusCode::kPermissionDenied,
                                  AllOf(HasSubstr("TLS 1.3"),
                                        HasSubstr("binder does not verify"))));
  EXPECT_THAT(of_client, StatusIs(absl::StatusCode::kPermissionDenied,
                                  HasSubstr("TLS 1.3")));
}

TEST(TlsStreamTest, APeerThatSpeaksPlaintextIsRefused) {
  const auto [a, b] = MakeSocketPair();
  const auto plaintext = MakePlaintextStream(a);
  const auto server = Server(b);
  std::string hello(48, 'h');
  ASSERT_THAT(plaintext->Write({{hello.data(), hello.size()}}),
              IsOkAndHolds(48));
  EXPECT_THAT(server->Handshake(), StatusIs(absl::StatusCode::kPermissionDenied,
                                            HasSubstr("wrong version number")));
}

TEST(TlsStreamTest, AnEndThatIsGoneIsUnavailable) {
  const auto [a, b] = MakeSocketPair();
  const auto server = Server(b);
  close(a);
  EXPECT_THAT(server->Handshake(), StatusIs(absl::StatusCode::kUnavailable));
}

// Another program that uses TLS. Runs on its own thread until its end of the
// connection is closed.
class OtherProgram {
 public:
  OtherProgram(int fd, SSL_CTX* context, bool is_server)
      : context_(context), ssl_(SSL_new(context)), thread_([=, this] {
          fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
          SSL_set_fd(ssl_, fd);
          is_connected_ =
              (is_server ? SSL_accept(ssl_) : SSL_connect(ssl_)) == 1;
          char byte;
          // With TLS 1.3 a client learns of a refusal when it reads.
          is_connected_ = is_connected_ && SSL_read(ssl_, &byte, 1) == 1;
          close(fd);
        }) {}
  ~OtherProgram() {
    if (thread_.joinable()) thread_.join();
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  bool WasRefused() {
    thread_.join();
    return !is_connected_;
  }

 private:
  SSL_CTX* const context_;
  SSL* const ssl_;
  bool is_connected_ = false;
  std::thread thread_;
};

// Runs the handshake of `stream`, waiting for the other program.
absl::Status FinishHandshake(SocketStream& stream) {
  for (;;) {
    const absl::StatusOr<bool> is_finished = stream.Handshake();
    if (!is_finished.ok()) return is_finished.status();
    if (*is_finished) return absl::OkStatus();
    pollfd entry = {stream.fd(), POLLIN, 0};
    poll(&entry, 1, -1);
  }
}

TEST(TlsStreamTest, OlderVersionsAreRefused) {
  const auto [a, b] = MakeSocketPair();
  auto server = Server(b);
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
  OtherProgram other(a, context, /*is_server=*/false);
  EXPECT_THAT(FinishHandshake(*server),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("unsupported protocol")));
  EXPECT_TRUE(other.WasRefused());
}

TEST(TlsStreamTest, AClientWithoutAKeyIsRefused) {
  const auto [a, b] = MakeSocketPair();
  auto server = Server(b);
  OtherProgram other(a, SSL_CTX_new(TLS_client_method()), /*is_server=*/false);
  EXPECT_THAT(FinishHandshake(*server),
              StatusIs(absl::StatusCode::kPermissionDenied));
  server = nullptr;
  EXPECT_TRUE(other.WasRefused());
}

TEST(TlsStreamTest, ACertificateDoesNotReplaceTheKey) {
  const auto [a, b] = MakeSocketPair();
  auto client = Client(a);
  ASSERT_OK_AND_ASSIGN(const auto authority,
                       CertificateAuthority::Create(absl::Hours(1)));
  ASSERT_OK_AND_ASSIGN(const CertificateAuthority::Pem pem,
                       authority->Issue({"job", "worker", 0}));
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  BIO* const certificate = BIO_new_mem_buf(pem.certificate.data(), -1);
  BIO* const key = BIO_new_mem_buf(pem.key.data(), -1);
  X509* const x509 = PEM_read_bio_X509(certificate, nullptr, nullptr, nullptr);
  EVP_PKEY* const pkey =
      PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
  ASSERT_EQ(SSL_CTX_use_certificate(context, x509), 1);
  ASSERT_EQ(SSL_CTX_use_PrivateKey(context, pkey), 1);
  X509_free(x509);
  EVP_PKEY_free(pkey);
  BIO_free(certificate);
  BIO_free(key);
  OtherProgram other(b, context, /*is_server=*/true);
  EXPECT_THAT(FinishHandshake(*client),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("certificate verify failed")));
  client = nullptr;
  EXPECT_TRUE(other.WasRefused());
}

int key_update_count = 0;
void CountKeyUpdates(int is_write, int, int content_type, const void* message,
                     size_t size_bytes, SSL*, void*) {
  const auto* const bytes = static_cast<const uint8_t*>(message);
  if (is_write == 0 && content_type == SSL3_RT_HANDSHAKE && size_bytes > 0 &&
      bytes[0] == SSL3_MT_KEY_UPDATE) {
    ++key_update_count;
  }
}

int OfferTheKey(SSL* ssl, const EVP_MD*, const unsigned char** name,
                size_t* name_bytes, SSL_SESSION** session) {
  constexpr unsigned char kCipher[] = {0x13, 0x01};
  *name = reinterpret_cast<const unsigned char*>("muster-lane");
  *name_bytes = 11;
  *session = SSL_SESSION_new();
  SSL_SESSION_set1_master_key(
      *session, reinterpret_cast<const unsigned char*>(kKey.data()),
      kKey.size());
  SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, kCipher));
  SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION);
  return 1;
}

TEST(TlsStreamTest, KeysOfLongStreamsChange) {
  const auto [a, b] = MakeSocketPair();
  auto server = MakeTlsStream(
      b, {.role = TlsRole::kServer, .key = kKey, .bytes_per_key = 100'000});
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_psk_use_session_callback(context, OfferTheKey);
  SSL_CTX_set_msg_callback(context, CountKeyUpdates);
  SSL* const ssl = SSL_new(context);
  std::string received(1'000'000, '\0');
  std::thread reader([&, a = a] {
    fcntl(a, F_SETFL, fcntl(a, F_GETFL) & ~O_NONBLOCK);
    SSL_set_fd(ssl, a);
    EXPECT_EQ(SSL_connect(ssl), 1);
    size_t count = 0;
    while (count < received.size()) {
      const int read = SSL_read(ssl, received.data() + count,
                                static_cast<int>(received.size() - count));
      ASSERT_GT(read, 0);
      count += read;
    }
  });
  ASSERT_OK(FinishHandshake(*server));
  std::string text = RandomText(received.size());
  size_t sent_bytes = 0;
  while (sent_bytes < text.size()) {
    ASSERT_OK_AND_ASSIGN(
        const size_t sent,
        server->Write({{text.data() + sent_bytes, text.size() - sent_bytes}}));
    sent_bytes += sent;
    if (sent > 0) continue;
    pollfd entry = {server->fd(), POLLOUT, 0};
    poll(&entry, 1, -1);
  }
  reader.join();
  EXPECT_TRUE(received == text);
  EXPECT_GE(key_update_count, 8);
  SSL_free(ssl);
  SSL_CTX_free(context);
  close(a);
}

}  // namespace
}  // namespace muster
