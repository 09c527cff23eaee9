#ifndef COMMON_LEARN_TRAIN_WEIGHTS_HASH_H_
#define COMMON_LEARN_TRAIN_WEIGHTS_HASH_H_

#include <map>
#include <string>

#include "common/core/tensor/tensor.h"

namespace muster {

// Returns the SHA-256 hash, in hexadecimal, of all tensors in the order of
// their names. Of each tensor it hashes "name|dtype|shape|"
// ("dense/kernel|float32|[64,10]|") and then the bytes. Equal for two runs that
// ended with the same bits.
std::string HashWeights(const std::map<std::string, Tensor>& weights);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_WEIGHTS_HASH_H_
