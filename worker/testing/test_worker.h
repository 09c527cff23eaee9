#ifndef WORKER_TESTING_TEST_WORKER_H_
#define WORKER_TESTING_TEST_WORKER_H_

#include <memory>

#include "common/compute/graph/op_registry.h"
#include "common/compute/kernels/kernel.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "worker/worker_service.h"

namespace muster {

// A worker in this process that can be killed and restarted. Each start gets a
// new incarnation.
class TestWorker {
 public:
  struct Options {
    int index = 0;
    ClusterSpec cluster;  // Includes this worker's address.
    const OpRegistry* ops = nullptr;
    const KernelRegistry* kernels = nullptr;
    WorkerService::VariablesFactory variables;  // Null: no variables.
    absl::Duration coordinator_grace = absl::ZeroDuration();
    WorkerSession::Options session;
  };

  explicit TestWorker(const Options& options);
  ~TestWorker();

  void Start();
  // Breaks all connections immediately. Running closures continue until they
  // report their results.
  void Kill();

  bool running() const { return server_ != nullptr; }
  WorkerService* service() { return worker_.get(); }
  uint64_t incarnation() const { return admission_check_->self().incarnation; }

 private:
  const Options options_;
  std::unique_ptr<AdmissionCheck> admission_check_;
  std::unique_ptr<WorkerService> worker_;
  std::unique_ptr<Service> methods_;
  std::unique_ptr<Server> server_;
};

}  // namespace muster

#endif  // WORKER_TESTING_TEST_WORKER_H_
