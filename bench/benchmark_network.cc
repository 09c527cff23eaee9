#include "bench/benchmark_network.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "common/net/rpc/tls_context.h"
#include "common/net/rpc/tls_network.h"

namespace muster {

Network* BenchmarkNetwork(absl::string_view role, int index) {
  const char* const folder = std::getenv("MUSTER_BENCHMARK_TLS_DIR");
  if (folder == nullptr) return Network::Grpc();
  auto tls = TlsContext::Load(TlsFilesIn(folder, role, index));
  if (!tls.ok()) {
    std::fprintf(stderr, "%s\n", tls.status().ToString().c_str());
    std::_Exit(1);
  }
  const bool is_encrypted =
      std::getenv("MUSTER_BENCHMARK_ENCRYPTED") != nullptr;
  return MakeTlsNetwork(*std::move(tls), {.local_connections = !is_encrypted})
      .release();
}

}  // namespace muster
