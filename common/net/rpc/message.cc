#include "common/net/rpc/message.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "proto/rpc.pb.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors travel as they lie in memory");

constexpr char kMagic[4] = {'M', 'S', 'T', '1'};
constexpr size_t kPrefixBytes = sizeof(kMagic) + sizeof(uint32_t);

// Copying a smaller tensor is cheaper than referring to it.
constexpr size_t kReferenceBytesMin = 8 << 10;

size_t PaddingAfter(size_t size_bytes) {
  return -size_bytes % kTensorAlignmentBytes;
}

size_t StringSizeBytes(const Tensor& tensor) {
  size_t size_bytes = 0;
  for (const std::string& element : tensor.flat<std::string>()) {
    size_bytes += sizeof(uint32_t) + element.size();
  }
  return size_bytes;
}

void AppendStrings(const Tensor& tensor, std::string* out) {
  for (const std::string& element : tensor.flat<std::string>()) {
    const uint32_t size = static_cast<uint32_t>(element.size());
    out->append(reinterpret_cast<const char*>(&size), sizeof(size));
    out->append(element);
  }
}

// Builds the slices of a message. Copies small parts into common slices, and
// refers to large ones.
class SliceWriter {
 public:
  size_t size_bytes() const { return flushed_bytes_ + pending_.size(); }
  std::string* pending() { return &pending_; }

  void AppendTensor(const Tensor& tensor) {
    pending_.append(PaddingAfter(size_bytes()), '\0');
    if (tensor.dtype() == DType::kString) {
      AppendStrings(tensor, &pending_);
    } else if (tensor.size_bytes() < kReferenceBytesMin) {
      pending_.append(reinterpret_cast<const char*>(tensor.raw_data()),
                      tensor.size_bytes());
    } else {
      Flush();
      flushed_bytes_ += tensor.size_bytes();
      slices_.push_back(
          {tensor.raw_data(), tensor.size_bytes(), tensor.buffer()});
    }
  }

  std::vector<MessageSlice> Finish() {
    Flush();
    return std::move(slices_);
  }

 private:
  void Flush() {
    if (pending_.empty()) return;
    auto owner = std::make_shared<const std::string>(std::move(pending_));
    pending_.clear();
    flushed_bytes_ += owner->size();
    const auto* data = reinterpret_cast<const uint8_t*>(owner->data());
    slices_.push_back({data, owner->size(), std::move(owner)});
  }

  std::string pending_;
  size_t flushed_bytes_ = 0;
  std::vector<MessageSlice> slices_;
};

// Reads the bytes of a message in order, however they are split into slices.
class SliceReader {
 public:
  explicit SliceReader(std::vector<MessageSlice> slices)
      : slices_(std::move(slices)) {
    for (const MessageSlice& slice : slices_) left_bytes_ += slice.size_bytes;
  }

  size_t left_bytes() const { return left_bytes_; }

  // Returns the next `size_bytes` bytes as pieces that share ownership of them.
  // At least `size_bytes` bytes must be left.
  absl::InlinedVector<MessageSlice, 1> Take(size_t size_bytes) {
    MUSTER_CHECK(size_bytes <= left_bytes_);
    left_bytes_ -= size_bytes;
    absl::InlinedVector<MessageSlice, 1> pieces;
    while (size_bytes > 0) {
      const MessageSlice& slice = slices_[index_];
      const size_t take = std::min(size_bytes, slice.size_bytes - offset_);
      if (take > 0) {
        pieces.push_back({slice.data + offset_, take, slice.owner});
      }
      size_bytes -= take;
      offset_ += take;
      if (offset_ == slice.size_bytes) {
        ++index_;
        offset_ = 0;
      }
    }
    return pieces;
  }

  void Read(void* out, size_t size_bytes) {
    auto* bytes = static_cast<uint8_t*>(out);
    for (const MessageSlice& piece : Take(size_bytes)) {
      std::memcpy(bytes, piece.data, piece.size_bytes);
      bytes += piece.size_bytes;
    }
  }

