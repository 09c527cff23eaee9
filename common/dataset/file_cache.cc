#include "common/dataset/file_cache.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "common/dataset/dataset.h"
#include "common/dataset/row_tables.h"
#include "common/io/records/byte_sink.h"
#include "common/io/records/record_reader.h"
#include "common/io/records/record_writer.h"
#include "common/io/storage/disk.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

constexpr uint32_t kVersion = 1;
constexpr size_t kWriteBytes = size_t{1} << 20;
// The first byte of a record.
constexpr char kElementTag = 'E';
constexpr char kEndTag = 'T';

// A fingerprint of the cached dataset: 0 if it cannot be serialized. The number
// of threads is not part of it.
uint64_t FingerprintOf(const DatasetNode& node) {
  proto::Dataset encoded;
  if (!node.Encode(&encoded).ok()) return 0;
  for (proto::DatasetStage& stage : *encoded.mutable_stages()) {
    if (stage.has_map()) stage.mutable_map()->clear_thread_count();
  }
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    encoded.SerializeToCodedStream(&coded);
  }
  const uint64_t fingerprint = FoldIn(kVersion, bytes);
  return fingerprint == 0 ? 1 : fingerprint;
}

template <typename T>
void AppendNumber(T value, std::string* record) {
  record->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// The components one after another: extents, then the values as in memory,
// which is little-endian; strings with their lengths.
void AppendTensor(const Tensor& tensor, std::string* record) {
  for (const int64_t extent : tensor.shape().dims()) {
    AppendNumber(extent, record);
  }
  if (tensor.dtype() != DType::kString) {
    record->append(reinterpret_cast<const char*>(tensor.raw_data()),
                   tensor.size_bytes());
    return;
  }
  for (const std::string& value : tensor.flat<std::string>()) {
    AppendNumber<uint64_t>(value.size(), record);
    record->append(value);
  }
}

template <typename T>
bool TakeNumber(absl::string_view* record, T* value) {
  if (record->size() < sizeof(T)) return false;
  std::memcpy(value, record->data(), sizeof(T));
  record->remove_prefix(sizeof(T));
  return true;
}

bool TakeValues(absl::string_view* record, Tensor* tensor) {
  if (tensor->dtype() != DType::kString) {
    if (record->size() < tensor->size_bytes()) return false;
    std::memcpy(tensor->mutable_raw_data(), record->data(),
                tensor->size_bytes());
    record->remove_prefix(tensor->size_bytes());
    return true;
  }
  for (std::string& value : tensor->mutable_flat<std::string>()) {
    uint64_t size_bytes;
    if (!TakeNumber(record, &size_bytes) || record->size() < size_bytes) {
      return false;
    }
    value.assign(record->data(), size_bytes);
    record->remove_prefix(size_bytes);
  }
  return true;
}

// Returns false if the record does not contain such a tensor.
bool TakeTensor(const TensorType& type, absl::string_view* record,
                Tensor* tensor) {
  std::vector<int64_t> dims(static_cast<size_t>(type.shape.rank()));
  for (int64_t& extent : dims) {
    if (!TakeNumber(record, &extent)) return false;
  }
  const absl::StatusOr<Shape> shape = Shape::Create(dims, false);
  if (!shape.ok() || !shape->IsCompatibleWith(type.shape)) return false;
  // Each value takes at least one byte, so memory is bounded by the record.
  if (static_cast<uint64_t>(shape->element_count()) > record->size()) {
    return false;
  }
  return PrepareTensor(type.dtype, *shape, tensor).ok() &&
         TakeValues(record, tensor);
}

// Writes the file while the elements of a pass are returned.
class CachingElements final : public ElementStream {
 public:
  CachingElements(std::unique_ptr<ElementStream> input, std::string path,
                  uint64_t fingerprint)
      : input_(std::move(input)),
        path_(std::move(path)),
        // Other passes and processes may be writing their own.
        partial_path_(
            absl::StrCat(path_, ".", absl::Hex(RandomIdentity()), ".partial")),
        writer_(CreateStringSink(&pending_)) {
    proto::CacheFileHeader header;
    header.set_version(kVersion);
    header.set_fingerprint(fingerprint);
    record_ = header.SerializeAsString();
  }
  ~CachingElements() override {
    if (file_ != nullptr) (void)Disk::Real()->Remove(partial_path_);
  }

  absl::StatusOr<bool> Next(Element* element) override {
    if (ended_) return false;
    if (file_ == nullptr) {
      ASSIGN_OR_RETURN(file_, Disk::Real()->Create(partial_path_));
      RETURN_IF_ERROR(WriteRecord());
    }
    ASSIGN_OR_RETURN(const bool more, input_->Next(element));
    if (!more) {
      ended_ = true;
      RETURN_IF_ERROR(Finish());
      return false;
    }
    record_.assign(1, kElementTag);
    for (const Tensor& tensor : *element) AppendTensor(tensor, &record_);
    RETURN_IF_ERROR(WriteRecord());
    ++element_count_;
    return true;
  }

 private:
  absl::Status WriteRecord() {
    RETURN_IF_ERROR(writer_.Write(record_));
    return pending_.size() < kWriteBytes ? absl::OkStatus() : WriteOut();
  }

  absl::Status WriteOut() {
    RETURN_IF_ERROR(file_->Append(absl::MakeConstSpan(
        reinterpret_cast<const uint8_t*>(pending_.data()), pending_.size())));
    pending_.clear();
    return absl::OkStatus();
  }

  absl::Status Finish() {
    record_.assign(1, kEndTag);
    AppendNumber(element_count_, &record_);
    RETURN_IF_ERROR(WriteRecord());
    RETURN_IF_ERROR(WriteOut());
    RETURN_IF_ERROR(file_->Sync());
    RETURN_IF_ERROR(Disk::Real()->Rename(partial_path_, path_));
    file_.reset();
    return Disk::Real()->SyncFolder(FolderOf(path_));
  }

  const std::unique_ptr<ElementStream> input_;
  const std::string path_;
  const std::string partial_path_;
  std::unique_ptr<WritableFile> file_;  // Open while it has its temporary name.
  std::string pending_;                 // Records not yet written.
  RecordWriter writer_;
  std::string record_;
  int64_t element_count_ = 0;
  bool ended_ = false;
};

// Reads the file.
class CachedElements final : public ElementStream {
 public:
  CachedElements(std::string path, std::unique_ptr<RecordReader> reader,
                 std::vector<TensorType> types)
      : path_(std::move(path)),
        reader_(std::move(reader)),
        types_(std::move(types)) {}

  //   as MakeFileCache()
  absl::Status ReadHeader(uint64_t fingerprint) {
    ASSIGN_OR_RETURN(const bool more, reader_->Next(&record_));
    proto::CacheFileHeader header;
    if (!more || !header.ParseFromString(record_)) {
      return Damage("it has no header");
    }
    if (header.version() == kVersion && header.fingerprint() == fingerprint) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        path_,
        ": was created from another dataset; delete it to have it created "
        "again, or name another file"));
  }

  absl::StatusOr<bool> Next(Element* element) override {
    if (ended_) return false;
    ASSIGN_OR_RETURN(const bool more, reader_->Next(&record_));
    if (!more || record_.empty()) return Damage("it ends early");
    absl::string_view rest = absl::string_view(record_).substr(1);
    if (record_[0] == kEndTag) {
      int64_t expected = -1;
      ended_ = TakeNumber(&rest, &expected) && expected == element_count_;
      if (ended_) return false;
      return Damage(absl::StrCat("it has ", element_count_,
                                 " elements, but its end declares ", expected));
    }
    element->resize(types_.size());
    bool is_whole = record_[0] == kElementTag;
    for (size_t c = 0; c < types_.size() && is_whole; ++c) {
      is_whole = TakeTensor(types_[c], &rest, &(*element)[c]);
    }
    if (!is_whole || !rest.empty()) {
      return Damage(absl::StrCat("element ", element_count_,
                                 " is not of the dataset's types"));
    }
    ++element_count_;
    return true;
  }

 private:
  absl::Status Damage(absl::string_view what) const {
    return absl::DataLossError(
        absl::StrCat(path_, ": ", what, ", before offset ", reader_->offset(),
                     "; delete the file to have it created again"));
  }

  const std::string path_;
  const std::unique_ptr<RecordReader> reader_;
  const std::vector<TensorType> types_;
  std::string record_;
  int64_t element_count_ = 0;
  bool ended_ = false;
};

