#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/local_disk.h"
#include "common/io/storage/object_disk.h"
#include "common/io/storage/object_url.h"

namespace muster {
namespace {

// Passes each call to the disk that its path belongs to.
class RealDisk final : public Disk {
 public:
  bool CreatesAtomically(absl::string_view path) const override {
    return For(path)->CreatesAtomically(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) override {
    return For(path)->Create(path);
  }
  absl::Status CreateExclusive(absl::string_view path,
                               absl::string_view content) override {
    return For(path)->CreateExclusive(path, content);
  }
  absl::StatusOr<std::unique_ptr<AppendableFile>> AppendFile(
      absl::string_view path) override {
    return For(path)->AppendFile(path);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) override {
    return For(path)->Open(path);
  }
  absl::Status Rename(absl::string_view from, absl::string_view to) override {
    return For(IsObjectUrl(from) ? from : to)->Rename(from, to);
  }
  absl::Status Remove(absl::string_view path) override {
    return For(path)->Remove(path);
  }
  absl::Status MakeFolder(absl::string_view folder) override {
    return For(folder)->MakeFolder(folder);
  }
  absl::Status SyncFolder(absl::string_view folder) override {
    return For(folder)->SyncFolder(folder);
  }
  absl::StatusOr<std::vector<std::string>> List(
      absl::string_view folder) override {
    return For(folder)->List(folder);
  }

 private:
  static Disk* For(absl::string_view path) {
    return IsObjectUrl(path) ? ObjectDisk::Real() : LocalDisk();
  }
};

}  // namespace

ObjectDisk* ObjectDisk::Real() {
  static ObjectDisk* const disk = new ObjectDisk(
      [](const char* name) -> const char* { return getenv(name); });
  return disk;
}

Disk* Disk::Real() {
  static Disk* const disk = new RealDisk;
  return disk;
}

}  // namespace muster
