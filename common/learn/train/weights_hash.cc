#include "common/learn/train/weights_hash.h"

#include <openssl/evp.h>

#include <map>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/core/base/check.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

namespace muster {

std::string HashWeights(const std::map<std::string, Tensor>& weights) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(
      EVP_MD_CTX_new(), EVP_MD_CTX_free);
  // SHA-256 of bytes in memory fails only when OpenSSL itself is broken.
  MUSTER_CHECK(context != nullptr);
  MUSTER_CHECK(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
  for (const auto& [name, tensor] : weights) {
    const std::string header =
        absl::StrCat(name, "|", DTypeName(tensor.dtype()), "|",
                     tensor.shape().ToString(), "|");
    MUSTER_CHECK(
        EVP_DigestUpdate(context.get(), header.data(), header.size()) == 1);
    MUSTER_CHECK(EVP_DigestUpdate(context.get(), tensor.raw_data(),
                                  tensor.size_bytes()) == 1);
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  MUSTER_CHECK(EVP_DigestFinal_ex(context.get(), digest, &size) == 1);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace muster
