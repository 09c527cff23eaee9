#include "common/io/storage/object_disk.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"

namespace muster {
namespace {

// Shared by all files.
constexpr int kUploadThreads = 4;
// An object has at most 10,000 parts, so they double in size after each
// thousand.
constexpr int kPartsPerSize = 1000;

size_t PartBytes(size_t first_bytes, int part_number) {
  return first_bytes << ((part_number - 1) / kPartsPerSize);
}

absl::Status EmptyFolder(absl::string_view folder) {
  return absl::NotFoundError(
      absl::StrCat(folder, ": there is no object in this folder"));
}

class ObjectWriter final : public WritableFile {
 public:
  ObjectWriter(ObjectUrl url, ObjectStore* store, ThreadPool* uploads,
               const ObjectDisk::Options& options)
      : url_(std::move(url)),
        store_(store),
        uploads_(uploads),
        part_bytes_(options.part_bytes),
        upload_count_max_(options.upload_count_max) {}

  ~ObjectWriter() override {
    AwaitUploads(0);
    if (upload_id_.empty() || is_complete_) return;
    const absl::Status status = store_->AbortUpload(url_, upload_id_);
    if (!status.ok()) {
      LOG(WARNING) << "parts of an object remain in the store: "
                   << status.message();
    }
  }

  absl::Status Append(absl::Span<const uint8_t> bytes) override {
    RETURN_IF_ERROR(CheckIsOpen());
    while (!bytes.empty()) {
      const size_t size = PartBytes(part_bytes_, part_count_ + 1);
      const auto piece = bytes.subspan(0, size - part_.size());
      part_.insert(part_.end(), piece.begin(), piece.end());
      bytes.remove_prefix(piece.size());
      // A full part is kept until more bytes follow, because it may be the last
      // one.
      if (part_.size() == size && !bytes.empty()) {
        RETURN_IF_ERROR(StartPart());
      }
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    RETURN_IF_ERROR(CheckIsOpen());
    is_closed_ = true;
    if (part_count_ == 0) {
      RETURN_IF_ERROR(store_->Write(url_, part_));
    } else {
      RETURN_IF_ERROR(StartPart());
      AwaitUploads(0);
      ASSIGN_OR_RETURN(const std::vector<std::string> tags, TakePartTags());
      RETURN_IF_ERROR(store_->CompleteUpload(url_, upload_id_, tags));
    }
    is_complete_ = true;
    return absl::OkStatus();
  }

  absl::Status Close() override { return Sync(); }

 private:
  absl::Status CheckIsOpen() ABSL_LOCKS_EXCLUDED(mutex_) {
    RETURN_IF_ERROR(first_error());
    return is_closed_ ? absl::FailedPreconditionError(absl::StrCat(
                            url_.ToString(), " is complete already"))
                      : absl::OkStatus();
  }

  absl::Status first_error() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return first_error_;
  }

  // Returns the tags of all parts, or the first error of sending them.
  absl::StatusOr<std::vector<std::string>> TakePartTags()
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(first_error_);
    return std::move(part_tags_);
  }

  // Sends `part_` on another thread, once fewer than upload_count_max_ parts
  // are being sent.
  absl::Status StartPart() ABSL_LOCKS_EXCLUDED(mutex_) {
    if (upload_id_.empty()) {
      ASSIGN_OR_RETURN(upload_id_, store_->BeginUpload(url_));
    }
    AwaitUploads(upload_count_max_ - 1);
    const int number = ++part_count_;
    {
      absl::MutexLock lock(&mutex_);
      RETURN_IF_ERROR(first_error_);
      ++upload_count_;
      part_tags_.emplace_back();
    }
    uploads_->Schedule([this, number, part = std::exchange(part_, {})] {
      const absl::StatusOr<std::string> tag =
          store_->UploadPart(url_, upload_id_, number, part);
      absl::MutexLock lock(&mutex_);
      if (tag.ok()) {
        part_tags_[number - 1] = *tag;
      } else if (first_error_.ok()) {
        first_error_ = tag.status();
      }
      --upload_count_;
    });
    return absl::OkStatus();
  }

