#ifndef COMMON_COMPUTE_OPS_RANDOM_OPS_H_
#define COMMON_COMPUTE_OPS_RANDOM_OPS_H_

#include <cstdint>

#include "common/compute/graph/graph_builder.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"

// Stateless random numbers: a pure function of a seed and of the position in
// the tensor, so that a step run again draws what it drew. A seed is an
// int64[2].
namespace muster {

// The seed of this step's run: the same when the step is retried.
Value StepSeed(GraphBuilder& builder);
// A seed of one's own.
Value ConstantSeed(GraphBuilder& builder, int64_t first, int64_t second = 0);
// An independent seed for each `data`: give every use one of its own.
Value FoldInSeed(Value seed, int64_t data);

// Floats in [0, 1). `shape` is fully known; the forms with `like` take the
// shape of that value when the graph runs, and take its rows for rows of a
// batch: what a row draws depends on where it stands in the global batch (see
// RunOptions::example_offset), not on how the batch is divided over replicas.
Value RandomUniform(Value seed, const Shape& shape,
                    DType dtype = DType::kFloat32);
Value RandomUniformLike(Value seed, Value like, DType dtype = DType::kFloat32);
// Mean 0, standard deviation 1.
Value RandomNormal(Value seed, const Shape& shape,
                   DType dtype = DType::kFloat32);
Value RandomNormalLike(Value seed, Value like, DType dtype = DType::kFloat32);
// The same, with what lies outside of (-2, 2) drawn again.
Value TruncatedNormal(Value seed, const Shape& shape,
                      DType dtype = DType::kFloat32);
Value TruncatedNormalLike(Value seed, Value like,
                          DType dtype = DType::kFloat32);

// bool of the shape of `like`, each true with probability `keep_probability`.
Value DropoutMask(Value seed, Value like, double keep_probability);

}  // namespace muster

#endif  // COMMON_COMPUTE_OPS_RANDOM_OPS_H_
