#ifndef COMMON_COMPUTE_FUNCTIONS_WHOLE_UPDATE_H_
#define COMMON_COMPUTE_FUNCTIONS_WHOLE_UPDATE_H_

#include <cstdint>

// Parameters of the device kernels that execute update rules on whole
// variables. The host computes with the same numbers, in the precision of the
// variable.
namespace muster {

// The variable is a stack of matrices [rows, columns]. `columns` is 0 if it has
// fewer than two dimensions, so that the second moment is not factored.
struct AdafactorCoefficients {
  double rate;   // The smaller of the learning rate and 1 / sqrt(update).
  double decay;  // The weight decay, times the learning rate.
  double beta;
  double epsilon_1;
  double epsilon_2;
  double clip_threshold;
  int64_t rows;
  int64_t columns;
};

// The variable is a matrix [rows, columns].
struct MuonCoefficients {
  double rate;   // The learning rate, times the scale of the shape.
  double decay;  // The weight decay, times the learning rate.
  double momentum;
  double a, b, c;  // Coefficients of the Newton-Schulz iteration.
  int64_t rows;
  int64_t columns;
  int32_t iteration_count;
  int32_t is_nesterov;
};

// Added to the norm by which a direction is divided.
inline constexpr double kMuonNormEpsilon = 1e-7;

}  // namespace muster

#endif  // COMMON_COMPUTE_FUNCTIONS_WHOLE_UPDATE_H_
