#include "common/io/storage/testing/tls_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// Forwards in both directions until one end closes the connection.
void Forward(SSL* client, int server) {
  char bytes[1 << 14];
  pollfd entries[] = {{SSL_get_fd(client), POLLIN, 0}, {server, POLLIN, 0}};
  for (;;) {
    if (SSL_pending(client) == 0) poll(entries, 2, -1);
    if (SSL_pending(client) > 0 || entries[0].revents != 0) {
      const int count = SSL_read(client, bytes, sizeof(bytes));
      if (count <= 0 || send(server, bytes, count, MSG_NOSIGNAL) != count) {
        return;
      }
    }
    if (entries[1].revents != 0) {
      const ssize_t count = recv(server, bytes, sizeof(bytes), 0);
      if (count <= 0 ||
          SSL_write(client, bytes, static_cast<int>(count)) <= 0) {
        return;
      }
      entries[1].revents = 0;
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsProxy>> TlsProxy::Start(
    int target_port, const std::string& tls_file) {
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  if (SSL_CTX_use_certificate_chain_file(context, tls_file.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, tls_file.c_str(),
                                  SSL_FILETYPE_PEM) != 1) {
    SSL_CTX_free(context);
    return absl::InvalidArgumentError(
        absl::StrCat(tls_file, " has no certificate with its key"));
  }
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size_bytes = sizeof(address);
  if (fd < 0 ||
      bind(fd, reinterpret_cast<sockaddr*>(&address), size_bytes) != 0 ||
      listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size_bytes) !=
          0) {
    SSL_CTX_free(context);
    return absl::ResourceExhaustedError("no port for a proxy");
  }
  return std::unique_ptr<TlsProxy>(
      new TlsProxy(fd, ntohs(address.sin_port), target_port, context));
}

TlsProxy::TlsProxy(int listening_fd, int port, int target_port,
                   ssl_ctx_st* context)
    : listening_fd_(listening_fd),
      port_(port),
      target_port_(target_port),
      context_(context),
      thread_([this] { AcceptAll(); }) {}

TlsProxy::~TlsProxy() {
  shutdown(listening_fd_, SHUT_RDWR);
  thread_.join();
  close(listening_fd_);
  SSL_CTX_free(context_);
}

void TlsProxy::AcceptAll() {
  for (;;) {
    const int client = accept4(listening_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) break;
    connections_.emplace_back([this, client] { Serve(client); });
  }
  for (std::thread& connection : connections_) connection.join();
}

void TlsProxy::Serve(int client) {
  SSL* const ssl = SSL_new(context_);
  SSL_set_fd(ssl, client);
  if (SSL_accept(ssl) == 1) {
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(target_port_);
    if (connect(server, reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) == 0) {
      Forward(ssl, server);
    }
    SSL_shutdown(ssl);
    close(server);
  }
  SSL_free(ssl);
  close(client);
}

}  // namespace muster
