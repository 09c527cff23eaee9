#ifndef COMMON_COMPUTE_OPS_RANDOM_OPS_H_
#define COMMON_COMPUTE_OPS_RANDOM_OPS_H_

#include <cstdint>

#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

// Stateless random numbers: a pure function of a seed and of the position in
// the tensor, so a retried step draws the same numbers. A seed is int64[2].
namespace muster {

// The seed of this step. A retry of the step has the same seed.
Value StepSeed(GraphBuilder& builder);
// A constant seed.
Value ConstantSeed(GraphBuilder& builder, int64_t first, int64_t second = 0);
// Returns an independent seed for each `data`. Use a different one for each
// draw.
Value FoldInSeed(Value seed, int64_t data);

// Uniform in [0, 1). `shape` is fully known. The functions with `like` use the
// shape of that value at run time and treat its rows as rows of a batch: the
// numbers of a row depend on its position in the global batch (see
// RunOptions::example_offset), not on the split over replicas.
Value RandomUniform(Value seed, const Shape& shape,
                    DType dtype = DType::kFloat32);
Value RandomUniformLike(Value seed, Value like, DType dtype = DType::kFloat32);
// Mean 0, standard deviation 1.
Value RandomNormal(Value seed, const Shape& shape,
                   DType dtype = DType::kFloat32);
Value RandomNormalLike(Value seed, Value like, DType dtype = DType::kFloat32);
// As RandomNormal(), but redraws values outside of (-2, 2).
Value TruncatedNormal(Value seed, const Shape& shape,
                      DType dtype = DType::kFloat32);
Value TruncatedNormalLike(Value seed, Value like,
                          DType dtype = DType::kFloat32);

// Returns bool of the shape of `like`. Each element is true with probability
// `keep_probability`.
Value DropoutMask(Value seed, Value like, double keep_probability);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_RANDOM_OPS_H_
