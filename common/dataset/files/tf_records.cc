#include "common/dataset/files/tf_records.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/dataset/corrupt_input.h"
#include "common/dataset/files/file_stream.h"
#include "common/dataset/files/file_table.h"
#include "common/dataset/row_tables.h"
#include "common/io/records/record_reader.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

class TfRecordStream final : public ElementStream {
 public:
  TfRecordStream(std::string path, std::unique_ptr<RecordReader> reader,
                 CorruptInput corrupt_input,
                 std::atomic<int64_t>* corrupt_input_count)
      : path_(std::move(path)),
        reader_(std::move(reader)),
        corrupt_input_(corrupt_input),
        skipped_(corrupt_input_count) {}

  absl::StatusOr<bool> Next(Element* element) override {
    element->resize(1);
    RETURN_IF_ERROR(PrepareTensor(DType::kString, Shape(), &(*element)[0]));
    std::string* const record = &(*element)[0].mutable_flat<std::string>()[0];
    while (!ended_) {
      absl::StatusOr<bool> more = reader_->Next(record);
      if (more.ok() && *more) return true;
      if (!more.ok() && (corrupt_input_ == CorruptInput::kFail ||
                         !IsCorruptInput(more.status()))) {
        return more;
      }
      if (!more.ok()) skipped_.Add(more.status());
      ended_ = more.ok() || !reader_->can_continue();
    }
    skipped_.Report(path_);
    return false;
  }

 private:
  const std::string path_;
  const std::unique_ptr<RecordReader> reader_;
  const CorruptInput corrupt_input_;
  SkippedInput skipped_;
  bool ended_ = false;
};

proto::DatasetStage::TfRecords::Compression EncodeCompression(
    RecordCompression compression) {
  switch (compression) {
    case RecordCompression::kGzip:
      return proto::DatasetStage::TfRecords::GZIP;
    case RecordCompression::kZlib:
      return proto::DatasetStage::TfRecords::ZLIB;
    case RecordCompression::kNone:
      break;
  }
  return proto::DatasetStage::TfRecords::PLAIN;
}

class TfRecordsNode final : public FileStreamNode {
 public:
  TfRecordsNode(std::vector<std::string> paths, const TfRecordOptions& options,
                Counter corrupt_input_count)
      : FileStreamNode(std::move(paths), options.order,
                       std::move(corrupt_input_count)),
        options_(options) {}

  absl::StatusOr<NodePointer> WithFiles(
      absl::Span<const int> files) const override {
    return std::make_shared<TfRecordsNode>(PathsOf(files), options_,
                                           corrupt_input_counter());
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    proto::DatasetStage::TfRecords* const records =
        encoded->add_stages()->mutable_tf_records();
    *records->mutable_path() = {paths().begin(), paths().end()};
    records->set_compression(EncodeCompression(options_.compression));
    records->mutable_order()->set_cycle_length(order().cycle_length);
    records->mutable_order()->set_block_length(order().block_length);
    records->set_skip_corrupt_input(options_.corrupt_input ==
                                    CorruptInput::kSkip);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<std::unique_ptr<ElementStream>> OpenFile(
      const std::string& path) const override {
    ASSIGN_OR_RETURN(
        std::unique_ptr<RecordReader> reader,
        RecordReader::Open(path, {.compression = options_.compression}));
    return std::make_unique<TfRecordStream>(path, std::move(reader),
                                            options_.corrupt_input,
                                            corrupt_input_counter().get());
  }

 private:
  const TfRecordOptions options_;
};

}  // namespace

absl::StatusOr<NodePointer> MakeTfRecords(std::vector<std::string> paths,
                                          const TfRecordOptions& options) {
  RETURN_IF_ERROR(CheckFiles("TfRecordDataset", paths, options.order));
  return std::make_shared<TfRecordsNode>(
      std::move(paths), options, std::make_shared<std::atomic<int64_t>>(0));
}

}  // namespace muster
