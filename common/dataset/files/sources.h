#ifndef COMMON_DATASET_FILES_SOURCES_H_
#define COMMON_DATASET_FILES_SOURCES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"

namespace muster {

// Datasets from files, and synthetic ones. A file is opened to find its types
// unless they are given, and is read when the first iterator is created. Its
// content is then shared by all iterators of the dataset and of its copies.
// Errors name the file, what was expected and what was found.

struct IdxOptions {
  // Other than 0: converts values to float32 and multiplies them by this.
  double scale = 0;
  // The dtype of the values; kInvalid: that of the file, or as set by `scale`.
  DType dtype = DType::kInvalid;
  // The shape of one record. Unless it and `dtype` are given, the file's header
  // is read when the dataset is defined.
  std::optional<Shape> record_shape = std::nullopt;
  // For pairs: the shape of one label. By default that of the file whose header
  // is read, or a scalar if none is.
  std::optional<Shape> label_shape = std::nullopt;
  // How the records of several files are interleaved; by default file after
  // file.
  InterleaveOptions order = {};
};

// The records of an IDX file (the format of MNIST), plain or gzip: one
// component.
Dataset Idx(absl::string_view path, const IdxOptions& options = {});
Dataset IdxFiles(const std::vector<std::string>& patterns,
                 const IdxOptions& options = {});

// {image, label} of two IDX files with equally many records; `options` apply to
// the images, labels are int64. With several files, each file of images has one
// of labels, in the same order.
Dataset IdxPair(absl::string_view images_path, absl::string_view labels_path,
                const IdxOptions& options = {});
Dataset IdxPairFiles(const std::vector<std::string>& image_patterns,
                     const std::vector<std::string>& label_patterns,
                     const IdxOptions& options = {});

enum class DatasetSplit { kTrain, kTest };

// The handwritten digits of MNIST, {float32[28,28] in [0, 1], int64[]}, from
// the four files of the original distribution in `directory`, plain or gzip.
Dataset Mnist(absl::string_view directory, DatasetSplit split);

struct CsvColumn {
  std::string name;
  DType dtype = DType::kFloat32;  // Any numeric dtype, bool or string.
  // The value of an empty field; without it an empty field is an error.
  std::optional<std::string> default_value = std::nullopt;
  // Cells are one of these names, and become its position; `dtype` is of
  // numbers.
  std::vector<std::string> class_names = {};
  // Cells are dates or times of ISO 8601, as 2024-02-29 or
  // 2024-02-29T13:45:10Z, and become days since 1970-01-01 UTC; `dtype` is of
  // floating-point numbers.
  bool is_date = false;
};

// The payload of the error for a field that is not of its column's type: the
// name of the column.
inline constexpr char kCsvNotANumberUrl[] = "type.muster/CsvNotANumber";

struct CsvOptions {
  // Selected by the names in the header, in this order; without a header, all
  // columns in file order. Empty: all columns of the header, as float32.
  std::vector<CsvColumn> columns = {};
  // The component that comes last. Empty: there is none.
  std::string label_column = {};
  // Its type, unless `columns` has one for it.
  DType label_dtype = DType::kInt64;
  bool has_header = true;
  char delimiter = ',';
  // Combines all features into one vector. They must have one dtype. Otherwise
  // each is a component with the name of its column; the label has no name.
  bool pack_features = true;
  // Other than 0: multiplies float features by this.
  double scale = 0;
  // How the records of several files are interleaved; by default file after
  // file.
  InterleaveOptions order = {};
};

// The records of a file of comma-separated values (RFC 4180): {features,
// label}.
Dataset Csv(absl::string_view path, const CsvOptions& options = {});
// Every file has the columns of the first one.
Dataset CsvFiles(const std::vector<std::string>& patterns,
                 const CsvOptions& options = {});

struct SyntheticOptions {
  int64_t example_count = 1000;
  int64_t feature_count = 20;
  // 0: regression; the label is float32[1], a linear function of the features.
  // Otherwise the label is an int64 below this, and each class is a cluster.
  int64_t class_count = 2;
  // The standard deviation within a cluster, whose centers are about sqrt(2 *
  // feature_count) apart; or that of the noise added to the linear function.
  double noise = 0.5;
  uint64_t seed = 0;
};

// {float32[feature_count], label}: the same examples on every machine,
// generated on access.
Dataset Synthetic(const SyntheticOptions& options = {});

}  // namespace muster

#endif  // COMMON_DATASET_FILES_SOURCES_H_
