#ifndef COMMON_LEARN_TRAIN_BASE_RANDOM_SEED_H_
#define COMMON_LEARN_TRAIN_BASE_RANDOM_SEED_H_

#include <cstdint>

namespace muster {

// Sets the seed of models that are compiled afterwards without a seed in
// CompileOptions. RunTask() sets the value of --seed. Thread-safe.
//
// Equivalent to: keras.utils.set_random_seed().
void SetRandomSeed(uint64_t seed);

// Returns the seed that was set; 0 if none was. Thread-safe.
uint64_t RandomSeed();

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_RANDOM_SEED_H_
