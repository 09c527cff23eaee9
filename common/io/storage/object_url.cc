#include "common/io/storage/object_url.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace muster {
namespace {

constexpr size_t kBucketBytesMin = 3;
constexpr size_t kBucketBytesMax = 63;
constexpr size_t kKeyBytesMax = 1024;

bool IsBucketName(absl::string_view bucket) {
  return bucket.size() >= kBucketBytesMin && bucket.size() <= kBucketBytesMax &&
         absl::ascii_isalnum(bucket.front()) &&
         absl::ascii_isalnum(bucket.back()) &&
         std::all_of(bucket.begin(), bucket.end(), [](unsigned char c) {
           return absl::ascii_isdigit(c) || absl::ascii_islower(c) ||
                  c == '-' || c == '.' || c == '_';
         });
}

// Returns what is wrong with the key; empty if nothing is.
absl::string_view KeyProblem(absl::string_view key) {
  if (key.size() > kKeyBytesMax) return "its key has more than 1024 bytes";
  if (std::any_of(key.begin(), key.end(),
                  [](unsigned char c) { return absl::ascii_iscntrl(c); })) {
    return "its key has a control character";
  }
  absl::ConsumeSuffix(&key, "/");
  if (key.empty()) return "";
  for (const absl::string_view part : absl::StrSplit(key, '/')) {
    if (part.empty()) return "its key has an empty component (\"//\")";
    if (part == "." || part == "..") {
      return "its key has a component \".\" or \"..\"";
    }
  }
  return "";
}

}  // namespace

std::string ObjectUrl::ToString() const {
  return absl::StrCat(scheme, "://", bucket, key.empty() ? "" : "/", key);
}

bool IsObjectUrl(absl::string_view path) {
  return absl::StartsWith(path, "s3://") || absl::StartsWith(path, "gs://");
}

absl::StatusOr<ObjectUrl> ParseObjectUrl(absl::string_view url) {
  const auto refuse = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat(
        absl::CHexEscape(url.substr(0, 2 * kKeyBytesMax)),
        " is not the URL of an object, such as s3://bucket/folder/name: ",
        problem));
  };
  if (!IsObjectUrl(url)) return refuse("expected s3:// or gs:// in front");
  ObjectUrl parsed;
  parsed.scheme = std::string(url.substr(0, 2));
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(url.substr(5), absl::MaxSplits('/', 1));
  if (!IsBucketName(parts.first)) {
    return refuse(
        "a bucket has 3 to 63 lower-case letters, digits, dots and hyphens");
  }
  if (const auto problem = KeyProblem(parts.second); !problem.empty()) {
    return refuse(problem);
  }
  // "s3://bucket/" is the bucket.
  parsed.bucket = std::string(parts.first);
  parsed.key = std::string(parts.second);
  return parsed;
}

bool IsBelowUrl(absl::string_view url, absl::string_view root) {
  if (!ParseObjectUrl(url).ok() || !ParseObjectUrl(root).ok()) return false;
  absl::ConsumeSuffix(&root, "/");
  return absl::ConsumePrefix(&url, root) && (url.empty() || url.front() == '/');
}

}  // namespace muster
