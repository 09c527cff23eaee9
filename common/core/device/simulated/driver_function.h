#ifndef COMMON_CORE_DEVICE_SIMULATED_DRIVER_FUNCTION_H_
#define COMMON_CORE_DEVICE_SIMULATED_DRIVER_FUNCTION_H_

// The beginning of each function of a simulated driver.

// Counts the call, and returns from the function if an error is injected.
// Defines `machine`.
#define MUSTER_ENTER(function)                                     \
  simulated::MachineState* const machine = simulated::the_machine; \
  if (machine == nullptr) return driver::kNotInitialized;          \
  if (const Result entered = machine->Enter(function);             \
      entered != driver::kSuccess) {                               \
    return entered;                                                \
  }
#define MUSTER_REQUIRE(condition, otherwise) \
  if (!(condition)) return driver::otherwise

#endif  // COMMON_CORE_DEVICE_SIMULATED_DRIVER_FUNCTION_H_
