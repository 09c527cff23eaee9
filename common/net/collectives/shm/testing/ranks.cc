#include "common/net/collectives/shm/testing/ranks.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "common/core/base/check.h"
#include "common/core/system/file_descriptor.h"
#include "common/core/system/log.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/rpc/local_endpoint.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Runs a rank in a child process.
[[noreturn]] void BeRank(int rank,
                         std::vector<std::unique_ptr<LocalEndpoint>> endpoints,
                         const SharedMemoryTuning& tuning,
                         const RankBody& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  SharedMemoryGroupOptions options = {
      .rank = rank,
      .size = static_cast<int>(endpoints.size()),
      .generation = 1,
      .token = "forked",
      .tuning = tuning};
  for (const auto& endpoint : endpoints) {
    options.addresses.push_back(endpoint->address());
  }
  std::unique_ptr<LocalEndpoint> own = std::move(endpoints[rank]);
  endpoints.clear();
  auto communicator = ConnectSharedMemoryGroup(std::move(own), options);
  if (!communicator.ok()) {
    LOG(ERROR) << "rank " << rank << ": " << communicator.status();
    _exit(2);
  }
  body(**communicator);
  communicator->reset();
  std::fflush(nullptr);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace

void RunThreadRanks(int size, const SharedMemoryTuning& tuning,
                    const RankBody& body) {
  auto group = CreateLocalGroup(size, {.generation = 1, .tuning = tuning});
  MUSTER_CHECK(group.ok());
  std::vector<std::thread> threads;
  for (std::unique_ptr<Communicator>& communicator : *group) {
    threads.emplace_back([&body, communicator = std::move(communicator)] {
      body(*communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

ForkedRanks::ForkedRanks(int size, const SharedMemoryTuning& tuning,
                         const RankBody& body) {
  std::vector<std::unique_ptr<LocalEndpoint>> endpoints;
  for (int rank = 0; rank < size; ++rank) {
    auto endpoint = LocalEndpoint::Listen();
    MUSTER_CHECK(endpoint.ok());
    endpoints.push_back(*std::move(endpoint));
  }
  std::fflush(nullptr);
  for (int rank = 0; rank < size; ++rank) {
    const pid_t pid = fork();
    MUSTER_CHECK(pid >= 0);
    if (pid == 0) BeRank(rank, std::move(endpoints), tuning, body);
    pids_.push_back(pid);
  }
}

ForkedRanks::~ForkedRanks() {
  for (pid_t pid : pids_) {
    if (pid < 0) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

void ForkedRanks::SendSignal(int rank, int signal) {
  MUSTER_CHECK(pids_[rank] > 0);
  kill(pids_[rank], signal);
}

std::optional<int> ForkedRanks::Wait(int rank, absl::Duration timeout) {
  const pid_t pid = pids_[rank];
  MUSTER_CHECK(pid > 0);
  const FileDescriptor process(
      static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd polled = {process.get(), POLLIN, 0};
  if (poll(&polled, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) !=
      1) {
    return std::nullopt;
  }
  int status = 0;
  waitpid(pid, &status, 0);
  pids_[rank] = -1;
  return status;
}

}  // namespace muster
