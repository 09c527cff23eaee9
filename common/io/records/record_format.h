#ifndef COMMON_IO_RECORDS_RECORD_FORMAT_H_
#define COMMON_IO_RECORDS_RECORD_FORMAT_H_

#include <cstddef>

namespace muster {

// TFRecord: a sequence of records, each of which consists of
//   uint64 little-endian  length in bytes
//   uint32 little-endian  masked CRC-32C of the 8 bytes before
//   `length` bytes
//   uint32 little-endian  masked CRC-32C of them
// A compressed file is one zlib or gzip stream of such records.
// Source: https://www.tensorflow.org/tutorials/load_data/tfrecord
inline constexpr size_t kRecordHeaderBytes = 12;
inline constexpr size_t kRecordFooterBytes = 4;

enum class RecordCompression { kNone, kGzip, kZlib };

}  // namespace muster

#endif  // COMMON_IO_RECORDS_RECORD_FORMAT_H_
