#include "common/net/rpc/tls_context.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/small_file.h"
#include "common/net/rpc/openssl_objects.h"

namespace muster {
namespace {

using grpc::experimental::ExternalCertificateVerifier;

// Keeps OpenSSL from freeing its state at exit, because threads of gRPC may
// still be in a handshake then. This must be set before OpenSSL is first used,
// so it is set before main().
[[maybe_unused]] const int openssl_stays_at_exit =
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

constexpr unsigned kRefreshIntervalSeconds = 1;

using openssl::Bio;
using openssl::Certificate;
using openssl::Key;
using Store = openssl::Owned<X509_STORE, X509_STORE_free>;
using StoreContext = openssl::Owned<X509_STORE_CTX, X509_STORE_CTX_free>;
using Names = openssl::Owned<GENERAL_NAMES, GENERAL_NAMES_free>;

absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     absl::string_view flag) {
  if (path.empty()) {
    return absl::NotFoundError(absl::StrCat(flag, ": cannot read \"\""));
  }
  absl::StatusOr<std::string> text = ReadSmallFile(path);
  if (text.ok()) return text;
  return absl::Status(text.status().code(),
                      absl::StrCat(flag, ": ", text.status().message()));
}

Bio Reader(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::StatusOr<Certificate> ParseCertificate(const std::string& pem,
                                             absl::string_view what) {
  Certificate certificate(
      PEM_read_bio_X509(Reader(pem).get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        absl::StrCat(what, " holds no certificate in PEM"));
  }
  return certificate;
}

absl::StatusOr<Key> ParseKey(const std::string& pem, absl::string_view what) {
  // Without this callback OpenSSL asks for a password on the terminal.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  Key key(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, no_password,
                                  nullptr));
  if (key == nullptr) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        absl::StrCat(what, " holds no unencrypted private key in PEM"));
  }
  return key;
}

absl::StatusOr<SpiffeId> TaskOf(X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  const int count = names == nullptr ? 0 : sk_GENERAL_NAME_num(names.get());
  for (int i = 0; i < count; ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    return ParseSpiffeId(absl::string_view(
        reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
        static_cast<size_t>(ASN1_STRING_length(uri))));
  }
  return absl::InvalidArgumentError(
      "it names no task: it has no URI among its subject alternative names; "
      "expected spiffe://muster/JOB/ROLE/INDEX");
}

absl::Status CheckSignedBy(X509* ca, X509* certificate) {
  const Store store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), ca);
  const StoreContext context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr);
  if (X509_verify_cert(context.get()) == 1) return absl::OkStatus();
  ERR_clear_error();
  return absl::InvalidArgumentError(absl::StrCat(
      "it is not valid under --tls_ca: ",
      X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()))));
}

absl::StatusOr<SpiffeId> CheckFiles(const TlsFiles& files) {
  ASSIGN_OR_RETURN(const std::string certificate_pem,
                   ReadFile(files.certificate, "--tls_cert"));
  ASSIGN_OR_RETURN(const std::string key_pem, ReadFile(files.key, "--tls_key"));
  ASSIGN_OR_RETURN(const std::string ca_pem, ReadFile(files.ca, "--tls_ca"));
  ASSIGN_OR_RETURN(const Certificate certificate,
                   ParseCertificate(certificate_pem, "--tls_cert"));
  ASSIGN_OR_RETURN(const Key key, ParseKey(key_pem, "--tls_key"));
  ASSIGN_OR_RETURN(const Certificate ca, ParseCertificate(ca_pem, "--tls_ca"));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(absl::StrCat(
        "--tls_key: ", files.key, " is not the key of ", files.certificate));
  }
  absl::StatusOr<SpiffeId> task = TaskOf(certificate.get());
  absl::Status status = task.status();
  // A chain of intermediate certificates is verified only in the handshake.
  const bool is_chain = absl::StrContains(
      certificate_pem.substr(certificate_pem.find("END")), "BEGIN CERTIFICATE");
  if (status.ok() && !is_chain) {
    status = CheckSignedBy(ca.get(), certificate.get());
  }
  if (status.ok()) return task;
  return absl::InvalidArgumentError(
      absl::StrCat("--tls_cert: ", files.certificate, ": ", status.message()));
}

// Accepts certificates of the job's tasks; on the client's side, only that of
// one task. OpenSSL has already verified the chain.
class TaskVerifier final : public ExternalCertificateVerifier {
 public:
  TaskVerifier(std::string job, std::optional<SpiffeId> expected)
      : job_(std::move(job)), expected_(std::move(expected)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const std::vector<grpc::string_ref> names = request->uri_names();
    *status = grpc::Status::OK;
    if (names.size() != 1) {
      *status = Refusal("the certificate has no SPIFFE id, or several");
      return true;
    }
    const auto id = ParseSpiffeId(
        absl::string_view(names.front().data(), names.front().size()));
    if (!id.ok() || id->job != job_) {
      *status = Refusal("the certificate is of another job");
    } else if (expected_.has_value() && *id != *expected_) {
      *status =
          Refusal(absl::StrCat("the certificate is that of ", id->TaskName(),
                               " and not of ", expected_->TaskName()));
    }
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {
  }

 private:
  static grpc::Status Refusal(const std::string& message) {
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, message);
  }

  const std::string job_;
  const std::optional<SpiffeId> expected_;
};

// This version of gRPC has no option to disable TLS 1.2. These ciphers apply to
// TLS 1.2 only and need a shared key. No shared key is ever set, so every
// TLS 1.2 handshake fails.
void DisableTls12() {
  setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES256-GCM-SHA384", /*overwrite=*/1);
}

void Configure(const std::shared_ptr<
                   grpc::experimental::CertificateProviderInterface>& provider,
               const std::string& job, std::optional<SpiffeId> expected,
               grpc::experimental::TlsCredentialsOptions* options) {
  options->set_certificate_provider(provider);
  options->watch_root_certs();
  options->watch_identity_key_cert_pairs();
  options->set_check_call_host(false);
  options->set_certificate_verifier(
      ExternalCertificateVerifier::Create<TaskVerifier>(job,
                                                        std::move(expected)));
}

}  // namespace

TlsFiles TlsFilesIn(const std::string& folder, absl::string_view role,
                    int index) {
  const std::string base = absl::StrCat(folder, "/", role, "-", index);
  return {.certificate = base + ".pem",
          .key = base + ".key",
          .ca = folder + "/ca.pem"};
}

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Load(
    const TlsFiles& files) {
  ASSIGN_OR_RETURN(SpiffeId self, CheckFiles(files));
  DisableTls12();
  return std::unique_ptr<TlsContext>(new TlsContext(files, std::move(self)));
}

TlsContext::TlsContext(const TlsFiles& files, SpiffeId self)
    : self_(std::move(self)),
      provider_(
          std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
              files.key, files.certificate, files.ca,
              kRefreshIntervalSeconds)) {}

TlsContext::~TlsContext() = default;

std::shared_ptr<grpc::ServerCredentials> TlsContext::ServerCredentials() const {
  grpc::experimental::TlsServerCredentialsOptions options(provider_);
  Configure(provider_, self_.job, std::nullopt, &options);
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> TlsContext::ChannelCredentials(
    absl::string_view peer_role, int peer_index) const {
  grpc::experimental::TlsChannelCredentialsOptions options;
  Configure(provider_, self_.job,
            SpiffeId{self_.job, std::string(peer_role), peer_index}, &options);
  options.set_verify_server_certs(true);
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace muster
