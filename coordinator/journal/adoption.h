#ifndef COORDINATOR_JOURNAL_ADOPTION_H_
#define COORDINATOR_JOURNAL_ADOPTION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace muster {
namespace proto {
class JournalRecord;
}  // namespace proto

// What a parameter server says of itself to a new coordinator.
struct ServerDescription {
  std::string name;  // "ps 0", for messages.
  uint64_t incarnation = 0;
  // A process that has restored the state of its predecessor has its number.
  uint64_t state_id = 0;
  std::string job_id;  // Empty if it has no job.
  uint64_t generation = 0;
};

enum class AdoptionKind {
  // No server has variables of the job. Training begins as that of a new job,
  // and resumes from a backup if there is one.
  kBegin,
  // All servers have the variables as the last coordinator left them. Training
  // continues where its journal ends.
  kContinue,
  // Some tasks still work for the last coordinator, and training cannot
  // continue with them. They have to be started again.
  kRestartTasks,
  // The last coordinator had ended the job with success. The tasks that still
  // run were not told.
  kEndTasks,
};

struct Adoption {
  AdoptionKind kind = AdoptionKind::kBegin;
  std::string reason;  // For kRestartTasks.
};

// Decides how a coordinator begins whose predecessor has recorded `state`. Has
// no side effects. `servers` are all servers of the cluster, by index, after
// they have begun to refuse the predecessor.
Adoption DecideAdoption(const proto::JournalRecord& state,
                        const std::vector<ServerDescription>& servers);

}  // namespace muster

#endif  // COORDINATOR_JOURNAL_ADOPTION_H_
