#include "common/net/rpc/certificate_authority.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/io/storage/private_file.h"
#include "common/net/rpc/openssl_objects.h"

namespace muster {
namespace {

constexpr absl::Duration kClockDifference = absl::Minutes(5);
// The random part of a serial number; RFC 5280 allows 20.
constexpr int kSerialBytes = 16;

using openssl::Bio;
using openssl::Certificate;
using openssl::Key;
using Extension = openssl::Owned<X509_EXTENSION, X509_EXTENSION_free>;
using Number = openssl::Owned<BIGNUM, BN_free>;

absl::Status OpenSslError(absl::string_view what) {
  char text[256] = "unknown error";
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, text, sizeof(text));
  }
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("OpenSSL cannot ", what, ": ", text));
}

absl::StatusOr<Key> NewKey() {
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return OpenSslError("draw a key");
  return key;
}

struct ExtensionText {
  int kind;
  std::string value;
};

absl::Status AddExtensions(const std::vector<ExtensionText>& extensions,
                           X509* issuer, X509* certificate) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  for (const ExtensionText& text : extensions) {
    const Extension extension(
        X509V3_EXT_conf_nid(nullptr, &context, text.kind, text.value.c_str()));
    if (extension == nullptr ||
        X509_add_ext(certificate, extension.get(), -1) != 1) {
      return OpenSslError("add an extension");
    }
  }
  return absl::OkStatus();
}

absl::Status SetSerial(X509* certificate) {
  unsigned char bytes[kSerialBytes];
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) return OpenSslError("draw bytes");
  bytes[0] = (bytes[0] & 0x7f) | 0x40;
  const Number number(BN_bin2bn(bytes, sizeof(bytes), nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate));
  return absl::OkStatus();
}

// Returns a certificate for `key`, signed with `issuer_key`. If `issuer` is
// null, the certificate is self-signed: it names itself as the issuer.
absl::StatusOr<Certificate> Sign(const std::string& name, EVP_PKEY* key,
                                 X509* issuer, EVP_PKEY* issuer_key,
                                 absl::Duration validity,
                                 const std::vector<ExtensionText>& extensions) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  RETURN_IF_ERROR(SetSerial(certificate.get()));
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()),
                  -absl::ToInt64Seconds(kClockDifference));
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()),
                  absl::ToInt64Seconds(validity));
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(
      subject, "CN", MBSTRING_UTF8,
      reinterpret_cast<const unsigned char*>(name.data()),
      static_cast<int>(name.size()), -1, 0);
  if (issuer == nullptr) issuer = certificate.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer));
  RETURN_IF_ERROR(AddExtensions(extensions, issuer, certificate.get()));
  if (X509_sign(certificate.get(), issuer_key, EVP_sha256()) == 0) {
    return OpenSslError("sign a certificate");
  }
  return certificate;
}

absl::StatusOr<CertificateAuthority::Pem> ToPem(X509* certificate,
                                                EVP_PKEY* key) {
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_text.get(), key, nullptr, nullptr, 0,
                                    nullptr, nullptr) != 1) {
    return OpenSslError("write PEM");
  }
  const auto text_of = [](BIO* bio) {
    char* data = nullptr;
    const long size_bytes = BIO_get_mem_data(bio, &data);
    return std::string(data, static_cast<size_t>(size_bytes));
  };
  return CertificateAuthority::Pem{text_of(certificate_text.get()),
                                   text_of(key_text.get())};
}

absl::Status CheckValidity(absl::Duration validity) {
  if (validity > absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("certificates valid for ", absl::FormatDuration(validity),
                   ": a duration above zero, as in 24h"));
}

}  // namespace

struct CertificateAuthority::Parts {
  Certificate certificate;
  Key key;
  absl::Duration validity;
};

CertificateAuthority::CertificateAuthority(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)) {}

CertificateAuthority::~CertificateAuthority() = default;

absl::StatusOr<std::unique_ptr<CertificateAuthority>>
CertificateAuthority::Create(absl::Duration validity) {
  RETURN_IF_ERROR(CheckValidity(validity));
  auto parts = std::make_unique<Parts>();
  parts->validity = validity;
  ASSIGN_OR_RETURN(parts->key, NewKey());
  ASSIGN_OR_RETURN(parts->certificate,
                   Sign("Muster job CA", parts->key.get(), nullptr,
                        parts->key.get(), validity,
                        {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                         {NID_key_usage, "critical,keyCertSign,cRLSign"},
                         {NID_subject_key_identifier, "hash"}}));
  return std::unique_ptr<CertificateAuthority>(
      new CertificateAuthority(std::move(parts)));
}

absl::StatusOr<std::unique_ptr<CertificateAuthority>>
CertificateAuthority::FromPem(const std::string& certificate,
                              const std::string& key, absl::Duration validity) {
  RETURN_IF_ERROR(CheckValidity(validity));
  auto parts = std::make_unique<Parts>();
  parts->validity = validity;
  const Bio certificate_text(BIO_new_mem_buf(
      certificate.data(), static_cast<int>(certificate.size())));
  parts->certificate.reset(
      PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr));
  const Bio key_text(BIO_new_mem_buf(key.data(), static_cast<int>(key.size())));
  const auto no_password = [](char*, int, int, void*) { return -1; };
  parts->key.reset(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (parts->certificate == nullptr || parts->key == nullptr ||
      X509_check_private_key(parts->certificate.get(), parts->key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError(
        "these are not the certificate and the key of a CA");
  }
  return std::unique_ptr<CertificateAuthority>(
      new CertificateAuthority(std::move(parts)));
}

absl::StatusOr<CertificateAuthority::Pem> CertificateAuthority::Export() const {
  return ToPem(parts_->certificate.get(), parts_->key.get());
}

absl::StatusOr<CertificateAuthority::Pem> CertificateAuthority::Issue(
    const SpiffeId& task) const {
  RETURN_IF_ERROR(ParseSpiffeId(task.ToString()).status());
  ASSIGN_OR_RETURN(const Key key, NewKey());
  ASSIGN_OR_RETURN(
      const Certificate certificate,
      Sign(task.TaskName(), key.get(), parts_->certificate.get(),
           parts_->key.get(), parts_->validity,
           {{NID_basic_constraints, "critical,CA:FALSE"},
            {NID_key_usage, "critical,digitalSignature"},
            {NID_ext_key_usage, "serverAuth,clientAuth"},
            {NID_authority_key_identifier, "keyid"},
            {NID_subject_alt_name, absl::StrCat("URI:", task.ToString())}}));
  return ToPem(certificate.get(), key.get());
}

absl::StatusOr<TlsFiles> WriteTaskFiles(const CertificateAuthority& authority,
                                        const SpiffeId& task,
                                        const std::string& folder) {
  ASSIGN_OR_RETURN(const CertificateAuthority::Pem own, authority.Export());
  ASSIGN_OR_RETURN(const CertificateAuthority::Pem issued,
                   authority.Issue(task));
  const TlsFiles files = TlsFilesIn(folder, task.role, task.index);
  RETURN_IF_ERROR(ReplacePrivateFile(files.key, issued.key));
  RETURN_IF_ERROR(ReplacePrivateFile(files.certificate, issued.certificate));
  RETURN_IF_ERROR(ReplacePrivateFile(files.ca, own.certificate));
  return files;
}

}  // namespace muster
