// MPI_Allreduce, measured like bench/all_reduce_benchmark.
//
//   mpicxx -O2 -std=c++20 -I ROOT -o mpi_all_reduce mpi_all_reduce.cc
//   mpirun -np 2 mpi_all_reduce MIN_BYTES MAX_BYTES

#include <mpi.h>

#include <cstdlib>

#include "bench/all_reduce_protocol.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  all_reduce::Rank rank = {
      .barrier = [] { MPI_Barrier(MPI_COMM_WORLD); },
      .all_reduce =
          [](void* buffer, int64_t count) {
            MPI_Allreduce(MPI_IN_PLACE, buffer, static_cast<int>(count),
                          MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
          },
      .maximum =
          [](double* values, int count) {
            MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_MAX,
                          MPI_COMM_WORLD);
          }};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank.size);
  if (argc == 3) {
    const auto sizes =
        all_reduce::Sizes(std::atoll(argv[1]), std::atoll(argv[2]));
    void* buffer = std::aligned_alloc(4096, sizes.back());
    for (const int64_t bytes : sizes) {
      all_reduce::Measure(rank, "openmpi", buffer, bytes, 4);
    }
    std::free(buffer);
  }
  MPI_Finalize();
  return 0;
}
