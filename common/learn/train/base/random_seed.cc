#include "common/learn/train/base/random_seed.h"

#include <atomic>

namespace muster {
namespace {

std::atomic<uint64_t> random_seed = 0;

}  // namespace

void SetRandomSeed(uint64_t seed) { random_seed.store(seed); }

uint64_t RandomSeed() { return random_seed.load(); }

}  // namespace muster
