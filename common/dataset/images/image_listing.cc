#include "common/dataset/images/image_listing.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

// Limits the depth of directories; links may form cycles.
constexpr int kDepthMax = 16;

constexpr std::array<absl::string_view, 5> kSuffixes = {".bmp", ".gif", ".jpeg",
                                                        ".jpg", ".png"};

struct DirectoryContent {
  std::vector<std::string> directories;  // Sorted, as files.
  std::vector<std::string> files;
};

absl::StatusOr<DirectoryContent> List(const std::string& path) {
  DIR* const directory = opendir(path.c_str());
  if (directory == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot list ", path));
  }
  const absl::Cleanup closer = [directory] { closedir(directory); };
  DirectoryContent content;
  errno = 0;
  while (const dirent* const entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name[0] == '.') continue;
    bool is_directory = entry->d_type == DT_DIR;
    if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) {
      struct stat status;
      is_directory =
          stat(absl::StrCat(path, "/", name).c_str(), &status) == 0 &&
          S_ISDIR(status.st_mode);
      errno = 0;
    }
    (is_directory ? content.directories : content.files).push_back(name);
  }
  if (errno != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot list ", path));
  }
  // By bytes, so that the order does not depend on the machine's locale.
  std::sort(content.directories.begin(), content.directories.end());
  std::sort(content.files.begin(), content.files.end());
  return content;
}

bool IsImageName(absl::string_view name) {
  return std::any_of(kSuffixes.begin(), kSuffixes.end(),
                     [name](absl::string_view suffix) {
                       return absl::EndsWithIgnoreCase(name, suffix);
                     });
}

// Appends the images below `path`, a path in `root`; sets `*other` to the name
// of a file that is not an image.
absl::Status AppendImages(const std::string& root, const std::string& path,
                          int depth, std::vector<std::string>* images,
                          std::string* other) {
  if (depth > kDepthMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(root, "/", path, ": directories are nested more than ",
                     kDepthMax, " deep"));
  }
  ASSIGN_OR_RETURN(const DirectoryContent content,
                   List(absl::StrCat(root, "/", path)));
  for (const std::string& file : content.files) {
    if (IsImageName(file)) {
      images->push_back(absl::StrCat(path, "/", file));
    } else if (other->empty()) {
      *other = absl::StrCat(path, "/", file);
    }
  }
  for (const std::string& directory : content.directories) {
    RETURN_IF_ERROR(AppendImages(root, absl::StrCat(path, "/", directory),
                                 depth + 1, images, other));
  }
  return absl::OkStatus();
}

absl::Status CheckClassNames(const std::string& directory,
                             const std::vector<std::string>& expected,
                             const std::vector<std::string>& found) {
  std::vector<std::string> sorted = expected;
  std::sort(sorted.begin(), sorted.end());
  if (sorted == found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      directory, ": its directories are ", absl::StrJoin(found, ", "),
      "; class_names are ", absl::StrJoin(expected, ", ")));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListClassNames(
    absl::string_view directory) {
  ASSIGN_OR_RETURN(DirectoryContent content, List(std::string(directory)));
  if (content.directories.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory, ": has no directories",
        content.files.empty()
            ? ""
            : absl::StrCat(", and ", content.files.size(), " files"),
        "; expected one for each class, with its images"));
  }
  return std::move(content.directories);
}

absl::StatusOr<ImageListing> ListImages(
    absl::string_view directory, const std::vector<std::string>& class_names) {
  ImageListing listing;
  listing.directory = std::string(directory);
  ASSIGN_OR_RETURN(listing.class_names, ListClassNames(directory));
  if (!class_names.empty()) {
    RETURN_IF_ERROR(
        CheckClassNames(listing.directory, class_names, listing.class_names));
    listing.class_names = class_names;
  }
  for (size_t label = 0; label < listing.class_names.size(); ++label) {
    const std::string& name = listing.class_names[label];
    const size_t begin = listing.files.size();
    std::string other;
    RETURN_IF_ERROR(
        AppendImages(listing.directory, name, 1, &listing.files, &other));
    if (listing.files.size() == begin) {
      return absl::InvalidArgumentError(
          absl::StrCat(directory, "/", name, ": this class has no images (",
                       absl::StrJoin(kSuffixes, ", "), ")",
                       other.empty() ? "" : absl::StrCat("; it has ", other)));
    }
    if (listing.files.size() > static_cast<size_t>(kImageCountMax)) {
      return absl::ResourceExhaustedError(
          absl::StrCat(directory, ": more than ", kImageCountMax, " images"));
    }
    std::sort(listing.files.begin() + begin, listing.files.end());
    listing.labels.resize(listing.files.size(), static_cast<int32_t>(label));
  }
  return listing;
}

}  // namespace muster
