#ifndef COMMON_IO_STORAGE_TESTING_TLS_PROXY_H_
#define COMMON_IO_STORAGE_TESTING_TLS_PROXY_H_

#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

struct ssl_ctx_st;

namespace muster {

// A server on a free port of the loopback interface that speaks TLS with its
// clients and forwards what they send to a server without TLS. Debian's
// CivetWeb cannot speak TLS with OpenSSL 3. Thread-safe.
class TlsProxy {
 public:
  // Forwards to `target_port`. `tls_file` is a PEM file with a certificate and
  // its key.
  //   kInvalidArgument    the file has no certificate and key
  //   kResourceExhausted  no port is available
  static absl::StatusOr<std::unique_ptr<TlsProxy>> Start(
      int target_port, const std::string& tls_file);

  // Waits until the clients have closed their connections.
  ~TlsProxy();
  TlsProxy(const TlsProxy&) = delete;
  TlsProxy& operator=(const TlsProxy&) = delete;

  int port() const { return port_; }

 private:
  TlsProxy(int listening_fd, int port, int target_port, ssl_ctx_st* context);
  void AcceptAll();
  void Serve(int client);

  const int listening_fd_;
  const int port_;
  const int target_port_;
  ssl_ctx_st* const context_;
  std::list<std::thread> connections_;  // Used by thread_ only.
  std::thread thread_;
};

}  // namespace muster

#endif  // COMMON_IO_STORAGE_TESTING_TLS_PROXY_H_