  // Waits until at most `count` parts are being sent. Requests have deadlines.
  void AwaitUploads(int count) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto has_few = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return upload_count_ <= count;
    };
    mutex_.Await(absl::Condition(&has_few));
  }

  const ObjectUrl url_;
  ObjectStore* const store_;
  ThreadPool* const uploads_;
  const size_t part_bytes_;
  const int upload_count_max_;

  std::vector<uint8_t> part_;  // The part that has not been sent yet.
  int part_count_ = 0;         // Parts that were sent, or are being sent.
  std::string upload_id_;      // Empty before the first StartPart().
  bool is_closed_ = false;
  bool is_complete_ = false;

  absl::Mutex mutex_;
  int upload_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> part_tags_ ABSL_GUARDED_BY(mutex_);
  absl::Status first_error_ ABSL_GUARDED_BY(mutex_);
};

class ObjectReader final : public ReadableFile {
 public:
  // Opens the object and reads its first block.
  static absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      ObjectUrl url, ObjectStore* store, const ObjectDisk::Options& options) {
    std::vector<uint8_t> block(options.first_block_bytes);
    ASSIGN_OR_RETURN(ObjectStore::Piece piece,
                     store->Read(url, 0, absl::MakeSpan(block), ""));
    block.resize(piece.size_bytes);
    block.shrink_to_fit();
    return std::unique_ptr<ReadableFile>(
        new ObjectReader(std::move(url), store, options.block_bytes,
                         std::move(piece), std::move(block)));
  }

  int64_t size_bytes() const override { return size_bytes_; }

  absl::Status ReadAt(int64_t offset, absl::Span<uint8_t> bytes) override {
    const auto wanted = static_cast<int64_t>(bytes.size());
    if (offset < 0 || offset > size_bytes_ || wanted > size_bytes_ - offset) {
      return absl::DataLossError(
          absl::StrCat(url_.ToString(), " ends at offset ", size_bytes_,
                       "; expected ", wanted, " bytes at offset ", offset));
    }
    while (!bytes.empty()) {
      ASSIGN_OR_RETURN(const size_t count, ReadThroughBlock(offset, bytes));
      // Large reads bypass the block, and run in parallel.
      if (count == 0) return store_->Read(url_, offset, bytes, etag_).status();
      bytes.remove_prefix(count);
      offset += static_cast<int64_t>(count);
    }
    return absl::OkStatus();
  }

 private:
  ObjectReader(ObjectUrl url, ObjectStore* store, size_t block_bytes,
               ObjectStore::Piece piece, std::vector<uint8_t> block)
      : url_(std::move(url)),
        store_(store),
        block_bytes_(block_bytes),
        size_bytes_(piece.object_bytes),
        etag_(std::move(piece.etag)),
        block_(std::move(block)) {}

  // Copies the first of `bytes` from the block. If the block does not contain
  // them, fills it first, unless `bytes` has at least the size of a block.
  // Returns how many bytes were copied; 0 if the caller must read `bytes`
  // itself.
  absl::StatusOr<size_t> ReadThroughBlock(int64_t offset,
                                          absl::Span<uint8_t> bytes)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const int64_t block_end =
        block_offset_ + static_cast<int64_t>(block_.size());
    if (offset < block_offset_ || offset >= block_end) {
      if (bytes.size() >= block_bytes_) return 0;
      RETURN_IF_ERROR(FillBlock(offset));
    }
    const int64_t within = offset - block_offset_;
    const size_t count = std::min<size_t>(bytes.size(), block_.size() - within);
    std::memcpy(bytes.data(), block_.data() + within, count);
    return count;
  }

  absl::Status FillBlock(int64_t offset) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    block_.resize(std::min<int64_t>(static_cast<int64_t>(block_bytes_),
                                    size_bytes_ - offset));
    block_offset_ = offset;
    const absl::Status status =
        store_->Read(url_, offset, absl::MakeSpan(block_), etag_).status();
    if (!status.ok()) block_.clear();
    return status;
  }

  const ObjectUrl url_;
  ObjectStore* const store_;
  const size_t block_bytes_;
  const int64_t size_bytes_;
  const std::string etag_;

  absl::Mutex mutex_;
  int64_t block_offset_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<uint8_t> block_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