 private:
  const std::vector<MessageSlice> slices_;
  size_t index_ = 0;
  size_t offset_ = 0;
  size_t left_bytes_ = 0;
};

absl::Status Malformed(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("malformed message: ", why));
}

absl::Status ReadHead(SliceReader* reader, proto::MessageHead* head) {
  char magic[sizeof(kMagic)];
  uint32_t head_bytes = 0;
  if (reader->left_bytes() < kPrefixBytes) {
    return Malformed(absl::StrCat("it has ", reader->left_bytes(),
                                  " bytes, fewer than its prefix of ",
                                  kPrefixBytes));
  }
  reader->Read(magic, sizeof(magic));
  reader->Read(&head_bytes, sizeof(head_bytes));
  if (std::memcmp(magic, kMagic, sizeof(magic)) != 0) {
    return Malformed("it does not begin with \"MST1\"");
  }
  if (head_bytes > kMessageHeadBytesMax || head_bytes > reader->left_bytes()) {
    return Malformed(absl::StrCat(
        "its head claims ", head_bytes, " bytes; ", reader->left_bytes(),
        " were received, and at most ", kMessageHeadBytesMax, " are allowed"));
  }
  absl::InlinedVector<MessageSlice, 1> pieces = reader->Take(head_bytes);
  bool parsed;
  if (pieces.size() == 1) {
    parsed = head->ParseFromArray(pieces[0].data, static_cast<int>(head_bytes));
  } else {
    std::string joined;
    joined.reserve(head_bytes);
    for (const MessageSlice& piece : pieces) {
      joined.append(reinterpret_cast<const char*>(piece.data),
                    piece.size_bytes);
    }
    parsed = head->ParseFromString(joined);
  }
  return parsed ? absl::OkStatus() : Malformed("its head is not a MessageHead");
}

// Returns the type of the tensor at `index`. Its extents begin at `*dim_index`,
// which is advanced past them.
absl::StatusOr<TensorType> ReadType(const proto::MessageHead& head, int index,
                                    int* dim_index) {
  const int dtype = head.tensor_dtypes(index);
  const int rank = head.tensor_ranks(index);
  if (!IsKnownDType(dtype)) {
    return Malformed(absl::StrCat("tensor ", index, " has dtype ", dtype));
  }
  if (rank < 0 || rank > Shape::kRankMax ||
      rank > head.tensor_dims_size() - *dim_index) {
    return Malformed(absl::StrCat("tensor ", index, " has rank ", rank));
  }
  absl::StatusOr<Shape> shape = Shape::Create(
      absl::MakeConstSpan(head.tensor_dims().data() + *dim_index, rank),
      /*allow_unknown=*/false);
  if (!shape.ok()) return Malformed(shape.status().message());
  *dim_index += rank;
  return TensorType{static_cast<DType>(dtype), *std::move(shape)};
}

absl::StatusOr<Tensor> ParseStrings(const TensorType& type,
                                    absl::string_view bytes) {
  // Each element occupies at least the bytes of its length. So this check also
  // limits the allocation below by the number of bytes received.
  if (type.shape.element_count() >
      static_cast<int64_t>(bytes.size() / sizeof(uint32_t))) {
    return Malformed(absl::StrCat("a tensor ", type.ToString(), " has only ",
                                  bytes.size(), " bytes"));
  }
  Tensor tensor(type.dtype, type.shape);
  for (std::string& element : tensor.mutable_flat<std::string>()) {
    uint32_t size = 0;
    if (bytes.size() < sizeof(size)) return Malformed("a string is cut off");
    std::memcpy(&size, bytes.data(), sizeof(size));
    bytes.remove_prefix(sizeof(size));
    if (bytes.size() < size) return Malformed("a string is cut off");
    element.assign(bytes.data(), size);
    bytes.remove_prefix(size);
  }
  if (!bytes.empty()) {
    return Malformed(absl::StrCat(bytes.size(), " bytes follow the strings"));
  }
  return tensor;
}

bool IsAligned(const void* data, size_t alignment) {
  return reinterpret_cast<uintptr_t>(data) % alignment == 0;
}

}  // namespace

