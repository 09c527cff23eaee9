#include "common/dataset/images/image_listing.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/storage/object_disk.h"
#include "common/io/storage/object_url.h"

namespace muster {
namespace {

// Limits the depth of directories; links may form cycles.
constexpr int kDepthMax = 16;

constexpr std::array<absl::string_view, 3> kSuffixes = {".jpeg", ".jpg",
                                                        ".png"};
// Images that Keras lists and that cannot be decoded here.
constexpr std::array<absl::string_view, 2> kUnreadableSuffixes = {".bmp",
                                                                  ".gif"};

struct DirectoryContent {
  std::vector<std::string> directories;  // Sorted, as files.
  std::vector<std::string> files;
};

// Returns the content of a directory, by its path below a root; "" is the root.
using Lister =
    std::function<absl::StatusOr<DirectoryContent>(const std::string& path)>;

std::string PathBelow(absl::string_view folder, absl::string_view name) {
  return folder.empty() ? std::string(name) : absl::StrCat(folder, "/", name);
}

absl::StatusOr<DirectoryContent> ListDirectory(const std::string& path) {
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

// The folders of objects, by their paths.
using ObjectFolders = std::map<std::string, DirectoryContent>;

// Adds an object, and the folders above it. Objects are added in the order of
// their paths, which keeps those of a folder together.
void AddObject(absl::string_view path, ObjectFolders* folders) {
  std::string folder;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string name(path.substr(0, slash));
    if (name[0] == '.') return;
    DirectoryContent& content = (*folders)[folder];
    if (slash == absl::string_view::npos) {
      content.files.push_back(name);
      return;
    }
    if (content.directories.empty() || content.directories.back() != name) {
      content.directories.push_back(name);
    }
    folder = PathBelow(folder, name);
    path.remove_prefix(slash + 1);
  }
}

// Lists all objects below `root` at once: a request for each folder would take
// longer.
absl::StatusOr<Lister> ListObjects(const std::string& root) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   ObjectDisk::Real()->ListTree(root, kImageCountMax));
  const auto folders = std::make_shared<ObjectFolders>();
  for (const std::string& path : paths) {
    RETURN_IF_ERROR(ParseObjectUrl(PathBelow(root, path)).status());
    AddObject(path, folders.get());
  }
  for (auto& [path, content] : *folders) {
    // "a-b/" is before "a/", and "a" before "a-b".
    std::sort(content.directories.begin(), content.directories.end());
  }
  return [folders](const std::string& path) -> DirectoryContent {
    const auto found = folders->find(path);
    return found == folders->end() ? DirectoryContent() : found->second;
  };
}

absl::StatusOr<Lister> ListerOf(const std::string& root) {
  if (IsObjectUrl(root)) return ListObjects(root);
  return [root](const std::string& path) {
    return ListDirectory(path.empty() ? root : PathBelow(root, path));
  };
}

template <typename Suffixes>
bool EndsWithAny(absl::string_view name, const Suffixes& suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [name](absl::string_view suffix) {
                       return absl::EndsWithIgnoreCase(name, suffix);
                     });
}

// Files that are not listed.
struct Unlisted {
  std::string other;             // One that is no image, in the current class.
  int64_t unreadable_count = 0;  // Of kUnreadableSuffixes, in all classes.
  std::string unreadable;        // One of them.
};

// Appends the images below `path`.
absl::Status AppendImages(const Lister& list, const std::string& path,
                          int depth, std::vector<std::string>* images,
                          Unlisted* unlisted) {
  if (depth > kDepthMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": directories are nested more than ", kDepthMax, " deep"));
  }
  ASSIGN_OR_RETURN(const DirectoryContent content, list(path));
  for (const std::string& file : content.files) {
    if (EndsWithAny(file, kSuffixes)) {
      images->push_back(PathBelow(path, file));
      continue;
    }
    if (unlisted->other.empty()) unlisted->other = PathBelow(path, file);
    if (!EndsWithAny(file, kUnreadableSuffixes)) continue;
    if (++unlisted->unreadable_count == 1) {
      unlisted->unreadable = PathBelow(path, file);
    }
  }
  for (const std::string& directory : content.directories) {
    RETURN_IF_ERROR(AppendImages(list, PathBelow(path, directory), depth + 1,
                                 images, unlisted));
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

absl::StatusOr<std::vector<std::string>> ClassNames(
    const std::string& directory, const Lister& list) {
  ASSIGN_OR_RETURN(DirectoryContent content, list(""));
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

// URLs of objects have one slash between components.
std::string RootOf(absl::string_view directory) {
  return std::string(IsObjectUrl(directory) ? absl::StripSuffix(directory, "/")
                                            : directory);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListClassNames(
    absl::string_view directory) {
  const std::string root = RootOf(directory);
  ASSIGN_OR_RETURN(const Lister list, ListerOf(root));
  return ClassNames(root, list);
}

absl::StatusOr<ImageListing> ListImages(
    absl::string_view directory, const std::vector<std::string>& class_names) {
  ImageListing listing;
  listing.directory = RootOf(directory);
  ASSIGN_OR_RETURN(const Lister list, ListerOf(listing.directory));
  ASSIGN_OR_RETURN(listing.class_names, ClassNames(listing.directory, list));
  if (!class_names.empty()) {
    RETURN_IF_ERROR(
        CheckClassNames(listing.directory, class_names, listing.class_names));
    listing.class_names = class_names;
  }
  Unlisted unlisted;
  for (size_t label = 0; label < listing.class_names.size(); ++label) {
    const std::string& name = listing.class_names[label];
    const size_t begin = listing.files.size();
    unlisted.other.clear();
    RETURN_IF_ERROR(AppendImages(list, name, 1, &listing.files, &unlisted));
    if (listing.files.size() == begin) {
      return absl::InvalidArgumentError(absl::StrCat(
          listing.directory, "/", name, ": this class has no images (",
          absl::StrJoin(kSuffixes, ", "), ")",
          unlisted.other.empty() ? ""
                                 : absl::StrCat("; it has ", unlisted.other)));
    }
    if (listing.files.size() > static_cast<size_t>(kImageCountMax)) {
      return absl::ResourceExhaustedError(
          absl::StrCat(directory, ": more than ", kImageCountMax, " images"));
    }
    std::sort(listing.files.begin() + begin, listing.files.end());
    listing.labels.resize(listing.files.size(), static_cast<int32_t>(label));
  }
  if (unlisted.unreadable_count > 0) {
    LOG(WARNING) << listing.directory << ": " << unlisted.unreadable_count
                 << " images are left out, because only JPEG and PNG can be "
                    "read; the first is "
                 << unlisted.unreadable;
  }
  return listing;
}

}  // namespace muster
