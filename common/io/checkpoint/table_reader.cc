#include "common/io/checkpoint/table_reader.h"

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/core/base/hashes.h"
#include "common/core/base/status_macros.h"
#include "common/io/checkpoint/coding.h"
#include "common/io/checkpoint/table_format.h"

namespace muster {
namespace {

using EntryVisitor =
    absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)>;

// The position of a block, without its trailer.
struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;

  uint64_t end() const { return offset + size + kTableTrailerBytes; }
};

class Table {
 public:
  Table(absl::string_view path, ReadableFile* file)
      : path_(path), file_(file), size_bytes_(file->size_bytes()) {}

  absl::Status Read(EntryVisitor visit);

 private:
  absl::Status Damage(uint64_t offset, absl::string_view what) const {
    return absl::DataLossError(
        absl::StrCat(path_, " is damaged at offset ", offset, ": ", what));
  }

  bool ConsumeHandle(absl::string_view* data, BlockHandle* handle) const {
    return ConsumeVarint(data, &handle->offset) &&
           ConsumeVarint(data, &handle->size) &&
           handle->offset <= size_bytes_ && handle->size <= size_bytes_ &&
           handle->end() <= size_bytes_;
  }

  absl::Status ReadFooter(BlockHandle* metaindex, BlockHandle* index);
  absl::StatusOr<std::string> ReadBlock(const BlockHandle& handle);
  absl::Status VisitBlock(const BlockHandle& handle, EntryVisitor visit);
  absl::Status VisitEntries(const BlockHandle& handle, absl::string_view data,
                            EntryVisitor visit);

  const absl::string_view path_;
  ReadableFile* const file_;
  const uint64_t size_bytes_;
};

absl::Status Table::ReadFooter(BlockHandle* metaindex, BlockHandle* index) {
  if (size_bytes_ < kTableFooterBytes) {
    return Damage(size_bytes_, "it ends before its footer");
  }
  const uint64_t begin = size_bytes_ - kTableFooterBytes;
  char bytes[kTableFooterBytes];
  RETURN_IF_ERROR(file_->ReadAt(
      begin, absl::MakeSpan(reinterpret_cast<uint8_t*>(bytes), sizeof(bytes))));
  constexpr size_t kMagicAt = kTableFooterBytes - sizeof(kTableMagic);
  if (LoadFixed<uint64_t>(bytes + kMagicAt) != kTableMagic) {
    return Damage(begin + kMagicAt,
                  "it does not end with the magic number of a table");
  }
  absl::string_view handles(bytes, kMagicAt);
  if (!ConsumeHandle(&handles, metaindex) || !ConsumeHandle(&handles, index) ||
      metaindex->end() != index->offset || index->end() != begin) {
    return Damage(begin, "its footer has invalid positions");
  }
  if (handles.find_first_not_of('\0') != absl::string_view::npos) {
    return Damage(begin, "its footer is not padded with zeros");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Table::ReadBlock(const BlockHandle& handle) {
  std::string block(handle.size + kTableTrailerBytes, '\0');
  RETURN_IF_ERROR(file_->ReadAt(
      handle.offset,
      absl::MakeSpan(reinterpret_cast<uint8_t*>(block.data()), block.size())));
  const uint32_t stored = LoadFixed<uint32_t>(&block[handle.size + 1]);
  block.resize(handle.size + 1);
  if (MaskCrc32c(Crc32c(block)) != stored) {
    return Damage(handle.offset, absl::StrCat("the checksum of a block of ",
                                              handle.size, " bytes is wrong"));
  }
  if (block.back() != kTableUncompressed) {
    return absl::UnimplementedError(
        absl::StrCat(path_, " has a compressed block at offset ", handle.offset,
                     "; write it without compression"));
  }
  block.pop_back();
  return block;
}

absl::Status Table::VisitBlock(const BlockHandle& handle, EntryVisitor visit) {
  ASSIGN_OR_RETURN(const std::string block, ReadBlock(handle));
  if (block.size() < sizeof(uint32_t)) {
    return Damage(handle.offset, "a block is too short");
  }
  const uint64_t restart_count =
      LoadFixed<uint32_t>(&block[block.size() - sizeof(uint32_t)]);
  const uint64_t tail_bytes = (restart_count + 1) * sizeof(uint32_t);
  if (tail_bytes > block.size()) {
    return Damage(handle.offset, "a block is shorter than its restart points");
  }
  return VisitEntries(
      handle, absl::string_view(block).substr(0, block.size() - tail_bytes),
      visit);
}

absl::Status Table::VisitEntries(const BlockHandle& handle,
                                 absl::string_view data, EntryVisitor visit) {
  const char* const begin = data.data();
  bool is_first = true;
  std::string key;
  std::string previous;
  while (!data.empty()) {
    const uint64_t at = handle.offset + (data.data() - begin);
    uint64_t shared, unshared, value_size;
    if (!ConsumeVarint(&data, &shared) || !ConsumeVarint(&data, &unshared) ||
        !ConsumeVarint(&data, &value_size) || shared > key.size() ||
        unshared > data.size() || value_size > data.size() - unshared) {
      return Damage(at, "an entry does not fit in its block");
    }
    previous = key;
    key.resize(shared);
    key.append(data.data(), unshared);
    if (!is_first && key <= previous) {
      return Damage(at, "the keys do not ascend");
    }
    is_first = false;
    data.remove_prefix(unshared);
    RETURN_IF_ERROR(visit(key, data.substr(0, value_size)));
    data.remove_prefix(value_size);
  }
  return absl::OkStatus();
}

absl::Status Table::Read(EntryVisitor visit) {
  BlockHandle metaindex, index;
  RETURN_IF_ERROR(ReadFooter(&metaindex, &index));
  RETURN_IF_ERROR(
      VisitBlock(metaindex, [&](absl::string_view, absl::string_view) {
        return absl::UnimplementedError(
            absl::StrCat(path_, " has a filter; write it without filters"));
      }));
  uint64_t data_end = 0;
  std::string last_key;
  bool is_first = true;
  const auto visit_entry = [&](absl::string_view key, absl::string_view value) {
    if (!is_first && key <= last_key) {
      return Damage(data_end, "the keys of two blocks do not ascend");
    }
    is_first = false;
    last_key.assign(key.data(), key.size());
    return visit(key, value);
  };
  RETURN_IF_ERROR(
      VisitBlock(index, [&](absl::string_view bound, absl::string_view value) {
        BlockHandle block;
        if (!ConsumeHandle(&value, &block) || !value.empty() ||
            block.offset != data_end) {
          return Damage(index.offset, "the index has a wrong position");
        }
        RETURN_IF_ERROR(VisitBlock(block, visit_entry));
        data_end = block.end();
        return last_key <= bound
                   ? absl::OkStatus()
                   : Damage(index.offset, "the index has a wrong key");
      }));
  return data_end == metaindex.offset
             ? absl::OkStatus()
             : Damage(data_end, "the index omits blocks");
}

}  // namespace

absl::Status ReadTable(Disk* disk, absl::string_view path, EntryVisitor visit) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, disk->Open(path));
  return Table(path, file.get()).Read(visit);
}

}  // namespace muster
