#ifndef COMMON_IO_STORAGE_SHA256_H_
#define COMMON_IO_STORAGE_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace muster {

// Computes the SHA-256 of bytes that are added in pieces. Not thread-safe.
class Sha256 {
 public:
  Sha256();

  void Add(absl::string_view bytes);

  // Returns the hash in hexadecimal. Must be called last, and once.
  std::string Finish();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

// Returns the SHA-256 of `bytes` in hexadecimal.
std::string Sha256Of(absl::string_view bytes);

}  // namespace muster

#endif  // COMMON_IO_STORAGE_SHA256_H_
