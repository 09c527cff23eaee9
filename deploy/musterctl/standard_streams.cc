#include "deploy/musterctl/standard_streams.h"

#include <unistd.h>

#include <cerrno>

namespace muster {

absl::Status WriteToStandardOutput(absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return absl::ErrnoToStatus(errno, "standard output");
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> ReadFromStandardInput(absl::Span<uint8_t> bytes) {
  while (true) {
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "standard input");
  }
}

}  // namespace muster
