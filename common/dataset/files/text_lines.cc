#include "common/dataset/files/text_lines.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/dataset/files/file_stream.h"
#include "common/dataset/files/file_table.h"
#include "common/dataset/files/input_file.h"
#include "common/dataset/row_tables.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

constexpr size_t kTextLineBufferBytes = size_t{64} << 10;
// Editors of other systems begin a file with it.
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

class TextLineStream final : public ElementStream {
 public:
  TextLineStream(std::unique_ptr<InputFile> file, int64_t skip_line_count)
      : file_(std::move(file)),
        skip_line_count_(skip_line_count),
        buffer_(kTextLineBufferBytes) {}

  absl::StatusOr<bool> Next(Element* element) override {
    element->resize(1);
    RETURN_IF_ERROR(PrepareTensor(DType::kString, Shape(), &(*element)[0]));
    std::string* const line = &(*element)[0].mutable_flat<std::string>()[0];
    do {
      ASSIGN_OR_RETURN(const bool more, ReadLine(line));
      if (!more) return false;
    } while (line_number_ <= skip_line_count_);
    return true;
  }

 private:
  absl::StatusOr<bool> ReadLine(std::string* line) {
    line->clear();
    bool found = false;
    while (true) {
      if (next_ == end_) {
        next_ = 0;
        ASSIGN_OR_RETURN(end_, file_->Read(buffer_.data(), buffer_.size()));
        if (end_ == 0) break;
      }
      found = true;
      const auto begin = buffer_.begin() + static_cast<int64_t>(next_);
      const auto end = buffer_.begin() + static_cast<int64_t>(end_);
      const auto line_end = std::find(begin, end, '\n');
      line->append(begin, line_end);
      next_ += static_cast<size_t>(line_end - begin);
      if (line->size() > static_cast<size_t>(kTextLineBytesMax)) {
        return absl::ResourceExhaustedError(
            absl::StrCat(file_->path(), ": line ", line_number_ + 1,
                         " is longer than ", kTextLineBytesMax, " bytes"));
      }
      if (line_end == end) continue;
      ++next_;
      break;
    }
    if (!found) return false;
    ++line_number_;
    if (line_number_ == 1 && absl::StartsWith(*line, kByteOrderMark)) {
      line->erase(0, kByteOrderMark.size());
    }
    if (!line->empty() && line->back() == '\r') line->pop_back();
    return true;
  }

  const std::unique_ptr<InputFile> file_;
  const int64_t skip_line_count_;
  std::vector<char> buffer_;
  size_t next_ = 0;
  size_t end_ = 0;
  int64_t line_number_ = 0;
};

class TextLinesNode final : public FileStreamNode {
 public:
  TextLinesNode(std::vector<std::string> paths, const TextLineOptions& options)
      : FileStreamNode(std::move(paths), options.order,
                       std::make_shared<std::atomic<int64_t>>(0)),
        options_(options) {}

  absl::StatusOr<NodePointer> WithFiles(
      absl::Span<const int> files) const override {
    return std::make_shared<TextLinesNode>(PathsOf(files), options_);
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    proto::DatasetStage::TextLines* const lines =
        encoded->add_stages()->mutable_text_lines();
    *lines->mutable_path() = {paths().begin(), paths().end()};
    lines->set_skip_line_count(options_.skip_line_count);
    lines->mutable_order()->set_cycle_length(order().cycle_length);
    lines->mutable_order()->set_block_length(order().block_length);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<std::unique_ptr<ElementStream>> OpenFile(
      const std::string& path) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, InputFile::Open(path));
    return std::make_unique<TextLineStream>(std::move(file),
                                            options_.skip_line_count);
  }

 private:
  const TextLineOptions options_;
};

}  // namespace

absl::StatusOr<NodePointer> MakeTextLines(std::vector<std::string> paths,
                                          const TextLineOptions& options) {
  RETURN_IF_ERROR(CheckFiles("TextLineDataset", paths, options.order));
  if (options.skip_line_count < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("TextLineDataset: skip_line_count is ",
                     options.skip_line_count, "; expected 0 or more"));
  }
  return std::make_shared<TextLinesNode>(std::move(paths), options);
}

}  // namespace muster
