#include "common/net/rpc/tls_context.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "absl/status/status.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/system/testing/await_true.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

TEST(TlsContextTest, NamesTheFileThatIsMissing) {
  EXPECT_THAT(
      TlsContext::Load({.certificate = "/nowhere/tls.crt"}).status(),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/tls.crt")));
}

// Exits while threads use OpenSSL, as gRPC's threads do in a handshake.
[[noreturn]] void ExitAmongUsersOfOpenSsl() {
  // Ensures that tls_context.cc, which configures OpenSSL, is linked.
  TlsContext::Load({}).IgnoreError();
  std::atomic<int> busy_count = 0;
  constexpr int kThreadCount = 4;
  for (int i = 0; i < kThreadCount; ++i) {
    std::thread([&busy_count] {
      std::array<char, 128> text;
      bool is_first = true;
      while (true) {
        EVP_PKEY* const key = EVP_EC_gen("P-256");
        if (key == nullptr) std::abort();
        EVP_PKEY_free(key);
        ERR_error_string_n(ERR_PACK(ERR_LIB_EVP, 0, EVP_R_BAD_DECRYPT),
                           text.data(), text.size());
        if (is_first) ++busy_count;
        is_first = false;
      }
    }).detach();
  }
  std::exit(AwaitTrue([&] { return busy_count == kThreadCount; }) ? 0 : 1);
}

TEST(TlsContextDeathTest, AProcessMayExitWhileThreadsUseOpenSsl) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EXIT(ExitAmongUsersOfOpenSsl(), testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace muster
