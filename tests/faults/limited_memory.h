#ifndef TESTS_FAULTS_LIMITED_MEMORY_H_
#define TESTS_FAULTS_LIMITED_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// A control group (version 1 or 2) below that of this process, in which the
// kernel kills processes that exceed its memory limit. It ends with this
// object, which its processes must not outlive.
class LimitedMemory {
 public:
  //   kPermissionDenied  this process may not make such a group
  static absl::StatusOr<std::unique_ptr<LimitedMemory>> Create(
      const std::string& name, int64_t mebibytes);

  ~LimitedMemory();

  LimitedMemory(const LimitedMemory&) = delete;
  LimitedMemory& operator=(const LimitedMemory&) = delete;

  // The beginning of a command that is to run in the group.
  std::vector<std::string> Prefix() const;

  // The path of the file to which a process writes its id to leave for the
  // group of this process.
  std::string OutsideFile() const;

  // How many processes the kernel has killed.
  int64_t KillCount() const;

 private:
  LimitedMemory(std::string own_folder, std::string folder, bool is_version_two)
      : own_folder_(std::move(own_folder)),
        folder_(std::move(folder)),
        is_version_two_(is_version_two) {}

  const std::string own_folder_;  // Of the group of this process.
  const std::string folder_;
  const bool is_version_two_;
};

}  // namespace muster

#endif  // TESTS_FAULTS_LIMITED_MEMORY_H_
