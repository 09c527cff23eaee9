#ifndef COMMON_NET_PROCESS_HOST_PROCESS_H_
#define COMMON_NET_PROCESS_HOST_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace muster {

// Identifies a process among those of all machines, also after its pid has been
// given to another process.
struct HostProcess {
  std::string host;  // The name of the machine.
  int64_t pid = 0;
  uint64_t start_ticks = 0;   // From the machine's boot to the start.
  std::string boot_id;        // Differs between machines and boots.
  std::string pid_namespace;  // That of `pid`; containers have their own.

  std::string ToString() const;  // "pid 4711 on host h0"
};

// Returns the calling process. What the system does not tell is empty or 0.
HostProcess ThisProcess();
// As ThisProcess(), for a process of the same PID namespace.
HostProcess ProcessOfPid(pid_t pid);

enum class ProcessState {
  kRunning,
  kEnded,
  kUnknown,  // On another machine, in another boot or PID namespace.
};

// Returns whether `process` runs. One that has ended and that its parent has
// not waited for has ended.
ProcessState StateOf(const HostProcess& process);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_HOST_PROCESS_H_