std::vector<MessageSlice> EncodeMessage(const proto::RequestIdentity& identity,
                                        const Message& message) {
  proto::MessageHead head;
  *head.mutable_identity() = identity;
  head.set_body(message.body);
  for (const Tensor& tensor : message.tensors) {
    MUSTER_CHECK(tensor.IsValid());
    head.add_tensor_dtypes(static_cast<int>(tensor.dtype()));
    head.add_tensor_ranks(tensor.shape().rank());
    for (int64_t dim : tensor.shape().dims()) head.add_tensor_dims(dim);
    if (tensor.dtype() == DType::kString) {
      head.add_string_sizes_bytes(StringSizeBytes(tensor));
    }
  }
  const size_t head_bytes = head.ByteSizeLong();
  size_t small_bytes = kPrefixBytes + head_bytes;
  for (const Tensor& tensor : message.tensors) {
    small_bytes += kTensorAlignmentBytes;
    if (tensor.size_bytes() < kReferenceBytesMin) {
      small_bytes += tensor.size_bytes();
    }
  }
  SliceWriter writer;
  std::string* out = writer.pending();
  out->reserve(small_bytes);
  const uint32_t head_bytes_32 = static_cast<uint32_t>(head_bytes);
  out->append(kMagic, sizeof(kMagic));
  out->append(reinterpret_cast<const char*>(&head_bytes_32),
              sizeof(head_bytes_32));
  head.AppendToString(out);
  for (const Tensor& tensor : message.tensors) writer.AppendTensor(tensor);
  return writer.Finish();
}

ReceivedTensor ReceivedTensor::FromTensor(const Tensor& tensor) {
  absl::InlinedVector<MessageSlice, 1> pieces;
  if (tensor.size_bytes() > 0) {
    pieces.push_back({tensor.raw_data(), tensor.size_bytes(), tensor.buffer()});
  }
  return ReceivedTensor(tensor.type(), std::move(pieces));
}

size_t ReceivedTensor::size_bytes() const {
  size_t size_bytes = 0;
  for (const MessageSlice& piece : pieces_) size_bytes += piece.size_bytes;
  return size_bytes;
}

void ReceivedTensor::CopyTo(void* destination) const {
  auto* bytes = static_cast<uint8_t*>(destination);
  for (const MessageSlice& piece : pieces_) {
    std::memcpy(bytes, piece.data, piece.size_bytes);
    bytes += piece.size_bytes;
  }
}

void ReceivedTensor::VisitRuns(
    int64_t begin, int64_t end, int64_t count_max, void* scratch,
    absl::FunctionRef<void(int64_t, const void*, int64_t)> visit) const {
  const size_t element_bytes = SizeOf(type_.dtype);
  size_t skip_bytes = begin * element_bytes;
  size_t index = 0;
  while (index < pieces_.size() && skip_bytes >= pieces_[index].size_bytes) {
    skip_bytes -= pieces_[index++].size_bytes;
  }
  size_t offset = skip_bytes;
  while (begin < end) {
    const int64_t count = std::min(count_max, end - begin);
    const size_t want_bytes = count * element_bytes;
    const MessageSlice* piece = &pieces_[index];
    if (piece->size_bytes - offset >= want_bytes &&
        IsAligned(piece->data + offset, element_bytes)) {
      visit(begin, piece->data + offset, count);
      offset += want_bytes;
    } else {
      size_t done_bytes = 0;
      while (done_bytes < want_bytes) {
        piece = &pieces_[index];
        const size_t take =
            std::min(want_bytes - done_bytes, piece->size_bytes - offset);
        std::memcpy(static_cast<uint8_t*>(scratch) + done_bytes,
                    piece->data + offset, take);
        done_bytes += take;
        offset += take;
        if (offset == piece->size_bytes) {
          ++index;
          offset = 0;
        }
      }
      visit(begin, scratch, count);
    }
    if (index < pieces_.size() && offset == pieces_[index].size_bytes) {
      ++index;
      offset = 0;
    }
    begin += count;
  }
}

