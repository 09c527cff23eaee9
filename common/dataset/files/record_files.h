#ifndef COMMON_DATASET_FILES_RECORD_FILES_H_
#define COMMON_DATASET_FILES_RECORD_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/dataset/corrupt_input.h"
#include "common/dataset/dataset.h"
#include "common/io/records/example.h"
#include "common/io/records/record_format.h"

namespace muster {

// Datasets whose files are read while elements are drawn. Files are given by
// patterns, as in sources.h; each is opened when it is reached, where the
// pipeline runs. Errors give the file and the position in it.

struct TfRecordOptions {
  RecordCompression compression = RecordCompression::kNone;
  // How the records of several files are interleaved; by default file after
  // file.
  InterleaveOptions order = {};
  // A record with damaged data is skipped alone. After a damaged length or a
  // truncated end, the rest of the file is skipped and counted as one.
  CorruptInput corrupt_input = CorruptInput::kFail;
};

// The records of TFRecord files: string[]. Errors of its elements: as
// RecordReader.
//
// Equivalent to: tf.data.TFRecordDataset.
Dataset TfRecordDataset(const std::vector<std::string>& patterns,
                        const TfRecordOptions& options = {});

struct ParseExampleOptions {
  // A record that is not an example, or lacks a feature, counts as corrupt.
  CorruptInput corrupt_input = CorruptInput::kFail;
  int thread_count = 1;
};

// Parses string[] elements, each a serialized tf.train.Example, into one
// component for each of `features`, with its key as the name. A key that is
// given again, as the label of an autoencoder is, names the first one only.
//   kInvalidArgument  no features, or as CheckFeatureSpec(); or elements of
//                     another type
// Errors of its elements:
//   kDataLoss         a record is not an Example
//   kInvalidArgument  as FeatureToTensor()
//
// Equivalent to: map(tf.io.parse_single_example).
Dataset ParseExample(const Dataset& dataset,
                     const std::vector<FeatureSpec>& features,
                     const ParseExampleOptions& options = {});

struct TextLineOptions {
  // The number of lines to skip at the beginning of each file.
  int64_t skip_line_count = 0;
  InterleaveOptions order = {};
};

// The lines of text files, plain or gzip, without their ends, which are "\n" or
// "\r\n": string[].
//   kInvalidArgument    skip_line_count is negative
// Errors of its elements:
//   kResourceExhausted  a line is longer than kTextLineBytesMax
//   as InputFile
//
// Equivalent to: tf.data.TextLineDataset.
inline constexpr int64_t kTextLineBytesMax = int64_t{64} << 20;
Dataset TextLineDataset(const std::vector<std::string>& patterns,
                        const TextLineOptions& options = {});

struct NpyOptions {
  // Other than 0: converts values to float32 and multiplies them by this.
  double scale = 0;
  // The dtype of the values; kInvalid: that of the file, or as set by `scale`.
  DType dtype = DType::kInvalid;
  // The shape of one row. Unless it and `dtype` are given, the header of the
  // first file is read when the dataset is defined.
  std::optional<Shape> record_shape = std::nullopt;
  InterleaveOptions order = {};
};

// The rows of NumPy's .npy files, versions 1 to 3: one component. Files are
// read completely when the first iterator is created. Integers of 8 and 16 bits
// other than uint8 become int32, uint32 becomes int64. Strings and bytes
// (numpy's kinds U and S) become strings, in UTF-8 and without zeros at their
// ends. Object arrays, which would execute code when read, are rejected.
//   kInvalidArgument  not .npy, values of a kind that is not supported, or a
//                     length that contradicts the header; names the file
//
// Equivalent to: tf.data.Dataset.from_tensor_slices(numpy.load(path)).
Dataset NpyDataset(const std::vector<std::string>& patterns,
                   const NpyOptions& options = {});

}  // namespace muster

#endif  // COMMON_DATASET_FILES_RECORD_FILES_H_
