#ifndef WORKER_REMOTE_SESSION_VARIABLES_H_
#define WORKER_REMOTE_SESSION_VARIABLES_H_

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/net/cluster/cluster_spec.h"
#include "common/net/rpc/identity.h"
#include "common/net/rpc/network.h"
#include "ps/client/remote_variable_store.h"
#include "worker/session_variables.h"

namespace muster {

// Variables on the parameter servers of the cluster. Connects to the servers
// when the first step with variables is compiled.
class RemoteSessionVariables final : public SessionVariables {
 public:
  // `network` is borrowed and must outlive this object. `shared_memory` is as
  // in RemoteVariableStore::Options.
  RemoteSessionVariables(Network* network, ClusterSpec cluster,
                         TaskIdentity self, SessionJob job,
                         bool shared_memory = true)
      : network_(network),
        cluster_(std::move(cluster)),
        self_(std::move(self)),
        job_(std::move(job)),
        shared_memory_(shared_memory) {}

  absl::StatusOr<VariableStore*> Store() override ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteScheduled(uint64_t closure_id) override ABSL_LOCKS_EXCLUDED(mutex_);
  void SetLowWaterMark(uint64_t closure_id) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Network* const network_;
  const ClusterSpec cluster_;
  const TaskIdentity self_;
  const SessionJob job_;
  const bool shared_memory_;

  // Held while the store is being opened. Not acquired on threads of the
  // transport.
  absl::Mutex open_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  absl::Mutex mutex_;
  std::unique_ptr<RemoteVariableStore> store_ ABSL_GUARDED_BY(mutex_);
  uint64_t scheduled_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t low_water_mark_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // WORKER_REMOTE_SESSION_VARIABLES_H_
