#ifndef COMMON_NET_RPC_TLS_CONTEXT_H_
#define COMMON_NET_RPC_TLS_CONTEXT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/rpc/method_access.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
namespace experimental {
class CertificateProviderInterface;
}  // namespace experimental
}  // namespace grpc

namespace muster {

// The PEM files with which a task proves its identity.
struct TlsFiles {
  // The certificate of this task, followed by intermediate certificates.
  std::string certificate;
  std::string key;  // The certificate's private key.
  std::string ca;   // The authority that signs the certificates of the job.

  bool empty() const {
    return certificate.empty() && key.empty() && ca.empty();
  }
};

// Returns the paths of a task's files in a folder that holds those of many
// tasks: "worker-1.pem", "worker-1.key", "ca.pem".
TlsFiles TlsFilesIn(const std::string& folder, absl::string_view role,
                    int index);

// Mutual TLS between the tasks of a job. Both ends present a certificate that
// the job's CA has signed and that names a task (SpiffeId). Host names are not
// checked, since a task may move to another host. TLS 1.3 only.
//
// The files are read again within two seconds after they change, so that
// certificates can be replaced while the task runs. Existing connections keep
// the old certificate.
//
// Thread-safe.
class TlsContext {
 public:
  // Reads the files and checks that they belong together.
  //   kNotFound         a file is missing
  //   kInvalidArgument  a file holds no certificate or no key; the key belongs
  //                     to another certificate; or the task's certificate is
  //                     not signed by the CA, not valid now, or names no task
  static absl::StatusOr<std::unique_ptr<TlsContext>> Load(
      const TlsFiles& files);

  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Returns the task that this process' certificate named at Load().
  const SpiffeId& self() const { return self_; }

  // Returns credentials for servers: they accept connections from tasks of the
  // same job.
  std::shared_ptr<grpc::ServerCredentials> ServerCredentials() const;

  // Returns credentials for channels: they connect to the given task of the
  // same job only.
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
