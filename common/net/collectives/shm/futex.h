#ifndef COMMON_NET_COLLECTIVES_SHM_FUTEX_H_
#define COMMON_NET_COLLECTIVES_SHM_FUTEX_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

// futex(2) for words that several processes may have mapped.
namespace muster::internal {

// Waits for FutexWakeAll(). Returns at the latest after `timeout`, immediately
// if *word is not `value`, and sometimes spuriously.
void FutexWait(std::atomic<uint32_t>* word, uint32_t value,
               absl::Duration timeout);

void FutexWakeAll(std::atomic<uint32_t>* word);

}  // namespace muster::internal

#endif  // COMMON_NET_COLLECTIVES_SHM_FUTEX_H_
