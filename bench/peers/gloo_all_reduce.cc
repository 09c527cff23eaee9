// gloo::allreduce over TCP, measured like bench/all_reduce_benchmark.
//
//   g++ -O2 -std=c++20 -I ROOT -o gloo_all_reduce gloo_all_reduce.cc -lgloo
//   gloo_all_reduce RANKS MIN_BYTES MAX_BYTES EMPTY_FOLDER

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/all_reduce_protocol.h"

namespace {

template <typename T>
void AllReduce(const std::shared_ptr<gloo::Context>& context, T* values,
               size_t count,
               void (*combine)(void*, const void*, const void*, size_t)) {
  gloo::AllreduceOptions options(context);
  options.setOutput(values, count);
  options.setReduceFunction(combine);
  gloo::allreduce(options);
}

void BeRank(int index, int size, const std::vector<int64_t>& sizes,
            const char* folder) {
  all_reduce::Pin(index);
  auto context = std::make_shared<gloo::rendezvous::Context>(index, size);
  gloo::rendezvous::FileStore store(folder);
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  context->connectFullMesh(store, device);
  const all_reduce::Rank rank = {
      .rank = index,
      .size = size,
      .barrier =
          [&] {
            gloo::BarrierOptions options(context);
            gloo::barrier(options);
          },
      .all_reduce =
          [&](void* buffer, int64_t count) {
            AllReduce(context, static_cast<float*>(buffer), count,
                      &gloo::sum<float>);
          },
      .maximum =
          [&](double* values, int count) {
            AllReduce(context, values, count, &gloo::max<double>);
          }};
  void* buffer = std::aligned_alloc(4096, sizes.back());
  for (const int64_t bytes : sizes) {
    all_reduce::Measure(rank, "gloo", buffer, bytes, 4);
  }
  std::free(buffer);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int size = std::atoi(argv[1]);
  const auto sizes =
      all_reduce::Sizes(std::atoll(argv[2]), std::atoll(argv[3]));
  for (int rank = 0; rank < size; ++rank) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      BeRank(rank, size, sizes, argv[4]);
      _exit(0);
    }
  }
  int failures = 0;
  for (int rank = 0; rank < size; ++rank) {
    int status = 0;
    wait(&status);
    failures += status != 0;
  }
  return failures;
}
