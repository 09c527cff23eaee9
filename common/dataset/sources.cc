#include "common/dataset/sources.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/dataset/csv.h"
#include "common/dataset/idx.h"
#include "common/dataset/input_file.h"
#include "common/dataset/synthetic.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace muster {
namespace {

// `directory`/`name`, plain or with ".gz"; the plain name when there is neither,
// for the error.
std::string FindFile(absl::string_view directory, absl::string_view name) {
  const std::string plain = absl::StrCat(directory, "/", name);
  const std::string compressed = absl::StrCat(plain, ".gz");
  return !InputFile::Open(plain).ok() && InputFile::Open(compressed).ok()
             ? compressed
             : plain;
}

}  // namespace

Dataset Idx(absl::string_view path, const IdxOptions& options) {
  return Dataset(MakeIdx(path, options));
}

Dataset IdxPair(absl::string_view images_path, absl::string_view labels_path,
                const IdxOptions& options) {
  IdxOptions label_options = {.dtype = DType::kInt64};
  // No file is looked at here when the images' is not to be.
  if (options.record_shape.has_value()) label_options.record_shape = Shape();
  const Dataset images = Idx(images_path, options);
  const Dataset labels = Idx(labels_path, label_options);
  if (images.status().ok() && labels.status().ok() &&
      images.Cardinality() != labels.Cardinality() &&
      images.Cardinality() >= 0 && labels.Cardinality() >= 0) {
    return Dataset(absl::InvalidArgumentError(absl::StrCat(
        images_path, " has ", images.Cardinality(), " records and ",
        labels_path, " has ", labels.Cardinality(),
        "; expected a label for each image")));
  }
  return Dataset::Zip({images, labels});
}

Dataset Mnist(absl::string_view directory, Split split) {
  const absl::string_view prefix = split == Split::kTrain ? "train" : "t10k";
  return IdxPair(
      FindFile(directory, absl::StrCat(prefix, "-images-idx3-ubyte")),
      FindFile(directory, absl::StrCat(prefix, "-labels-idx1-ubyte")),
      {.scale = 1.0 / 255});
}

Dataset Csv(absl::string_view path, const CsvOptions& options) {
  return Dataset(MakeCsv(path, options));
}

Dataset Synthetic(const SyntheticOptions& options) {
  return Dataset(MakeSynthetic(options));
}

}  // namespace muster
