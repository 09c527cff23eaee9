#ifndef COMMON_IO_STORAGE_OBJECT_DISK_H_
#define COMMON_IO_STORAGE_OBJECT_DISK_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/core/system/thread_pool.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/object_store.h"
#include "common/io/storage/object_store_access.h"
#include "common/io/storage/object_url.h"

namespace muster {

// The objects of S3 and of stores with its protocol as files. Paths are URLs
// (object_url.h), and "/" in keys separates folders.
//
// A file is written with one request if it is small, otherwise in parts that
// are sent while more is appended. It appears when it is completed. A writer
// that is destroyed before that discards its parts. The parts of a killed
// process are discarded by the bucket's lifecycle rule
// (AbortIncompleteMultipartUpload), if it has one.
//
// Files are read in blocks. Errors are those of ObjectStore and
// FindObjectStoreAccess().
//
// Thread-safe.
class ObjectDisk final : public Disk {
 public:
  struct Options {
    ObjectStore::Options store;  // `access` is ignored.
    // At least 5 MiB, which is the least that stores accept.
    size_t part_bytes = 16 << 20;
    // Maximum number of parts of one file that are sent at the same time.
    int upload_count_max = 3;
    // Size of the block that is read when a file is opened. Small files take
    // one request.
    size_t first_block_bytes = 1 << 20;
    size_t block_bytes = 8 << 20;
  };

  // Returns the disk that Disk::Real() uses for URLs.
  static ObjectDisk* Real();

  // Reads the environment when a scheme is used for the first time.
  explicit ObjectDisk(EnvironmentReader environment);
  ObjectDisk(EnvironmentReader environment, const Options& options);
  ~ObjectDisk() override;

  // True.
  bool CreatesAtomically(absl::string_view path) const override;
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) override;
  // Takes two requests.
  absl::Status CreateExclusive(absl::string_view path,
                               absl::string_view content) override;
  //   kUnimplemented  always
  absl::StatusOr<std::unique_ptr<AppendableFile>> AppendFile(
      absl::string_view path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) override;
  absl::Status Rename(absl::string_view from, absl::string_view to) override;
  // OK if there is no such object.
  absl::Status Remove(absl::string_view path) override;
  absl::Status MakeFolder(absl::string_view folder) override;
  absl::Status SyncFolder(absl::string_view folder) override;
  absl::StatusOr<std::vector<std::string>> List(
      absl::string_view folder) override;

  // Returns the paths of all objects below `folder`, relative to it and sorted,
  // with few requests. Paths that end in "/" stand for folders: some tools
  // write them.
  //   kNotFound           there is no object below it
  //   kResourceExhausted  there are more than `count_max`
  absl::StatusOr<std::vector<std::string>> ListTree(absl::string_view folder,
                                                    size_t count_max);

 private:
  // An object, and the store that holds it.
  struct Place {
    ObjectUrl url;
    ObjectStore* store = nullptr;
  };
  absl::StatusOr<Place> Find(absl::string_view path)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // As Find(), for the URL of a file.
  absl::StatusOr<Place> FindFile(absl::string_view path)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const EnvironmentReader environment_;
  const Options options_;
  absl::Mutex mutex_;
  // By scheme.
  std::map<std::string, std::unique_ptr<ObjectStore>> stores_
      ABSL_GUARDED_BY(mutex_);
  ThreadPool uploads_;  // Destroyed first: its work uses the stores.
};

}  // namespace muster

#endif  // COMMON_IO_STORAGE_OBJECT_DISK_H_
