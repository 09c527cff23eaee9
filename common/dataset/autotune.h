#ifndef COMMON_DATASET_AUTOTUNE_H_
#define COMMON_DATASET_AUTOTUNE_H_

#include <cstdint>

namespace muster {

// A number that an input pipeline chooses where it runs, which may be another
// machine than the one that defines it:
//
//   data.Map(decode, {.thread_count = kAutotune}).Prefetch(kAutotune)
//
//   MapOptions::thread_count  AvailableCpus() of the process, which is not
//                             changed while the pipeline runs.
//   Dataset::Prefetch()       begins with one element. Each time that the
//                             consumer finds the buffer empty after it was
//                             full, it doubles, up to kAutotunedBufferMax. It
//                             does not shrink.
//
// The elements and their order do not depend on it. For that reason, the
// cycle_length of Interleave() cannot be chosen: it decides the order.
//
// Equivalent to: tf.data.AUTOTUNE.
inline constexpr int kAutotune = -1;

inline constexpr int64_t kAutotunedBufferMax = 64;

}  // namespace muster

#endif  // COMMON_DATASET_AUTOTUNE_H_
