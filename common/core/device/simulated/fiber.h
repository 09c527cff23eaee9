#ifndef COMMON_CORE_DEVICE_SIMULATED_FIBER_H_
#define COMMON_CORE_DEVICE_SIMULATED_FIBER_H_

#include <cstddef>

namespace muster::simulated {

// A function that can be suspended: it has a separate stack, and switching to
// it costs about as much as a call. Equivalent to: swapcontext(), without its
// system calls. Every switch is reported to the sanitizers.
//
// A fiber belongs to one operating-system thread at a time. Exceptions must not
// leave its body.
class Fiber {
 public:
  using Body = void (*)(void* argument);

  // Maps the stack, which ends in a page that faults.
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Prepares `body`, which begins at the next Resume(). A body that has not
  // returned is abandoned: its destructors do not run.
  void Start(Body body, void* argument);

  // Runs the body until it calls Suspend() or returns. Not called by a fiber.
  void Resume();

  // Returns from Resume() to its caller. Called by the running body.
  static void Suspend();

  bool is_done() const { return body_ == nullptr; }

 private:
  [[noreturn]] static void Enter();
  void Prepare();
  void SwitchToCaller();

  char* stack_ = nullptr;  // Above the guard page.
  void* stack_pointer_ = nullptr;
  Body body_ = nullptr;
  void* argument_ = nullptr;
  bool is_prepared_ = false;

  // The caller of Resume().
  void* caller_stack_pointer_ = nullptr;

  // For the sanitizers.
  [[maybe_unused]] void* tsan_fiber_ = nullptr;
  [[maybe_unused]] void* tsan_caller_ = nullptr;
  [[maybe_unused]] void* asan_fake_stack_ = nullptr;
  [[maybe_unused]] const void* caller_stack_ = nullptr;
  [[maybe_unused]] size_t caller_stack_bytes_ = 0;
};

}  // namespace muster::simulated

#endif  // COMMON_CORE_DEVICE_SIMULATED_FIBER_H_
