#ifndef COMMON_NET_RPC_TLS_NETWORK_H_
#define COMMON_NET_RPC_TLS_NETWORK_H_

#include <memory>

#include "common/net/rpc/network.h"
#include "common/net/rpc/tls_context.h"

namespace muster {

struct TlsNetworkOptions {
  // Tasks of one host and user that have authenticated each other with TLS then
  // talk over Unix sockets, without encryption. Both ends must allow it.
  bool local_connections = false;
};

// Returns a network whose servers and channels speak mutual TLS. A server
// accepts calls of tasks of its own job only, each in its own name, and each of
// the methods that its role may call (MayCall()). A channel connects only to
// the task that its options name.
//
// The network must outlive its servers.
std::unique_ptr<Network> MakeTlsNetwork(std::unique_ptr<TlsContext> tls,
                                        const TlsNetworkOptions& options = {});

}  // namespace muster

#endif  // COMMON_NET_RPC_TLS_NETWORK_H_
