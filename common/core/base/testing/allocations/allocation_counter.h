#ifndef COMMON_CORE_BASE_TESTING_ALLOCATIONS_ALLOCATION_COUNTER_H_
#define COMMON_CORE_BASE_TESTING_ALLOCATIONS_ALLOCATION_COUNTER_H_

#include <cstdint>

namespace muster {

// Returns the number of calls of operator new in this process so far. Linking
// this library replaces operator new with a counting one. For tests and
// benchmarks of allocations.
int64_t AllocationCount();

}  // namespace muster

#endif  // COMMON_CORE_BASE_TESTING_ALLOCATIONS_ALLOCATION_COUNTER_H_
