#ifndef BENCH_BENCHMARK_COPY_H_
#define BENCH_BENCHMARK_COPY_H_

#include <memory>
#include <string>

#include "common/net/rpc/channel.h"

namespace muster {

// The copy of one parameter server in another process. Ends that process when
// this object is destroyed. An error ends the benchmark.
class BenchmarkCopy {
 public:
  // Blocks until the holder receives the changes of the source. Both are
  // parameter servers of the job "benchmark" without variables.
  BenchmarkCopy(int source_task, const std::string& source_address,
                int holder_task, const std::string& holder_address);
  ~BenchmarkCopy();

 private:
  std::unique_ptr<Channel> holder_;
};

}  // namespace muster

#endif  // BENCH_BENCHMARK_COPY_H_
