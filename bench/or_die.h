#ifndef BENCH_OR_DIE_H_
#define BENCH_OR_DIE_H_

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// If a status is an error, these functions print it and end the benchmark with
// status 1.
namespace muster {

inline void OkOrDie(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  OkOrDie(value.status());
  return *std::move(value);
}

}  // namespace muster

#endif  // BENCH_OR_DIE_H_
