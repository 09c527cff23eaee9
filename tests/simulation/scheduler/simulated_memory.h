#ifndef TESTS_SIMULATION_SCHEDULER_SIMULATED_MEMORY_H_
#define TESTS_SIMULATION_SCHEDULER_SIMULATED_MEMORY_H_

#include <cstddef>

// The memory of simulated threads. Its addresses depend on the order in which
// the simulation allocates, and on nothing else: not on what the process has
// allocated before, its arguments, its environment or the limits of its memory.
// The order of a hash map whose keys or tables are hashed by address is
// therefore a part of the seed.
//
// Used by one thread at a time, as the scheduler runs them.
namespace muster::sim {

// Reserves the addresses. Aborts if another part of the process uses them.
void ReserveSimulatedMemory();

// Returns a block whose address is a multiple of `alignment`, a power of two.
// Its contents are undefined. Aborts if the reserved addresses are used up.
void* AllocateSimulated(size_t size_bytes, size_t alignment);
// Frees a block of AllocateSimulated().
void FreeSimulated(void* block);
// True if `block` came from AllocateSimulated().
bool IsSimulated(const void* block);
// The number of bytes that a block of AllocateSimulated() has room for.
size_t CapacityOfSimulated(const void* block);

// Returns an address for a mapping of `size_bytes`, which no other mapping has
// had.
void* NextMappingAddress(size_t size_bytes);

}  // namespace muster::sim

#endif  // TESTS_SIMULATION_SCHEDULER_SIMULATED_MEMORY_H_
