#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <malloc.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/net/rpc/bounded_log.h"
#include "common/net/rpc/grpc_channel.h"
#include "common/net/rpc/grpc_server.h"
#include "common/net/rpc/network.h"
#include "common/net/rpc/tls_network.h"

namespace muster {
namespace {

// Keeps glibc from returning freed memory to the kernel. gRPC allocates memory
// for everything that it receives. By default glibc returns megabytes to the
// kernel as soon as they are free, so every message would fault its pages in
// again: a third of the time of a large message, measured. There is only one
// arena, because glibc shrinks the others whatever is set. Has no effect in
// programs with another allocator.
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
      AdmissionCheck* admission_check) override {
    return StartGrpcServer(options, service, admission_check, /*tls=*/nullptr,
                           /*opens_local_connections=*/false);
  }
  std::unique_ptr<Channel> Connect(const ChannelOptions& options) override {
    return MakeGrpcChannel(options, /*tls=*/nullptr,
                           /*uses_local_connections=*/false);
  }

 private:
  // All calls share one callback queue. gRPC 1.51 deletes the queue with its
  // last user, and may do so while one of its own threads still reads it:
  // "ref_counted.h: assertion failed: prior > 0". This server has no port and
  // exists only to use the queue until the process exits.
  grpc::CallbackGenericService idle_service_;
  std::unique_ptr<grpc::Server> idle_server_;
};

class TlsNetwork final : public Network {
 public:
  TlsNetwork(std::unique_ptr<TlsContext> tls, const TlsNetworkOptions& options)
      : tls_(std::move(tls)), options_(options) {}

  absl::StatusOr<std::unique_ptr<Server>> Listen(
      const ServerOptions& options, const Service* service,
      AdmissionCheck* admission_check) override {
    return StartGrpcServer(options, service, admission_check, tls_.get(),
                           options_.local_connections);
  }
  std::unique_ptr<Channel> Connect(const ChannelOptions& options) override {
    return MakeGrpcChannel(options, tls_.get(), options_.local_connections);
  }

 private:
  const std::unique_ptr<TlsContext> tls_;
  const TlsNetworkOptions options_;
};

// gRPC's servers log this at each handshake if their certificate does not have
// the DNS name that the client asks for. Certificates of tasks have the task's
// URI, which TlsContext verifies, and need no DNS name.
constexpr absl::string_view kNoCertificateOfName =
    "No match found for server name";

// Limits gRPC's log: gRPC logs every failed handshake, and unrelated processes
// can cause many.
void LogOfGrpc(gpr_log_func_args* line) {
  if (absl::StartsWith(line->message, kNoCertificateOfName)) return;
  static auto* const log = new BoundedLog;
  log->Write(absl::StrCat("gRPC: ", line->message));
}

}  // namespace

std::unique_ptr<Network> MakeTlsNetwork(std::unique_ptr<TlsContext> tls,
                                        const TlsNetworkOptions& options) {
  // Initializes what all networks of this process need.
  Network::Grpc();
  return std::make_unique<TlsNetwork>(std::move(tls), options);
}

Network* Network::Grpc() {
  static auto* network = [] {
    KeepFreedMemory();
    // gRPC's own resolver also asks the DNS server for names that are in
    // /etc/hosts, and waits a minute if the server does not answer.
    setenv("GRPC_DNS_RESOLVER", "native", /*overwrite=*/0);
    // GRPC_VERBOSITY asks for all of gRPC's log.
    if (std::getenv("GRPC_VERBOSITY") == nullptr) {
      gpr_set_log_function(LogOfGrpc);
    }
    // Keeps gRPC initialized. Otherwise its last user would shut it down, and
    // wait up to ten seconds for one of its threads.
    grpc_init();
    // grpc.health.v1 on every server, for probes: it answers callers that
    // complete the handshake, as /livez does.
    grpc::EnableDefaultHealthCheckService(true);
    // Debian builds Abseil with its deadlock detection: each time a lock is
    // taken while another is held, it is looked up in a graph of all locks.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    return new GrpcNetwork;
  }();
  return network;
}

}  // namespace muster
