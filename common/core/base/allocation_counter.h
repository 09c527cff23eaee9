#ifndef COMMON_CORE_BASE_ALLOCATION_COUNTER_H_
#define COMMON_CORE_BASE_ALLOCATION_COUNTER_H_

#include <cstdint>

namespace muster {

// Calls of operator new in this process so far. Linking this library replaces
// operator new by one that counts: for tests and benchmarks of what allocates.
int64_t AllocationCount();

}  // namespace muster

#endif  // COMMON_CORE_BASE_ALLOCATION_COUNTER_H_
