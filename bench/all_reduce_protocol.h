#ifndef BENCH_ALL_REDUCE_PROTOCOL_H_
#define BENCH_ALL_REDUCE_PROTOCOL_H_

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

// The measurement of an all-reduce, for Muster and its peers. Peers are
// compiled without the rest of the tree, so this header depends only on the
// standard library.
namespace all_reduce {

// One rank of an implementation.
struct Rank {
  int rank = 0;
  int size = 1;
  std::function<void()> barrier;
  // Sums `buffer`, of float32 or bfloat16, over all ranks, in place.
  std::function<void(void* buffer, int64_t element_count)> all_reduce;
  // Computes the elementwise maximum over all ranks, at least on rank 0.
  std::function<void(double* values, int count)> maximum;
};

inline int IterationsFor(int64_t bytes) {
  return static_cast<int>(std::clamp<int64_t>(
      (int64_t{512} << 20) / std::max<int64_t>(bytes, 1), 6, 2000));
}

// Pins rank r to the r-th processor of this process, round robin.
inline void Pin(int rank) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
  int skip = rank % CPU_COUNT(&all);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all) || skip-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

// Measures calls on `bytes` of elements of `element_bytes`. The buffer is
// rewritten before each call; otherwise it would be in the cache of another
// processor. The time of a call is that of its slowest rank. Rank 0 prints
//   NAME RANKS BYTES MEDIAN_US P99_US MINIMUM_US
inline void Measure(const Rank& rank, const std::string& name, void* buffer,
                    int64_t bytes, int64_t element_bytes) {
  const int iterations = IterationsFor(bytes);
  const int warm_up = std::max(2, iterations / 10);
  std::vector<double> times(iterations);
  for (int i = -warm_up; i < iterations; ++i) {
    // The values are so small that the sum does not overflow with any number of
    // ranks.
    std::fill_n(static_cast<uint16_t*>(buffer), bytes / 2,
                static_cast<uint16_t>(0x3c00 + (i & 15)));
    rank.barrier();
    const auto begin = std::chrono::steady_clock::now();
    rank.all_reduce(buffer, bytes / element_bytes);
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - begin;
    if (i >= 0) times[i] = took.count();
  }
  rank.maximum(times.data(), iterations);
  if (rank.rank != 0) return;
  std::sort(times.begin(), times.end());
  std::printf("%s %d %lld %.3f %.3f %.3f\n", name.c_str(), rank.size,
              static_cast<long long>(bytes), times[iterations / 2],
              times[std::min(iterations - 1, iterations * 99 / 100)],
              times.front());
  std::fflush(stdout);
}

// Returns the sizes from `min_bytes` to `max_bytes` in steps of 4x.
inline std::vector<int64_t> Sizes(int64_t min_bytes, int64_t max_bytes) {
  std::vector<int64_t> sizes;
  for (int64_t bytes = 1024; bytes <= (int64_t{256} << 20); bytes *= 4) {
    if (bytes >= min_bytes && bytes <= max_bytes) sizes.push_back(bytes);
  }
  return sizes;
}

}  // namespace all_reduce

#endif  // BENCH_ALL_REDUCE_PROTOCOL_H_
