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

// Datasets whose files are read as elements are drawn. Files are given by
// patterns, as in sources.h; each is opened when its turn comes, where the
// pipeline runs. Errors name the file and the place in it.

struct TfRecordOptions {
  RecordCompression compression = RecordCompression::kNone;
  // How the records of several files follow each other: the default is file
  // after file.
  InterleaveOptions order = {};
  // A record with damaged data is skipped alone; behind a damaged length or a
  // torn tail the rest of the file is, as one.
  CorruptInput corrupt_input = CorruptInput::kFail;
};

// The records of TFRecord files: string[].
// Of its elements, as RecordReader.
//
// Equivalent to: tf.data.TFRecordDataset.
Dataset TfRecordDataset(const std::vector<std::string>& patterns,
                        const TfRecordOptions& options = {});

struct ParseExampleOptions {
  // A record that is no example, or lacks a feature, counts as corrupt.
  CorruptInput corrupt_input = CorruptInput::kFail;
  int thread_count = 1;
};

// Parses string[] elements, each a serialized tf.train.Example, into a
// component for each of `features`.
//   kInvalidArgument  no features, or as CheckFeatureSpec(); or elements are
//                     others
// Of its elements:
//   kDataLoss         a record is no Example
//   kInvalidArgument  as FeatureToTensor()
//
// Equivalent to: map(tf.io.parse_single_example).
Dataset ParseExample(const Dataset& dataset,
                     const std::vector<FeatureSpec>& features,
                     const ParseExampleOptions& options = {});

struct TextLineOptions {
  // Lines at the beginning of each file that are no elements.
  int64_t skip_line_count = 0;
  InterleaveOptions order = {};
};

// The lines of text files, gzip or not, without their ends, which are "\n" or
// "\r\n": string[].
//   kInvalidArgument    skip_line_count is negative
// Of its elements:
//   kResourceExhausted  a line is longer than kTextLineBytesMax
//   as InputFile
//
// Equivalent to: tf.data.TextLineDataset.
inline constexpr int64_t kTextLineBytesMax = int64_t{64} << 20;
Dataset TextLineDataset(const std::vector<std::string>& patterns,
                        const TextLineOptions& options = {});

struct NpyOptions {
  // Other than 0: values become float32, multiplied by this.
  double scale = 0;
  // What values become; kInvalid: what the file has, or what `scale` makes.
  DType dtype = DType::kInvalid;
  // The shape of one row. Unless it and `dtype` are given, the first file's
  // header is read while defining the dataset.
  std::optional<Shape> record_shape = std::nullopt;
  InterleaveOptions order = {};
};

// The rows of NumPy's .npy files, versions 1 to 3: one component. Files are
// read whole when the first iterator is made. Integers of 8 and 16 bits other
// than uint8 become int32, uint32 becomes int64. Objects, which would run code
// to be read, are refused.
//   kInvalidArgument  not .npy, or values of a kind that is not supported, or
//                     longer or shorter than its header says; names the file
//
// Equivalent to: tf.data.Dataset.from_tensor_slices(numpy.load(path)).
Dataset NpyDataset(const std::vector<std::string>& patterns,
                   const NpyOptions& options = {});

}  // namespace muster

#endif  // COMMON_DATASET_FILES_RECORD_FILES_H_
