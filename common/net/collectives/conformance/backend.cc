#include "common/net/collectives/conformance/backend.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace muster {
namespace {

std::vector<CommunicatorBackend>& Backends() {
  static auto* const backends = new std::vector<CommunicatorBackend>;
  return *backends;
}

}  // namespace

BackendRegistration::BackendRegistration(CommunicatorBackend backend) {
  Backends().push_back(std::move(backend));
}

const std::vector<CommunicatorBackend>& RegisteredBackends() {
  return Backends();
}

std::vector<absl::Status> RunRanks(
    const RankGroup& group,
    const std::function<absl::Status(Communicator& communicator)>& run) {
  std::vector<absl::Status> statuses(group.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < group.size(); ++rank) {
    // A test may have removed a rank.
    if (group[rank] == nullptr) continue;
    threads.emplace_back([&, rank] { statuses[rank] = run(*group[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

absl::StatusOr<RankGroup> MakeRanks(
    int size, const std::function<absl::StatusOr<std::unique_ptr<Communicator>>(
                  int rank)>& make) {
  RankGroup group(size);
  std::vector<absl::Status> statuses(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      absl::StatusOr<std::unique_ptr<Communicator>> communicator = make(rank);
      if (communicator.ok()) {
        group[rank] = *std::move(communicator);
      } else {
        statuses[rank] = communicator.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // The error of a rank that failed early explains more than those of the ranks
  // that waited for it until their deadline.
  const auto failed = [](const absl::Status& status) { return !status.ok(); };
  const auto failed_early = [](const absl::Status& status) {
    return !status.ok() && !absl::IsDeadlineExceeded(status);
  };
  auto cause = std::find_if(statuses.begin(), statuses.end(), failed_early);
  if (cause == statuses.end()) {
    cause = std::find_if(statuses.begin(), statuses.end(), failed);
  }
  if (cause != statuses.end()) return *cause;
  return group;
}

}  // namespace muster
