#include "common/net/rpc/secret.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "absl/strings/escaping.h"
#include "common/core/base/check.h"

namespace muster {

std::string RandomSecret() {
  unsigned char bytes[kSecretBytes / 2];
  MUSTER_CHECK(RAND_bytes(bytes, sizeof(bytes)) == 1);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes), sizeof(bytes)));
}

bool IsSameSecret(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() &&
         CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace muster
