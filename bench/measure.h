#ifndef BENCH_MEASURE_H_
#define BENCH_MEASURE_H_

#include <algorithm>
#include <chrono>
#include <vector>

namespace muster {

// Returns the time of `body` in microseconds.
template <typename Body>
double MicrosecondsOf(Body&& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now() - begin)
      .count();
}

inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

}  // namespace muster

#endif  // BENCH_MEASURE_H_
