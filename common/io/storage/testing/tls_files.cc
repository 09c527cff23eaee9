#include "common/io/storage/testing/tls_files.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;

bool AddExtension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension =
      X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  const bool is_added =
      extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return is_added;
}

// Returns a certificate of `key` that `issuer` has signed, or `key` itself if
// `issuer` is null.
Certificate Sign(const char* name, EVP_PKEY* key, X509* issuer,
                 EVP_PKEY* issuer_key) {
  Certificate certificate(X509_new());
  X509* const x509 = certificate.get();
  X509_set_version(x509, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), issuer == nullptr ? 1 : 2);
  X509_gmtime_adj(X509_getm_notBefore(x509), -300);
  X509_gmtime_adj(X509_getm_notAfter(x509), 24 * 60 * 60);
  X509_set_pubkey(x509, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), -1,
                             -1, 0);
  X509_set_issuer_name(
      x509, X509_get_subject_name(issuer == nullptr ? x509 : issuer));
  const bool is_extended =
      issuer == nullptr
          ? AddExtension(x509, NID_basic_constraints, "critical,CA:TRUE")
          : AddExtension(x509, NID_subject_alt_name, "IP:127.0.0.1");
  if (!is_extended || X509_sign(x509, issuer_key, EVP_sha256()) == 0) {
    return nullptr;
  }
  return certificate;
}

absl::Status Write(const std::string& path, X509* certificate, EVP_PKEY* key) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    return absl::InternalError(absl::StrCat("cannot write ", path));
  }
  bool is_written = PEM_write_X509(file, certificate) == 1;
  if (key != nullptr) {
    is_written = PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr,
                                      nullptr) == 1 &&
                 is_written;
  }
  is_written = std::fclose(file) == 0 && is_written;
  if (is_written) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write ", path));
}

}  // namespace

absl::StatusOr<ServerTlsFiles> WriteServerTlsFiles(const std::string& prefix) {
  const Key ca_key(EVP_EC_gen("P-256"));
  const Key server_key(EVP_EC_gen("P-256"));
  // The ends of names tell CAs apart; names have at most 64 characters.
  const std::string name = absl::StrCat(
      "CA ",
      prefix.substr(prefix.size() - std::min<size_t>(prefix.size(), 60)));
  const Certificate ca =
      Sign(name.c_str(), ca_key.get(), nullptr, ca_key.get());
  const Certificate server =
      ca == nullptr ? nullptr
                    : Sign("a store", server_key.get(), ca.get(), ca_key.get());
  if (server == nullptr) return absl::InternalError("OpenSSL does not sign");
  ServerTlsFiles files = {.server = absl::StrCat(prefix, "-server.pem"),
                          .ca = absl::StrCat(prefix, "-ca.pem")};
  RETURN_IF_ERROR(Write(files.server, server.get(), server_key.get()));
  RETURN_IF_ERROR(Write(files.ca, ca.get(), nullptr));
  return files;
}

}  // namespace muster
