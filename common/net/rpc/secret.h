#ifndef COMMON_NET_RPC_SECRET_H_
#define COMMON_NET_RPC_SECRET_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

inline constexpr size_t kSecretBytes = 32;

// Generates kSecretBytes hexadecimal digits: 128 random bits.
std::string RandomSecret();

// Compares two secrets in a time that does not depend on their content, so that
// the time does not reveal how much of a guess is right. Secrets of different
// lengths differ.
bool IsSameSecret(absl::string_view a, absl::string_view b);

}  // namespace muster

#endif  // COMMON_NET_RPC_SECRET_H_
