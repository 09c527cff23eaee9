#ifndef COMMON_NET_RPC_CERTIFICATE_AUTHORITY_H_
#define COMMON_NET_RPC_CERTIFICATE_AUTHORITY_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/net/rpc/method_access.h"
#include "common/net/rpc/tls_context.h"

namespace muster {

// Signs the certificates of a job's tasks (TlsContext). Keys are ECDSA keys on
// P-256. The CA signs certificates of tasks only, never one of another CA.
//
// Not thread-safe.
class CertificateAuthority {
 public:
  // Generates a new key. Certificates are valid from five minutes before they
  // are signed, because clocks differ, until `validity` after that.
  //   kInvalidArgument  `validity` is not above zero
  //   kInternal         OpenSSL fails
  static absl::StatusOr<std::unique_ptr<CertificateAuthority>> Create(
      absl::Duration validity);

  // Restores a CA from the PEM texts that Export() returned.
  //   kInvalidArgument  a text holds no certificate or no key, or they do not
  //                     belong together
  static absl::StatusOr<std::unique_ptr<CertificateAuthority>> FromPem(
      const std::string& certificate, const std::string& key,
      absl::Duration validity);

  ~CertificateAuthority();
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;

  struct Pem {
    std::string certificate;
    std::string key;
  };

  // Returns the CA's certificate and key.
  absl::StatusOr<Pem> Export() const;

  // Generates a key for `task` and signs its certificate.
  //   kInvalidArgument  the job's name cannot be part of a SpiffeId
  absl::StatusOr<Pem> Issue(const SpiffeId& task) const;

 private:
  struct Parts;
  explicit CertificateAuthority(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

// Issues a certificate for `task` and writes it with its key and the CA's
// certificate to `folder`: "worker-1.pem", "worker-1.key", "ca.pem". Returns
// the paths.
absl::StatusOr<TlsFiles> WriteTaskFiles(const CertificateAuthority& authority,
                                        const SpiffeId& task,
                                        const std::string& folder);

}  // namespace muster

#endif  // COMMON_NET_RPC_CERTIFICATE_AUTHORITY_H_
