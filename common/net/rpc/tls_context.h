#ifndef COMMON_NET_RPC_TLS_CONTEXT_H_
#define COMMON_NET_RPC_TLS_CONTEXT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/rpc/spiffe_id.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
namespace experimental {
class CertificateProviderInterface;
}  // namespace experimental
}  // namespace grpc

namespace muster {

// The PEM files by which a task proves its identity.
struct TlsFiles {
  std::string certificate;  // Of this task, followed by intermediate ones.
  std::string key;          // The certificate's private key.
  std::string ca;  // The authority that signs the certificates of the job.

  bool empty() const {
    return certificate.empty() && key.empty() && ca.empty();
  }
};

// Returns the paths of a task's files in a folder that holds those of many
// tasks: "worker-1.pem", "worker-1.key", "ca.pem".
TlsFiles TlsFilesIn(const std::string& folder, absl::string_view role,
                    int index);

// Mutual TLS between the tasks of a job. Both ends show a certificate of the
// job's CA that names a task (SpiffeId). Host names play no part, since a task
// may move to another host. TLS 1.3 only.
//
// The files are read again when they change, within two seconds, so that
// certificates can be replaced while the task runs. Connections that exist stay
// as they are.
//
// Thread-safe.
class TlsContext {
 public:
  // Reads the files and checks that they fit each other.
  //   kNotFound         a file is missing
  //   kInvalidArgument  a file holds no certificate or key; the key is of
  //                     another certificate; the CA did not sign it, or it is
  //                     not valid now; or it names no task
  static absl::StatusOr<std::unique_ptr<TlsContext>> Load(
      const TlsFiles& files);

  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // The task in this process' certificate, as it was at Load().
  const SpiffeId& self() const { return self_; }

  // For servers: connections come from tasks of the same job.
  std::shared_ptr<grpc::ServerCredentials> ServerCredentials() const;

  // For channels: connections lead to this task of the same job.
  std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(
      absl::string_view peer_role, int peer_index) const;

 private:
  TlsContext(const TlsFiles& files, SpiffeId self);

  const SpiffeId self_;
  const std::shared_ptr<grpc::experimental::CertificateProviderInterface>
      provider_;
};

}  // namespace muster

#endif  // COMMON_NET_RPC_TLS_CONTEXT_H_
