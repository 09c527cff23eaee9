#include "tests/simulation/scheduler/repeatable_process.h"

#include <errno.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/base/internal/sysinfo.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace muster::sim {
namespace {

// Set in the process that was executed again.
constexpr char kWasRepeated[] = "MUSTER_SIMULATION_PROCESS";
// Asks personality() for the present value.
constexpr unsigned long kQuery = 0xffffffff;

bool HasFixedAddresses() {
  const int now = personality(kQuery);
  return now >= 0 && (now & ADDR_NO_RANDOMIZE) != 0;
}

constexpr unsigned char kRdtsc[] = {0x0f, 0x31};
constexpr unsigned char kRdtscp[] = {0x0f, 0x01, 0xf9};
constexpr uint64_t kCyclesPerRead = 1000;

uint64_t cycles = 0;

// Emulates the instructions that read the cycle counter. Any other fault ends
// the process, as it would without this handler.
void OnFault(int signal, siginfo_t*, void* context) {
  auto* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const instruction =
      reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
  if (std::memcmp(instruction, kRdtsc, sizeof(kRdtsc)) == 0) {
    registers[REG_RIP] += sizeof(kRdtsc);
  } else if (std::memcmp(instruction, kRdtscp, sizeof(kRdtscp)) == 0) {
    registers[REG_RIP] += sizeof(kRdtscp);
    registers[REG_RCX] = 0;  // The number of the processor.
  } else {
    std::signal(signal, SIG_DFL);
    return;
  }
  cycles += kCyclesPerRead;
  registers[REG_RAX] = static_cast<greg_t>(cycles & 0xffffffff);
  registers[REG_RDX] = static_cast<greg_t>(cycles >> 32);
}

}  // namespace

void ReplaceCycleCounter() {
  cycles = 0;
  // Measures the counter when it is first called.
  absl::base_internal::NominalCPUFrequency();
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  // Other threads do not run during the handler, but it may be interrupted by a
  // fault of its own.
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

absl::Status MakeProcessRepeatable(char** arguments) {
  if (std::getenv(kWasRepeated) != nullptr && HasFixedAddresses()) {
    return absl::OkStatus();
  }
  UseCpu(0);
  const int now = personality(kQuery);
  if (std::getenv(kWasRepeated) == nullptr && now >= 0 &&
      personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) >= 0) {
    setenv(kWasRepeated, "1", /*overwrite=*/1);
    execv("/proc/self/exe", arguments);
  }
  return absl::UnavailableError(absl::StrCat(
      "cannot switch address randomization off: ", std::strerror(errno),
      "; two runs of a seed may differ"));
}

void UseCpu(int index) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(index), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

int CpuCount() {
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace muster::sim
