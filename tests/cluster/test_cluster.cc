#include "tests/cluster/test_cluster.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/core/base/check.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/clock.h"
#include "common/net/cluster/task_id.h"
#include "common/net/rpc/network.h"
#include "worker/remote_session_variables.h"

namespace muster {

TestCluster::TestCluster(int worker_count, int server_count) {
  const auto reserve = [this](int count) {
    std::vector<std::string> addresses;
    for (int i = 0; i < count; ++i) {
      ports_.push_back(PortReservation::Create().value());
      addresses.push_back(absl::StrCat("127.0.0.1:", ports_.back()->port()));
    }
    return addresses;
  };
  auto cluster =
      ClusterSpec::FromLists({{TaskType::kWorker, reserve(worker_count)},
                              {TaskType::kPs, reserve(server_count)}});
  MUSTER_CHECK(cluster.ok());
  cluster_ = *std::move(cluster);
  servers_.resize(server_count);
  for (int i = 0; i < server_count; ++i) StartServer(i);
  for (int i = 0; i < worker_count; ++i) {
    workers_.push_back(std::make_unique<TestWorker>(TestWorker::Options{
        .index = i,
        .cluster = cluster_,
        .ops = &BuiltinOps(),
        .kernels = &CpuKernels(),
        .variables =
            [this](const TaskIdentity& self, const SessionJob& job) {
              return std::make_unique<RemoteSessionVariables>(
                  Network::Grpc(), cluster_, self, job);
            },
    }));
  }
}

absl::StatusOr<std::unique_ptr<ParameterServerStrategy>> TestCluster::Connect(
    ClusterConnection::Options options) {
  options.cluster = cluster_;
  options.self = {.task_type = "chief", .incarnation = RandomIdentity()};
  ASSIGN_OR_RETURN(
      std::shared_ptr<ClusterConnection> connection,
      ClusterConnection::Open(options, Network::Grpc(), Clock::Real(),
                              [](absl::string_view) {}));
  return std::make_unique<ParameterServerStrategy>(
      std::move(connection), ParameterServerStrategyOptions(), Clock::Real());
}

void TestCluster::StartServer(int index) {
  ParameterServer::Options options;
  options.self = {
      .task_type = "ps", .task_index = index, .incarnation = RandomIdentity()};
  options.address = *cluster_.Address({TaskType::kPs, index});
  options.cluster = cluster_;
  if (!log_folder_.empty()) {
    options.log = LogKeeper::Options{
        .folder = absl::StrCat(log_folder_, "/ps-", index), .boot_id = "boot"};
  }
  auto server = ParameterServer::Start(Network::Grpc(), options);
  MUSTER_CHECK(server.ok());
  servers_[index] = *std::move(server);
}

void TestCluster::KeepServerLogs(const std::string& folder) {
  log_folder_ = folder;
  for (size_t i = 0; i < servers_.size(); ++i) {
    KillServer(static_cast<int>(i));
    StartServer(static_cast<int>(i));
  }
}

void TestCluster::KillServer(int index) { servers_[index] = nullptr; }

}  // namespace muster
