#include "common/kernels/cpu/intra_op_threads.h"

#include <algorithm>
#include <atomic>
#include <thread>

// Of libgomp, on which Debian's oneDNN is built. clang's <omp.h> belongs to
// another OpenMP library.
extern "C" void omp_set_num_threads(int);

namespace muster {
namespace {

std::atomic<int>& ThreadCountMax() {
  static std::atomic<int> thread_count_max =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return thread_count_max;
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

}  // namespace muster
