#ifndef COMMON_LEARN_NN_PREPROCESSING_QUANTILE_SUMMARY_H_
#define COMMON_LEARN_NN_PREPROCESSING_QUANTILE_SUMMARY_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace muster {

// A summary of many numbers from which their quantiles follow: some of the
// numbers, each with how many it stands for. About 1 / epsilon are kept,
// however many were added. The arithmetic is that of Keras' Discretization, in
// float32 where Keras' is. Source: keras.layers.Discretization, summarize() and
// compress_summary().
class QuantileSummary {
 public:
  explicit QuantileSummary(double epsilon) : epsilon_(epsilon) {}

  // Adds a batch of numbers.
  void Add(absl::Span<const float> numbers);
  bool empty() const { return values_.empty(); }

  // Returns the numbers between `bin_count` bins that hold equally many. There
  // are fewer if fewer numbers were added.
  std::vector<float> Boundaries(int64_t bin_count) const;

 private:
  // Interpolates, so that 1 / epsilon values are left.
  void Compress(double epsilon);

  double epsilon_;
  std::vector<float> values_;  // Ascending.
  std::vector<float> weights_;
};

}  // namespace muster

#endif  // COMMON_LEARN_NN_PREPROCESSING_QUANTILE_SUMMARY_H_
