#ifndef COMMON_NET_COLLECTIVES_SHM_TESTING_RANKS_H_
#define COMMON_NET_COLLECTIVES_SHM_TESTING_RANKS_H_

#include <sys/mman.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/shm/group_options.h"

// Groups for tests and benchmarks: the ranks are threads of this process, or
// processes forked from it.
namespace muster {

using RankBody = std::function<void(Communicator&)>;

// Runs `body` on every rank of a group of threads. Returns when all have
// finished.
void RunThreadRanks(int size, const SharedMemoryTuning& tuning,
                    const RankBody& body);

// Runs `body` on every rank of a group of child processes. Constructed while
// this process has a single thread. A rank whose body has recorded a test
// failure exits with 1.
class ForkedRanks {
 public:
  ForkedRanks(int size, const SharedMemoryTuning& tuning, const RankBody& body);
  ~ForkedRanks();  // Kills the remaining processes.

  ForkedRanks(const ForkedRanks&) = delete;
  ForkedRanks& operator=(const ForkedRanks&) = delete;

  void SendSignal(int rank, int signal);

  // Returns the wait status of `rank`'s process (see waitpid(2)), or nullopt if
  // it has not ended within `timeout`.
  std::optional<int> Wait(int rank, absl::Duration timeout = absl::Seconds(60));

 private:
  std::vector<pid_t> pids_;  // -1 after the process has ended.
};

// A T that forked ranks and their parent share. Initially zero.
template <typename T>
class SharedAmongForks {
 public:
  SharedAmongForks()
      : memory_(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        value_(new (memory_) T()) {}
  ~SharedAmongForks() { munmap(memory_, sizeof(T)); }

  T* operator->() const { return value_; }
  T& operator*() const { return *value_; }

 private:
  void* const memory_;
  T* const value_;
};

}  // namespace muster

#endif  // COMMON_NET_COLLECTIVES_SHM_TESTING_RANKS_H_
