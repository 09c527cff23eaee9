#ifndef COMMON_NET_PROCESS_HOST_PROCESS_H_
#define COMMON_NET_PROCESS_HOST_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace muster {

// Identifies a process among those of all machines, even after its pid has been
// reused for another process.
struct HostProcess {
  std::string host;  // The name of the machine.
  int64_t pid = 0;
  uint64_t start_ticks = 0;   // Time from the machine's boot to the start.
  std::string boot_id;        // Differs between machines and boots.
  std::string pid_namespace;  // The namespace of `pid`, such as a container's.

  std::string ToString() const;  // "pid 4711 on host h0"
};

// Returns the calling process. Fields that the system does not report are empty
// or 0.
HostProcess ThisProcess();
// Returns the process `pid` of the same PID namespace, as ThisProcess() does.
HostProcess ProcessOfPid(pid_t pid);

enum class ProcessState {
  kRunning,
  kEnded,
  kUnknown,  // On another machine, in another boot or PID namespace.
};

// Returns whether `process` runs. A process counts as ended even if its parent
// has not reaped it yet.
ProcessState StateOf(const HostProcess& process);

}  // namespace muster

#endif  // COMMON_NET_PROCESS_HOST_PROCESS_H_
