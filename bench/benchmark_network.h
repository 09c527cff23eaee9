#ifndef BENCH_BENCHMARK_NETWORK_H_
#define BENCH_BENCHMARK_NETWORK_H_

#include "absl/strings/string_view.h"
#include "common/net/rpc/network.h"

namespace muster {

// Returns the network of a process that plays a task, by the environment, which
// child processes inherit:
//
//   MUSTER_BENCHMARK_TLS_DIR    a folder of certificates, as
//                               `musterctl gen-certs` writes it; unset for
//                               plaintext
//   MUSTER_BENCHMARK_ENCRYPTED  if set, nothing goes over local connections
//
// Ends the process if the certificates are missing. Lives as long as the
// process; call once.
Network* BenchmarkNetwork(absl::string_view role, int index);

}  // namespace muster

#endif  // BENCH_BENCHMARK_NETWORK_H_
