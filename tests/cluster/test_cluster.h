#ifndef TESTS_CLUSTER_TEST_CLUSTER_H_
#define TESTS_CLUSTER_TEST_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/process/port_reservation.h"
#include "coordinator/cluster_connection.h"
#include "coordinator/parameter_server_strategy.h"
#include "ps/parameter_server.h"
#include "worker/testing/test_worker.h"

namespace muster {

// Workers and parameter servers in this process, which communicate over gRPC.
// Each has its own port. Each can be killed and restarted.
class TestCluster {
 public:
  TestCluster(int worker_count, int server_count);

  // Connects a coordinator. Sets the cluster in `options`.
  absl::StatusOr<std::unique_ptr<ParameterServerStrategy>> Connect(
      ClusterConnection::Options options = {});

  TestWorker& worker(int index) { return *workers_[index]; }
  int worker_count() const { return static_cast<int>(workers_.size()); }

  // Starts all servers again, with logs in `folder`.
  void KeepServerLogs(const std::string& folder);
  void StartServer(int index);
  void KillServer(int index);
  ParameterServer& server(int index) { return *servers_[index]; }

  const ClusterSpec& cluster() const { return cluster_; }

 private:
  std::string log_folder_;  // Empty: servers keep no logs.
  std::vector<std::unique_ptr<PortReservation>> ports_;
  ClusterSpec cluster_;
  std::vector<std::unique_ptr<ParameterServer>> servers_;
  std::vector<std::unique_ptr<TestWorker>> workers_;
};

}  // namespace muster

#endif  // TESTS_CLUSTER_TEST_CLUSTER_H_
