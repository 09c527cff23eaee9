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

// The tests that every communicator has to pass. The suite is written once,
// each backend is registered once, and the test program multiplies them:
//
//   cc_test(deps = [":communicator_suite", ...])
//
//   const BackendRegistration kMemory({.name = "Memory", .make = MakeMemory});
namespace muster {

// Longer than a collective of the suites takes.
inline constexpr absl::Duration kCollectiveTimeout = absl::Seconds(60);

using RankGroup = std::vector<std::unique_ptr<Communicator>>;

struct CommunicatorBackend {
  std::string name;  // As a part of a test's name: letters and digits.

  // A new group of `size` ranks in this process; each is used by a thread of
  // its own. kUnavailable skips the tests: what the backend needs is not here.
  // Any other error fails them.
  std::function<absl::StatusOr<RankGroup>(int size)> make;

  // The largest group to be tried, of those that the suite tries.
  int size_max = 16;

  // True if a waiting rank hears of a failure of any other one. Otherwise of
  // those only that it waits for, directly or through others.
  bool hears_everybody = true;

  // True if errors number all ranks as the group does. Otherwise an error from
  // within a host may count that host's ranks from 0, and then says which ranks
  // of the group these are.
  bool numbers_ranks_of_group = true;

  friend void PrintTo(const CommunicatorBackend& backend, std::ostream* out) {
    *out << backend.name;
  }
};

class BackendRegistration {
 public:
  explicit BackendRegistration(CommunicatorBackend backend);
};

const std::vector<CommunicatorBackend>& RegisteredBackends();

// Calls run(communicator) for every rank at once, each on its own thread; what
// it returned, by rank.
std::vector<absl::Status> RunRanks(
    const RankGroup& group,
    const std::function<absl::Status(Communicator& communicator)>& run);

// The ways in which a backend whose ranks connect is made in one process: calls
// make(rank) for every rank at once. The first error, if there is any.
absl::StatusOr<RankGroup> MakeRanks(
    int size, const std::function<absl::StatusOr<std::unique_ptr<Communicator>>(
                  int rank)>& make);

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_CONFORMANCE_BACKEND_H_
