#ifndef BENCH_BENCHMARK_NETWORK_H_
#define BENCH_BENCHMARK_NETWORK_H_

#include "absl/strings/string_view.h"
#include "common/net/rpc/network.h"

namespace muster {

// Returns the network for a process that acts as a task. The environment, which
// child processes inherit, determines the network:
//
//   MUSTER_BENCHMARK_TLS_DIR    a folder of certificates, as
//                               `musterctl gen-certs` writes it; unset for
//                               plaintext
//   MUSTER_BENCHMARK_ENCRYPTED  if set, local connections are disabled
//
// Ends the process if the certificates are missing. The network lives as long
// as the process. Call it once.
Network* BenchmarkNetwork(absl::string_view role, int index);

}  // namespace muster

#endif  // BENCH_BENCHMARK_NETWORK_H_
