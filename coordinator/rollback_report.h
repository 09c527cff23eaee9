#ifndef COORDINATOR_ROLLBACK_REPORT_H_
#define COORDINATOR_ROLLBACK_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

// The outcome of a rollback.
struct RollbackReport {
  // The restored checkpoint. Empty for the variables' initial values.
  std::string checkpoint;
  // Undone closures: those that had succeeded after the snapshot. undone_ids
  // lists the first few.
  int64_t undone_count = 0;
  std::vector<uint64_t> undone_ids;
  // The lost servers.
  std::vector<std::string> servers;
};

}  // namespace muster

#endif  // COORDINATOR_ROLLBACK_REPORT_H_
