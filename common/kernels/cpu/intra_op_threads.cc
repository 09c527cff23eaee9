#include "common/kernels/cpu/intra_op_threads.h"

#include <algorithm>
#include <atomic>
#include <thread>

// Of libgomp, on which Debian's oneDNN is built. clang's <omp.h> belongs to
// another OpenMP library.
extern "C" {
void omp_set_num_threads(int);
int omp_get_thread_num();
void GOMP_parallel(void (*body)(void*), void* data, unsigned thread_count,
                   unsigned flags);
}

namespace muster {
namespace {

std::atomic<int>& ThreadCountMax() {
  static std::atomic<int> thread_count_max =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return thread_count_max;
}

// What a team of threads is given.
struct Team {
  absl::FunctionRef<void(int)> body;
  // Tells tools that cannot see into libgomp what it orders.
  std::atomic<int> begun = 0;
  std::atomic<int> done = 0;
};

void RunTeamMember(void* data) {
  auto* const team = static_cast<Team*>(data);
  team->begun.load(std::memory_order_acquire);
  team->body(omp_get_thread_num());
  team->done.fetch_add(1, std::memory_order_release);
}

}  // namespace

void SetIntraOpThreadCount(int thread_count_max) {
  ThreadCountMax() = std::max(1, thread_count_max);
}

int IntraOpThreadCount(const ThreadPool* pool) {
  const int wanted = pool == nullptr ? 1 : pool->thread_count() + 1;
  return std::min(wanted, ThreadCountMax().load());
}

void UseOpenMpThreads(int thread_count) {
  thread_local int in_use = 0;
  if (in_use == thread_count) return;
  omp_set_num_threads(thread_count);
  in_use = thread_count;
}

void RunOnOpenMpThreads(int thread_count,
                        absl::FunctionRef<void(int thread)> body) {
  if (thread_count <= 1) {
    body(0);
    return;
  }
  Team team = {.body = body};
  team.begun.store(1, std::memory_order_release);
  GOMP_parallel(RunTeamMember, &team, static_cast<unsigned>(thread_count), 0);
  team.done.load(std::memory_order_acquire);
}

}  // namespace muster
