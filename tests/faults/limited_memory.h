#ifndef TESTS_FAULTS_LIMITED_MEMORY_H_
#define TESTS_FAULTS_LIMITED_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// A control group (version 1 or 2) in which the kernel kills processes that
// exceed its memory limit. The destructor removes the group; its processes must
// end before.
class LimitedMemory {
 public:
  //   kPermissionDenied  this process may not create such a group
  static absl::StatusOr<std::unique_ptr<LimitedMemory>> Create(
      const std::string& name, int64_t mebibytes);

  ~LimitedMemory();

  LimitedMemory(const LimitedMemory&) = delete;
  LimitedMemory& operator=(const LimitedMemory&) = delete;

  // Returns the beginning of a command that runs in the group.
  std::vector<std::string> Prefix() const;

  // Returns the path of the file to which a process writes its id to move to
  // the group of this process.
  std::string OutsideFile() const;

  // Returns the number of processes that the kernel has killed.
  int64_t KillCount() const;

 private:
  LimitedMemory(std::string own_folder, std::string folder, bool is_version_two)
      : own_folder_(std::move(own_folder)),
        folder_(std::move(folder)),
        is_version_two_(is_version_two) {}

  const std::string own_folder_;  // Folder of the group of this process.
  const std::string folder_;
  const bool is_version_two_;
};

}  // namespace muster

#endif  // TESTS_FAULTS_LIMITED_MEMORY_H_
