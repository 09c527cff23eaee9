#include "common/io/storage/open_input.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/confined_files.h"
#include "common/io/storage/local_disk.h"
#include "common/io/storage/object_url.h"

namespace muster {

absl::StatusOr<std::unique_ptr<ReadableFile>> OpenInput(
    const std::string& path) {
  if (!IsObjectUrl(path)) {
    ASSIGN_OR_RETURN(const int descriptor, OpenToRead(path));
    return ReadDescriptor(path, descriptor);
  }
  const std::optional<std::vector<std::string>>& folders = ConfinedFolders();
  const bool is_allowed =
      !folders.has_value() || std::any_of(folders->begin(), folders->end(),
                                          [&](const std::string& folder) {
                                            return IsBelowUrl(path, folder);
                                          });
  if (!is_allowed) return OutsideOfConfinedFolders(path);
  return Disk::Real()->Open(path);
}

}  // namespace muster