absl::StatusOr<Tensor> ReceivedTensor::ToTensor() const {
  if (type_.dtype == DType::kString) {
    std::string bytes(size_bytes(), '\0');
    CopyTo(bytes.data());
    return ParseStrings(type_, bytes);
  }
  if (pieces_.size() == 1 && pieces_[0].size_bytes >= kReferenceBytesMin &&
      IsAligned(pieces_[0].data, SizeOf(type_.dtype))) {
    auto owner = pieces_[0].owner;
    return Tensor(type_.dtype, type_.shape,
                  Buffer::Wrap(const_cast<uint8_t*>(pieces_[0].data),
                               pieces_[0].size_bytes, [owner] {}));
  }
  Tensor tensor(type_.dtype, type_.shape);
  CopyTo(tensor.mutable_raw_data());
  return tensor;
}

ReceivedMessage::ReceivedMessage()
    : head_(std::make_unique<proto::MessageHead>()) {}

ReceivedMessage::~ReceivedMessage() = default;
ReceivedMessage::ReceivedMessage(ReceivedMessage&&) noexcept = default;
ReceivedMessage& ReceivedMessage::operator=(ReceivedMessage&&) noexcept =
    default;

const proto::RequestIdentity& ReceivedMessage::identity() const {
  return head_->identity();
}

absl::string_view ReceivedMessage::body() const { return head_->body(); }

absl::StatusOr<ReceivedMessage> ReceivedMessage::Parse(
    std::vector<MessageSlice> slices) {
  SliceReader reader(std::move(slices));
  const size_t total_bytes = reader.left_bytes();
  ReceivedMessage message;
  RETURN_IF_ERROR(ReadHead(&reader, message.head_.get()));
  const proto::MessageHead& head = *message.head_;
  if (head.tensor_dtypes_size() != head.tensor_ranks_size()) {
    return Malformed(absl::StrCat(head.tensor_dtypes_size(), " dtypes for ",
                                  head.tensor_ranks_size(), " ranks"));
  }
  message.tensors_.reserve(head.tensor_dtypes_size());
  int dim_index = 0;
  int string_index = 0;
  for (int i = 0; i < head.tensor_dtypes_size(); ++i) {
    ASSIGN_OR_RETURN(TensorType type, ReadType(head, i, &dim_index));
    const size_t padding_bytes =
        PaddingAfter(total_bytes - reader.left_bytes());
    const uint64_t element_count = type.shape.element_count();
    uint64_t size_bytes;
    if (type.dtype == DType::kString) {
      if (string_index == head.string_sizes_bytes_size()) {
        return Malformed(absl::StrCat("tensor ", i, " has no size"));
      }
      size_bytes = head.string_sizes_bytes(string_index++);
    } else {
      // Shape::Create() limits the number of elements to 63 bits, but does not
      // limit the number of bytes.
      if (element_count > std::numeric_limits<int64_t>::max() / 8) {
        return Malformed(absl::StrCat("tensor ", i, " is a ", type.ToString()));
      }
      size_bytes = element_count * SizeOf(type.dtype);
    }
    if (padding_bytes > reader.left_bytes() ||
        size_bytes > reader.left_bytes() - padding_bytes) {
      return Malformed(absl::StrCat("tensor ", i, ", a ", type.ToString(),
                                    ", needs ", size_bytes, " bytes, and ",
                                    reader.left_bytes(), " are left"));
    }
    reader.Take(padding_bytes);
    message.tensors_.emplace_back(std::move(type), reader.Take(size_bytes));
  }
  if (reader.left_bytes() != 0) {
    return Malformed(
        absl::StrCat(reader.left_bytes(), " bytes follow the last tensor"));
  }
  return message;
}

absl::StatusOr<std::vector<Tensor>> ReceivedMessage::ToTensors() const {
  std::vector<Tensor> tensors;
  tensors.reserve(tensors_.size());
  for (const ReceivedTensor& tensor : tensors_) {
    ASSIGN_OR_RETURN(tensors.emplace_back(), tensor.ToTensor());
  }
  return tensors;
}

}  // namespace muster
