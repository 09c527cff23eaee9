#ifndef COMMON_LEARN_NN_IMAGE_GAMMA_DRAWS_H_
#define COMMON_LEARN_NN_IMAGE_GAMMA_DRAWS_H_

#include <cstdint>

#include "common/compute/graph/graph_builder.h"
#include "common/learn/nn/image/augmentation.h"

// Draws from the gamma distribution and from those that follow from it. The
// draws have the dtype of the images.
//
// Source: Marsaglia and Tsang, "A Simple Method for Generating Gamma
// Variables", 2000. An attempt fails with a probability below 1/20. Each number
// has 10, and is a constant if all fail.
namespace muster::internal {

// A number from Beta(alpha, alpha) for each image: [batch, 1, 1, 1]. `alpha` is
// above 0 and broadcasts to it.
Value DrawBeta(Value alpha, ImageDraws& draws);

// A number from Beta(alpha, alpha) for all images: [1].
Value DrawBetaOfBatch(double alpha, ImageDraws& draws);

// `count` numbers for all images, from the Dirichlet distribution whose
// parameters are all `alpha`: [count]. They sum to 1.
Value DrawDirichletOfBatch(int64_t count, double alpha, ImageDraws& draws);

}  // namespace muster::internal

#endif  // COMMON_LEARN_NN_IMAGE_GAMMA_DRAWS_H_