ObjectDisk::ObjectDisk(EnvironmentReader environment)
    : ObjectDisk(std::move(environment), Options()) {}

ObjectDisk::ObjectDisk(EnvironmentReader environment, const Options& options)
    : environment_(std::move(environment)),
      options_(options),
      uploads_("object_upload", kUploadThreads) {}

ObjectDisk::~ObjectDisk() = default;

absl::StatusOr<ObjectDisk::Place> ObjectDisk::Find(absl::string_view path) {
  ASSIGN_OR_RETURN(ObjectUrl url, ParseObjectUrl(path));
  absl::MutexLock lock(&mutex_);
  std::unique_ptr<ObjectStore>& store = stores_[url.scheme];
  if (store == nullptr) {
    ObjectStore::Options options = options_.store;
    ASSIGN_OR_RETURN(options.access,
                     FindObjectStoreAccess(url.scheme, environment_));
    store = std::make_unique<ObjectStore>(options);
  }
  return Place{std::move(url), store.get()};
}

absl::StatusOr<ObjectDisk::Place> ObjectDisk::FindFile(absl::string_view path) {
  ASSIGN_OR_RETURN(Place place, Find(path));
  if (!place.url.key.empty() && !absl::EndsWith(place.url.key, "/")) {
    return place;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, " names a folder; expected an object"));
}

bool ObjectDisk::CreatesAtomically(absl::string_view) const { return true; }

absl::StatusOr<std::unique_ptr<WritableFile>> ObjectDisk::Create(
    absl::string_view path) {
  ASSIGN_OR_RETURN(Place place, FindFile(path));
  return std::make_unique<ObjectWriter>(std::move(place.url), place.store,
                                        &uploads_, options_);
}

absl::Status ObjectDisk::CreateExclusive(absl::string_view path,
                                         absl::string_view content) {
  ASSIGN_OR_RETURN(const Place place, FindFile(path));
  return place.store->WriteNew(
      place.url,
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(content.data()),
                          content.size()));
}

absl::StatusOr<std::unique_ptr<AppendableFile>> ObjectDisk::AppendFile(
    absl::string_view path) {
  return absl::UnimplementedError(absl::StrCat(
      "cannot append to ", path,
      ": objects cannot grow; create an object for each batch of records, or "
      "use a folder that all tasks share"));
}

absl::StatusOr<std::unique_ptr<ReadableFile>> ObjectDisk::Open(
    absl::string_view path) {
  ASSIGN_OR_RETURN(Place place, FindFile(path));
  return ObjectReader::Open(std::move(place.url), place.store, options_);
}

absl::Status ObjectDisk::Rename(absl::string_view from, absl::string_view to) {
  return absl::UnimplementedError(absl::StrCat(
      "cannot rename ", from, " to ", to, ": objects have no such operation"));
}

absl::Status ObjectDisk::Remove(absl::string_view path) {
  ASSIGN_OR_RETURN(const Place place, FindFile(path));
  return place.store->Remove(place.url);
}

absl::Status ObjectDisk::MakeFolder(absl::string_view folder) {
  return ParseObjectUrl(folder).status();
}

absl::Status ObjectDisk::SyncFolder(absl::string_view folder) {
  return ParseObjectUrl(folder).status();
}

absl::StatusOr<std::vector<std::string>> ObjectDisk::List(
    absl::string_view folder) {
  ASSIGN_OR_RETURN(const Place place, Find(folder));
  ASSIGN_OR_RETURN(ObjectStore::Listing listing, place.store->List(place.url));
  std::vector<std::string> names = std::move(listing.files);
  names.insert(names.end(), listing.folders.begin(), listing.folders.end());
  std::sort(names.begin(), names.end());
  if (names.empty()) return EmptyFolder(folder);
  return names;
}

absl::StatusOr<std::vector<std::string>> ObjectDisk::ListTree(
    absl::string_view folder, size_t count_max) {
  ASSIGN_OR_RETURN(const Place place, Find(folder));
  ASSIGN_OR_RETURN(std::vector<std::string> paths,
                   place.store->ListTree(place.url, count_max));
  if (paths.empty()) return EmptyFolder(folder);
  return paths;
}

}  // namespace muster
