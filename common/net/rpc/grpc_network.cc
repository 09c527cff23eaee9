#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <malloc.h>

#include <cstdlib>
#include <limits>
#include <memory>

#include "absl/synchronization/mutex.h"
#include "common/net/rpc/grpc_channel.h"
#include "common/net/rpc/grpc_server.h"
#include "common/net/rpc/network.h"

namespace muster {
namespace {

// gRPC takes new memory for everything that arrives. By default glibc gives
// megabytes back to the kernel as soon as they are free, so every message would
// fault its pages in again: a third of the time of a large one, measured. One
// arena, because the others are given back whatever is set.
void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_ARENA_MAX, 1);
}

class GrpcNetwork final : public Network {
 public:
  GrpcNetwork() {
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&idle_service_);
    idle_server_ = builder.BuildAndStart();
    MUSTER_CHECK(idle_server_ != nullptr);
  }

  absl::StatusOr<std::unique_ptr<Server>> Listen(
      const ServerOptions& options, const Service* service,
      const AdmissionCheck* admission_check) override {
    return StartGrpcServer(options, service, admission_check);
  }
  std::unique_ptr<Channel> Connect(const ChannelOptions& options) override {
    return MakeGrpcChannel(options);
  }

 private:
  // All calls share one queue of callbacks. gRPC 1.51 takes it down with its
  // last user, and may free it while its own thread still looks at it:
  // "ref_counted.h: assertion failed: prior > 0". A server without a port uses
  // it for ever.
  grpc::CallbackGenericService idle_service_;
  std::unique_ptr<grpc::Server> idle_server_;
};

}  // namespace

Network* Network::Grpc() {
  static auto* network = [] {
    KeepFreedMemory();
    // gRPC's own resolver asks the DNS server for names that /etc/hosts knows,
    // and waits a minute for one that does not answer.
    setenv("GRPC_DNS_RESOLVER", "native", /*overwrite=*/0);
    // The last user of gRPC would shut it down, and wait up to ten seconds for
    // one of its threads.
    grpc_init();
    // Debian builds Abseil with its checks on: every lock that is taken while
    // another is held is looked up in a graph of all locks.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    return new GrpcNetwork;
  }();
  return network;
}

}  // namespace muster
