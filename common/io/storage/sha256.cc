#include "common/io/storage/sha256.h"

#include <openssl/evp.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "common/core/base/check.h"

namespace muster {

// SHA-256 of bytes in memory fails only when OpenSSL itself is broken.
Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  MUSTER_CHECK(context_ != nullptr);
  MUSTER_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::Add(absl::string_view bytes) {
  MUSTER_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) ==
               1);
}

std::string Sha256::Finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  MUSTER_CHECK(EVP_DigestFinal_ex(context_.get(), digest, &size) == 1);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), size));
}

std::string Sha256Of(absl::string_view bytes) {
  Sha256 hash;
  hash.Add(bytes);
  return hash.Finish();
}

}  // namespace muster
