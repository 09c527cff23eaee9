#ifndef COMMON_IO_STORAGE_OBJECT_URL_H_
#define COMMON_IO_STORAGE_OBJECT_URL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// The name of an object, "s3://bucket/key" or "gs://bucket/key", or of all
// objects whose keys begin with a prefix.
struct ObjectUrl {
  std::string scheme;  // "s3" or "gs".
  std::string bucket;
  std::string key;  // Without a slash in front; empty for the whole bucket.

  std::string ToString() const;
};

// True if `path` begins with "s3://" or "gs://". All other paths are those of
// the system.
bool IsObjectUrl(absl::string_view path);

// Only one spelling of a URL is valid: keys have no empty, "." or ".."
// components, so that comparing URLs as text tells which folder holds which
// object. A slash at the end is allowed.
//   kInvalidArgument  not such a URL; the message says what is wrong with it
absl::StatusOr<ObjectUrl> ParseObjectUrl(absl::string_view url);

// True if `url` is `root` or below it. False if either is not a valid URL.
bool IsBelowUrl(absl::string_view url, absl::string_view root);

}  // namespace muster

#endif  // COMMON_IO_STORAGE_OBJECT_URL_H_
