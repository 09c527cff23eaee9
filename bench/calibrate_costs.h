#ifndef BENCH_CALIBRATE_COSTS_H_
#define BENCH_CALIBRATE_COSTS_H_

#include <cstddef>
#include <string>
#include <vector>

namespace muster {

// Measures all-reduces between 2 to 4 ranks of this host with every algorithm,
// and fits the constants of common/net/collectives/cost_model.h to them for
// each kind of lane ("tcp", "unix", "grpc", "shm"). Prints the constants and,
// for each size and algorithm, the prediction and the median.
//
// The predictions are for the rows to which the constants were fitted. One-shot
// is measured up to 1 MiB. Shared memory is measured with its two algorithms. A
// row is "noisy" if a quartile differs from the median by more than 15 percent.
// Finally, prints for each size the choice of ChooseAlgorithm() and the fastest
// measured algorithm.
void CalibrateCosts(const std::vector<std::string>& lanes,
                    const std::vector<size_t>& sizes_bytes);

}  // namespace muster

#endif  // BENCH_CALIBRATE_COSTS_H_
