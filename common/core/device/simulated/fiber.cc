#include "common/core/device/simulated/fiber.h"

#include <sys/mman.h>

#include <cstdint>

#include "absl/base/config.h"
#include "common/core/base/check.h"

#ifdef ABSL_HAVE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef ABSL_HAVE_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

// Saves the registers that a callee preserves, stores the stack pointer in
// *from, and continues with the stack and the registers that `to` points to.
extern "C" void muster_switch_stack(void** from, void* to);

#if defined(__x86_64__)
asm(R"(
  .text
  .globl muster_switch_stack
  .type muster_switch_stack, @function
muster_switch_stack:
  .cfi_startproc
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .cfi_endproc
  .size muster_switch_stack, . - muster_switch_stack
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl muster_switch_stack
  .type muster_switch_stack, %function
muster_switch_stack:
  .cfi_startproc
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
  .cfi_endproc
  .size muster_switch_stack, . - muster_switch_stack
)");
#else
#error "write muster_switch_stack for this processor"
#endif

namespace muster::simulated {
namespace {

constexpr size_t kGuardBytes = 64 << 10;  // A multiple of all page sizes.
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
constexpr size_t kStackBytes = 256 << 10;
#else
constexpr size_t kStackBytes = 64 << 10;
#endif

// The fiber that runs on this thread.
constinit thread_local Fiber* running = nullptr;

// Returns the stack pointer from which muster_switch_stack() enters `entry`.
void* FirstFrame(char* stack, void (*entry)()) {
  auto* const top = reinterpret_cast<uint64_t*>(stack + kStackBytes);
#if defined(__x86_64__)
  // Six registers, the entry, and a return address of 0, where backtraces end.
  uint64_t* const frame = top - 8;
  for (int i = 0; i < 8; ++i) frame[i] = 0;
  frame[6] = reinterpret_cast<uint64_t>(entry);
#else
  uint64_t* const frame = top - 20;
  for (int i = 0; i < 20; ++i) frame[i] = 0;
  frame[11] = reinterpret_cast<uint64_t>(entry);
#endif
  return frame;
}

}  // namespace

Fiber::Fiber() {
  void* const mapped =
      mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  MUSTER_CHECK(mapped != MAP_FAILED);
  MUSTER_CHECK(mprotect(mapped, kGuardBytes, PROT_NONE) == 0);
  stack_ = static_cast<char*>(mapped) + kGuardBytes;
}

Fiber::~Fiber() {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  ASAN_UNPOISON_MEMORY_REGION(stack_, kStackBytes);
#endif
#ifdef ABSL_HAVE_THREAD_SANITIZER
  if (tsan_fiber_ != nullptr) __tsan_destroy_fiber(tsan_fiber_);
#endif
  munmap(stack_ - kGuardBytes, kGuardBytes + kStackBytes);
}

void Fiber::Prepare() {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  ASAN_UNPOISON_MEMORY_REGION(stack_, kStackBytes);
#endif
#ifdef ABSL_HAVE_THREAD_SANITIZER
  if (tsan_fiber_ != nullptr) __tsan_destroy_fiber(tsan_fiber_);
  tsan_fiber_ = __tsan_create_fiber(0);
#endif
  stack_pointer_ = FirstFrame(stack_, Enter);
  is_prepared_ = true;
}

void Fiber::Start(Body body, void* argument) {
  // After a body returns, Enter() loops and can take the next body.
  if (!is_prepared_ || !is_done()) Prepare();
  body_ = body;
  argument_ = argument;
}

void Fiber::Resume() {
  MUSTER_CHECK(running == nullptr && !is_done());
  running = this;
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, kStackBytes);
#endif
#ifdef ABSL_HAVE_THREAD_SANITIZER
  tsan_caller_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_fiber_, 0);
#endif
  muster_switch_stack(&caller_stack_pointer_, stack_pointer_);
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  running = nullptr;
}

void Fiber::SwitchToCaller() {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(&asan_fake_stack_, caller_stack_,
                                 caller_stack_bytes_);
#endif
#ifdef ABSL_HAVE_THREAD_SANITIZER
  __tsan_switch_to_fiber(tsan_caller_, 0);
#endif
  muster_switch_stack(&stack_pointer_, caller_stack_pointer_);
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(asan_fake_stack_, &caller_stack_,
                                  &caller_stack_bytes_);
#endif
}

void Fiber::Suspend() {
  MUSTER_CHECK(running != nullptr);
  running->SwitchToCaller();
}

void Fiber::Enter() {
  Fiber* const self = running;
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &self->caller_stack_,
                                  &self->caller_stack_bytes_);
#endif
  while (true) {
    self->body_(self->argument_);
    self->body_ = nullptr;
    self->SwitchToCaller();
  }
}

}  // namespace muster::simulated
