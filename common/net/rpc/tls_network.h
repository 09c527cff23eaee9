#ifndef COMMON_NET_RPC_TLS_NETWORK_H_
#define COMMON_NET_RPC_TLS_NETWORK_H_

#include <memory>

#include "common/net/rpc/network.h"
#include "common/net/rpc/tls_context.h"

namespace muster {

struct TlsNetworkOptions {
  // Tasks on one host that run as the same user authenticate each other over
  // TLS, and then use Unix sockets without encryption. Both ends must allow it.
  bool local_connections = false;
};

// Returns a network whose servers and channels use mutual TLS. A server accepts
// calls only from tasks of its own job, only if the call names the task of the
// caller's certificate, and only to methods that the caller's role may call
// (MayCall()). A channel connects only to the task that its options name.
//
// The network must outlive its servers.
std::unique_ptr<Network> MakeTlsNetwork(std::unique_ptr<TlsContext> tls,
                                        const TlsNetworkOptions& options = {});

}  // namespace muster

#endif  // COMMON_NET_RPC_TLS_NETWORK_H_
