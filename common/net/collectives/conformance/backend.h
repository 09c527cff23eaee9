#ifndef COMMON_NET_COLLECTIVES_CONFORMANCE_BACKEND_H_
#define COMMON_NET_COLLECTIVES_CONFORMANCE_BACKEND_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/net/collectives/communicator.h"

// Registers backends with the tests that every communicator must pass. The test
// program runs every test of the suite for every registered backend:
//
//   cc_test(deps = [":communicator_suite", ...])
//
//   const BackendRegistration kMemory({.name = "Memory", .make = MakeMemory});
namespace muster {

// Longer than any collective of the suites takes.
inline constexpr absl::Duration kCollectiveTimeout = absl::Seconds(60);

using RankGroup = std::vector<std::unique_ptr<Communicator>>;

struct CommunicatorBackend {
  std::string name;  // Part of the tests' names: letters and digits.

  // Makes a new group of `size` ranks in this process. Each rank is used by a
  // separate thread. kUnavailable skips the tests, because something that the
  // backend needs is missing on this machine. Any other error fails them.
  std::function<absl::StatusOr<RankGroup>(int size)> make;

  // The suite skips sizes above this one.
  int size_max = 16;

  // True if a waiting rank learns of a failure of any other rank. If false, it
  // learns only of failures of ranks for which it waits, directly or through
  // others.
  bool learns_of_all_failures = true;

  // True if errors always use the group's rank numbers. If false, an error from
  // within a host may count that host's ranks from 0. Such an error also lists
  // which ranks of the group they are.
  bool numbers_ranks_of_group = true;

  // True if a reduce-scatter yields the bits of an all-reduce. False for GPUs
  // that sum in another order.
  bool scatters_same_bits = true;

  friend void PrintTo(const CommunicatorBackend& backend, std::ostream* out) {
    *out << backend.name;
  }
};

class BackendRegistration {
 public:
  explicit BackendRegistration(CommunicatorBackend backend);
};

const std::vector<CommunicatorBackend>& RegisteredBackends();

// Calls run(communicator) for all ranks concurrently, each on its own thread.
// Returns the results by rank.
std::vector<absl::Status> RunRanks(
    const RankGroup& group,
    const std::function<absl::Status(Communicator& communicator)>& run);

// Makes a group whose ranks connect to each other, in one process: calls
// make(rank) for all ranks concurrently. If any fail, returns one of the
// errors, preferably one other than kDeadlineExceeded.
absl::StatusOr<RankGroup> MakeRanks(
    int size, const std::function<absl::StatusOr<std::unique_ptr<Communicator>>(
                  int rank)>& make);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_CONFORMANCE_BACKEND_H_
