#ifndef BENCH_CALIBRATE_COSTS_H_
#define BENCH_CALIBRATE_COSTS_H_

#include <cstddef>
#include <string>
#include <vector>

namespace muster {

// Times all-reduces between 2 and 4 ranks of this host by every algorithm, fits
// the constants of common/net/collectives/cost_model.h to them for each kind of
// lane ("tcp", "unix", "grpc", "shm"), and prints the constants and, for each
// size and algorithm, the prediction beside the median.
//
// The predictions are of the rows that the constants were fitted to. One-shot
// goes up to 1 MiB, and shared memory has the two algorithms it chooses from. A
// row with a quartile more than 15 per cent off its median is "noisy". Then,
// for each size, what ChooseAlgorithm() takes beside the fastest that was
// measured.
void CalibrateCosts(const std::vector<std::string>& lanes,
                    const std::vector<size_t>& sizes_bytes);

}  // namespace muster

#endif  // BENCH_CALIBRATE_COSTS_H_
