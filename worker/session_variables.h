#ifndef WORKER_SESSION_VARIABLES_H_
#define WORKER_SESSION_VARIABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/compute/variables/variable_store.h"
#include "ps/client/update_gate.h"

namespace muster {

// The job that a session works for.
struct SessionJob {
  std::string job_id;
  uint64_t coordinator_epoch = 0;  // As RequestIdentity::coordinator_epoch.
  uint64_t generation = 0;         // As RemoteVariableStore::Options.
  int server_copy_count = 1;       // As RemoteVariableStore::Options.
  std::vector<int> serving_tasks;  // As RemoteVariableStore::Options.
  // As RemoteVariableStore::Options. Null unless training is synchronous.
  UpdateGate* update_gate = nullptr;
};

// The variables that a session's steps read and update. Thread-safe.
class SessionVariables {
 public:
  virtual ~SessionVariables() = default;

  // Returns the store, which is valid as long as this object. The first call
  // may block until the servers are reachable.
  virtual absl::StatusOr<VariableStore*> Store() = 0;

  // Records that closures up to this id have been scheduled.
  virtual void NoteScheduled(uint64_t closure_id) = 0;

  // Records that all closures with lower ids have finished.
  virtual void SetLowWaterMark(uint64_t closure_id) = 0;
};

}  // namespace muster

#endif  // WORKER_SESSION_VARIABLES_H_
