#include "common/dataset/files/sources.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/dataset/files/csv.h"
#include "common/dataset/files/file_table.h"
#include "common/dataset/files/idx.h"
#include "common/dataset/files/input_file.h"
#include "common/dataset/files/synthetic.h"

namespace muster {
namespace {

// `directory`/`name`, plain or with ".gz"; the plain name if neither exists,
// for the error message.
std::string FindFile(absl::string_view directory, absl::string_view name) {
  const std::string plain = absl::StrCat(directory, "/", name);
  const std::string compressed = absl::StrCat(plain, ".gz");
  return !InputFile::Open(plain).ok() && InputFile::Open(compressed).ok()
             ? compressed
             : plain;
}

}  // namespace

Dataset Idx(absl::string_view path, const IdxOptions& options) {
  return Dataset(MakeIdx({std::string(path)}, {}, options));
}

Dataset IdxFiles(const std::vector<std::string>& patterns,
                 const IdxOptions& options) {
  auto paths = ExpandFilePatterns(patterns);
  return Dataset(paths.ok() ? MakeIdx(*std::move(paths), {}, options)
                            : paths.status());
}

Dataset IdxPair(absl::string_view images_path, absl::string_view labels_path,
                const IdxOptions& options) {
  return Dataset(
      MakeIdx({std::string(images_path)}, {std::string(labels_path)}, options));
}

Dataset IdxPairFiles(const std::vector<std::string>& image_patterns,
                     const std::vector<std::string>& label_patterns,
                     const IdxOptions& options) {
  auto images = ExpandFilePatterns(image_patterns);
  if (!images.ok()) return Dataset(images.status());
  auto labels = ExpandFilePatterns(label_patterns);
  if (!labels.ok()) return Dataset(labels.status());
  return Dataset(MakeIdx(*std::move(images), *std::move(labels), options));
}

Dataset Mnist(absl::string_view directory, DatasetSplit split) {
  const absl::string_view prefix =
      split == DatasetSplit::kTrain ? "train" : "t10k";
  return IdxPair(
      FindFile(directory, absl::StrCat(prefix, "-images-idx3-ubyte")),
      FindFile(directory, absl::StrCat(prefix, "-labels-idx1-ubyte")),
      {.scale = 1.0 / 255});
}

Dataset Csv(absl::string_view path, const CsvOptions& options) {
  return Dataset(MakeCsv({std::string(path)}, options));
}

Dataset CsvFiles(const std::vector<std::string>& patterns,
                 const CsvOptions& options) {
  auto paths = ExpandFilePatterns(patterns);
  return Dataset(paths.ok() ? MakeCsv(*std::move(paths), options)
                            : paths.status());
}

Dataset Synthetic(const SyntheticOptions& options) {
  return Dataset(MakeSynthetic(options));
}

}  // namespace muster
