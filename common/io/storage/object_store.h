#ifndef COMMON_IO_STORAGE_OBJECT_STORE_H_
#define COMMON_IO_STORAGE_OBJECT_STORE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/core/base/backoff.h"
#include "common/core/system/clock.h"
#include "common/io/storage/http_client.h"
#include "common/io/storage/object_store_access.h"
#include "common/io/storage/object_url.h"

namespace muster {

// The requests of Amazon's S3 that Muster uses, for S3 and for stores that
// speak its protocol, such as Google's Cloud Storage, MinIO and Ceph.
//
// Objects appear, are replaced and disappear as a whole. Every body that is
// sent is signed with its SHA-256, which the store verifies. Requests are
// repeated, with growing random delays, after a broken connection, a timeout,
// an overload or an internal error of the store, but not after another error.
//
// Errors name the URL, the endpoint, the store's error, and what to do:
//   kNotFound            there is no such object
//   kFailedPrecondition  there is no such bucket, it is in another region, or
//                        the certificate of the store is not trusted
//   kPermissionDenied    wrong keys, or keys that do not permit this
//   kUnavailable, kDeadlineExceeded  no answer within Options::retry_for
//   kDataLoss            the object was replaced while it was read
//   kInternal            the response is invalid
//   kInvalidArgument     the store rejected the request for another reason
//
// API: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations.html
// Thread-safe.
class ObjectStore {
 public:
  struct Options {
    ObjectStoreAccess access;
    // No attempt begins later than this after the first one.
    absl::Duration retry_for = absl::Seconds(60);
    BackoffOptions backoff = {.initial = absl::Milliseconds(100),
                              .maximum = absl::Seconds(5),
                              .multiplier = 2,
                              .jitter = 1};
    absl::Duration connect_timeout = absl::Seconds(10);
    absl::Duration stall_timeout = absl::Seconds(20);
    Clock* clock = nullptr;  // Borrowed; null: Clock::Real().
  };

  explicit ObjectStore(const Options& options);

  // A part of an object.
  struct Piece {
    size_t size_bytes = 0;     // Bytes read.
    int64_t object_bytes = 0;  // The size of the object.
    std::string etag;          // Identifies the content of the object.
  };

  // Reads from `offset` until `bytes` is full or the object ends. If `etag` is
  // not empty, the object must have it.
  absl::StatusOr<Piece> Read(const ObjectUrl& url, int64_t offset,
                             absl::Span<uint8_t> bytes, absl::string_view etag);

  // Writes an object in one request. At most 5 GiB.
  absl::Status Write(const ObjectUrl& url, absl::Span<const uint8_t> bytes);

  // Writes an object in one request, unless there is one already. At most 5
  // GiB. A request that is repeated may find the object of its first attempt,
  // so an object with the same content counts as written by this call.
  //   kAlreadyExists  there is an object with another content
  //   kUnimplemented  the store has no conditional writes, or ignores their
  //                   condition; then it may have replaced an object
  //
  // API:
  // https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
  absl::Status WriteNew(const ObjectUrl& url, absl::Span<const uint8_t> bytes);

  // OK if there is no such object.
  absl::Status Remove(const ObjectUrl& url);

  // The objects below a folder.
  struct Listing {
    std::vector<std::string> files;    // Names of the objects in it, sorted.
    std::vector<std::string> folders;  // Names of the folders in it, sorted.
  };
  absl::StatusOr<Listing> List(const ObjectUrl& folder);

  // Returns the keys of all objects below a folder and its subfolders, relative
  // to the folder and sorted. Takes one request for each 1,000 keys.
  //   kResourceExhausted  there are more than `count_max`
  absl::StatusOr<std::vector<std::string>> ListTree(const ObjectUrl& folder,
                                                    size_t count_max);

  // Writes an object in parts. Parts have 5 MiB to 5 GiB, the last one may be
  // shorter, and numbers from 1 to 10,000. The object appears with
  // CompleteUpload(); until then the parts take space in the store, which
  // AbortUpload() releases.
  absl::StatusOr<std::string> BeginUpload(const ObjectUrl& url);
  // Returns the tag of the part, for CompleteUpload().
  absl::StatusOr<std::string> UploadPart(const ObjectUrl& url,
                                         absl::string_view upload_id,
                                         int part_number,
                                         absl::Span<const uint8_t> bytes);
  absl::Status CompleteUpload(const ObjectUrl& url, absl::string_view upload_id,
                              const std::vector<std::string>& part_tags);
  absl::Status AbortUpload(const ObjectUrl& url, absl::string_view upload_id);

 private:
  using Query = std::vector<std::pair<std::string, std::string>>;
  // A request to the store about an object.
  struct Task {
    const char* verb = "";  // "read", for messages.
    const ObjectUrl& url;
    const char* method = "GET";
    Query query = {};
    std::vector<std::string> headers = {};
    absl::Span<const uint8_t> body = {};
    absl::Span<uint8_t> sink = {};
  };

  // Returns the first response that is not a transient error, or the transient
  // error when there is no time for another attempt.
  absl::StatusOr<HttpClient::Response> Send(const Task& task);
  // Writes the object if there is none. Returns whether it was written.
  absl::StatusOr<bool> TryWriteNew(const ObjectUrl& url,
                                   absl::Span<const uint8_t> bytes);
  // Returns true if the object has this content.
  absl::StatusOr<bool> HasContent(const ObjectUrl& url,
                                  absl::Span<const uint8_t> bytes);
  // As Send(), with an error for responses that are errors.
  absl::StatusOr<HttpClient::Response> Do(const Task& task);
  // Requests the pages of a listing. `add` gets each key relative to the
  // folder. With a delimiter, keys that contain it are truncated after it, and
  // `add` gets each of these names of folders once.
  absl::Status ListPages(const ObjectUrl& folder, absl::string_view delimiter,
                         absl::FunctionRef<absl::Status(std::string key)> add);
  absl::Status RefusalOf(const Task& task,
                         const HttpClient::Response& response) const;
  absl::Status ConnectionError(const Task& task, const absl::Status& status,
                               int attempt_count) const;
  std::string RequestUrl(const ObjectUrl& url, const Query& query) const;
  std::string EndpointOf(const ObjectUrl& url) const;
  void Wait(absl::Duration duration);
  // True if the object is the result of the upload of these parts.
  bool IsComplete(const ObjectUrl& url,
                  const std::vector<std::string>& part_tags);

  const Options options_;
  Clock* const clock_;
  HttpClient http_;
};

}  // namespace muster

#endif  // COMMON_IO_STORAGE_OBJECT_STORE_H_