class FileCacheNode final : public DatasetNode {
 public:
  FileCacheNode(NodePointer input, std::string filename)
      : DatasetNode(input->element_types(), input->cardinality(),
                    input->component_names()),
        input_(std::move(input)),
        filename_(std::move(filename)),
        fingerprint_(FingerprintOf(*input_)) {}

  absl::StatusOr<std::unique_ptr<ElementStream>> MakeElements(
      const PassContext& context) const override {
    std::string path = filename_;
    if (context.input.num_input_pipelines > 1) {
      absl::StrAppend(&path, "_", context.input.input_pipeline_id, "-of-",
                      context.input.num_input_pipelines);
    }
    absl::StatusOr<std::unique_ptr<RecordReader>> reader =
        RecordReader::Open(path);
    if (absl::IsNotFound(reader.status())) {
      ASSIGN_OR_RETURN(std::unique_ptr<ElementStream> elements,
                       input_->MakeElements(context));
      return std::make_unique<CachingElements>(std::move(elements),
                                               std::move(path), fingerprint_);
    }
    RETURN_IF_ERROR(reader.status());
    auto elements = std::make_unique<CachedElements>(
        std::move(path), *std::move(reader), element_types());
    RETURN_IF_ERROR(elements->ReadHeader(fingerprint_));
    return elements;
  }

  StageKind kind() const override { return StageKind::kElements; }
  std::vector<NodePointer> inputs() const override { return {input_}; }
  absl::StatusOr<NodePointer> WithInputs(
      std::vector<NodePointer> inputs) const override {
    return MakeFileCache(std::move(inputs[0]), filename_);
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    RETURN_IF_ERROR(input_->Encode(encoded));
    encoded->add_stages()->mutable_cache()->set_filename(filename_);
    return absl::OkStatus();
  }

 private:
  const NodePointer input_;
  const std::string filename_;
  const uint64_t fingerprint_;
};

}  // namespace

absl::StatusOr<NodePointer> MakeFileCache(NodePointer input,
                                          std::string filename) {
  if (filename.empty()) {
    return absl::InvalidArgumentError("Cache: the name of the file is empty");
  }
  if (input->cardinality() == Dataset::kInfinite) {
    return absl::InvalidArgumentError(
        "Cache: the dataset is infinite; put Cache() before Repeat()");
  }
  return std::make_shared<FileCacheNode>(std::move(input), std::move(filename));
}

}  // namespace muster
