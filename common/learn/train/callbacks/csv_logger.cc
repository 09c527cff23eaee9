#include "common/learn/train/callbacks/csv_logger.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/io/records/object_sink.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/object_url.h"
#include "common/learn/nn/config_visitor.h"
#include "common/learn/strategy/strategy.h"
#include "common/learn/train/base/log_lists.h"
#include "common/learn/train/callbacks/message.h"
#include "common/learn/train/model.h"
#include "common/learn/train/output_folders.h"

namespace muster {
namespace {

constexpr char kCsvLoggerName[] = "CSVLogger";
constexpr int64_t kObjectBytesMax = int64_t{64} << 20;

// Quotes text that would be parsed as several cells.
std::string Cell(absl::string_view text, absl::string_view separator) {
  const bool is_plain = !absl::StrContains(text, separator) &&
                        text.find_first_of("\"\r\n") == absl::string_view::npos;
  if (is_plain) return std::string(text);
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// 0.5, or of a list [0.5, 0.75].
std::string CellOf(const LoggedMetric& metric) {
  if (!metric.is_list) return ShortestText(metric.values.front());
  return absl::StrCat("[",
                      absl::StrJoin(metric.values, ", ",
                                    [](std::string* out, double value) {
                                      out->append(ShortestText(value));
                                    }),
                      "]");
}

// The columns, derived from the logs of the first epoch.
std::vector<std::string> ColumnsOf(const Logs& logs) {
  std::vector<std::string> names;
  bool has_validation = false;
  const std::vector<LoggedMetric> metrics = MetricsOf(logs);
  for (const LoggedMetric& metric : metrics) {
    names.push_back(metric.name);
    has_validation |= absl::StartsWith(metric.name, "val_");
  }
  if (has_validation) return names;
  for (const LoggedMetric& metric : metrics) {
    names.push_back(absl::StrCat("val_", metric.name));
  }
  return names;
}

bool IsRegular(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// 0 of what is no regular file: /dev/stdout, for example.
int64_t SizeOf(const std::string& path) {
  std::error_code error;
  const uintmax_t size =
      IsRegular(path) ? std::filesystem::file_size(path, error) : 0;
  return error ? 0 : static_cast<int64_t>(size);
}

}  // namespace

void CsvLoggerOptions::VisitConfig(ConfigVisitor& visitor) {
  visitor.Visit("filename", filename);
  visitor.Visit("separator", separator);
  visitor.Visit("append", append);
}

CsvLogger::CsvLogger(CsvLoggerOptions options) : options_(std::move(options)) {}

absl::Status CsvLogger::CheckOptions(const CsvLoggerOptions& options) {
  if (options.filename.empty()) {
    return absl::InvalidArgumentError("CSVLogger: filename is empty");
  }
  if (options.separator.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("CSVLogger: separator must be one character, got \"",
                     options.separator, "\""));
  }
  return absl::OkStatus();
}

absl::Status CsvLogger::OnTrainBegin(Model& model) {
  RETURN_IF_ERROR(CheckOptions(options_));
  names_.clear();
  last_row_.clear();
  file_ = nullptr;
  is_logging_ = false;
  if (!model.strategy()->is_chief()) return absl::OkStatus();
  const absl::Status opened = Open();
  is_logging_ = opened.ok();
  if (is_logging_) return absl::OkStatus();
  return absl::Status(opened.code(),
                      absl::StrCat(kCsvLoggerName, ": ", opened.message()));
}

bool CsvLogger::is_object() const { return IsObjectUrl(options_.filename); }

absl::Status CsvLogger::Open() {
  kept_content_.clear();
  has_rest_ = true;
  if (is_object()) return OpenObject();
  const std::filesystem::path path(options_.filename);
  std::error_code ignored;
  if (path.has_parent_path()) {
    std::filesystem::create_directories(path.parent_path(), ignored);
  }
  ASSIGN_OR_RETURN(file_, CreateAppendingFileSink(options_.filename));
  kept_bytes_ = options_.append ? SizeOf(options_.filename) : 0;
  return absl::OkStatus();
}

absl::Status CsvLogger::OpenObject() {
  ObjectSinkOptions options;
  if (options_.append) {
    absl::StatusOr<std::string> content =
        ReadFile(options.disk, options_.filename, kObjectBytesMax);
    if (content.ok()) {
      kept_content_ = *std::move(content);
    } else if (!absl::IsNotFound(content.status())) {
      return content.status();
    }
  }
  kept_bytes_ = static_cast<int64_t>(kept_content_.size());
  return absl::OkStatus();
}

absl::Status CsvLogger::DropRest() {
  has_rest_ = false;
  if (is_object()) {
    file_ = CreateObjectSink(options_.filename, {.content = kept_content_});
    return absl::OkStatus();
  }
  std::error_code error;
  if (SizeOf(options_.filename) <= kept_bytes_) return absl::OkStatus();
  std::filesystem::resize_file(options_.filename, kept_bytes_, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(
      error.value(), absl::StrCat("cannot truncate ", options_.filename));
}

absl::Status CsvLogger::OnChiefChange(Model& model) {
  if (!model.strategy()->is_chief()) {
    if (file_ != nullptr) Note(file_->Close());
    file_ = nullptr;
    is_logging_ = false;
    return absl::OkStatus();
  }
  Disk* const disk = Disk::Real();
  std::string content;
  if (is_object() || IsRegular(options_.filename)) {
    absl::StatusOr<std::string> read =
        ReadFile(disk, options_.filename, kObjectBytesMax);
    if (!read.ok() && !absl::IsNotFound(read.status())) return read.status();
    if (read.ok()) content = *std::move(read);
  }
  RETURN_IF_ERROR(Open());
  is_logging_ = true;
  // The former chief may have written a part of a row, or none of the last one.
  content.resize(content.rfind('\n') + 1);
  kept_bytes_ = static_cast<int64_t>(content.size());
  const bool lacks_last_row = !absl::EndsWith(content, last_row_);
  if (is_object()) kept_content_ = std::move(content);
  if (lacks_last_row) {
    Write(kept_bytes_ == 0 ? absl::StrCat(HeaderRow(), last_row_) : last_row_);
  }
  return absl::OkStatus();
}

std::string CsvLogger::HeaderRow() const {
  std::vector<std::string> header = {"epoch"};
  header.insert(header.end(), names_.begin(), names_.end());
  return Row(header);
}

void CsvLogger::Write(const std::string& rows) {
  absl::Status status = has_rest_ ? DropRest() : absl::OkStatus();
  if (status.ok()) status = file_->Append(rows);
  if (status.ok()) status = file_->Flush();
  kept_bytes_ += static_cast<int64_t>(rows.size());
  if (is_object()) kept_content_ += rows;
  Note(status);
}

absl::Status CsvLogger::OnEpochEnd(Model&, int epoch, Logs& logs) {
  std::string rows;
  if (names_.empty()) {
    names_ = ColumnsOf(logs);
    if (kept_bytes_ == 0) rows = HeaderRow();
  }
  std::vector<std::string> row = {absl::StrCat(epoch)};
  const std::vector<LoggedMetric> metrics = MetricsOf(logs);
  for (const std::string& name : names_) {
    const auto found = std::find_if(
        metrics.begin(), metrics.end(),
        [&](const LoggedMetric& metric) { return metric.name == name; });
    row.push_back(found == metrics.end() ? "NA" : CellOf(*found));
  }
  // For a worker that becomes the chief.
  last_row_ = Row(row);
  if (is_logging_) Write(absl::StrCat(rows, last_row_));
  return absl::OkStatus();
}

// The number of bytes, the columns, and of an object all of it, because what is
// uploaded lags behind.
CallbackState CsvLogger::SaveState() const {
  if (!is_logging_) return {};
  const auto escape = [](std::string* out, const std::string& name) {
    out->append(absl::CEscape(name));
  };
  return {.text = absl::StrCat(kept_bytes_, "\n",
                               absl::StrJoin(names_, "\t", escape), "\n",
                               kept_content_)};
}

absl::Status CsvLogger::RestoreState(Model& model, const CallbackState& state) {
  const std::vector<std::string> parts =
      absl::StrSplit(state.text, absl::MaxSplits('\n', 2));
  int64_t kept_bytes = 0;
  std::vector<std::string> names;
  bool is_right = parts.size() == 3 && absl::SimpleAtoi(parts[0], &kept_bytes);
  if (is_right) {
    for (const absl::string_view name :
         absl::StrSplit(parts[1], '\t', absl::SkipEmpty())) {
      is_right &= absl::CUnescape(name, &names.emplace_back());
    }
  }
  if (!is_right) {
    return absl::InvalidArgumentError(absl::StrCat(
        kCsvLoggerName, ": the checkpoint contains the invalid state \"",
        absl::CEscape(state.text.substr(0, 100)), "\""));
  }
  if (!model.strategy()->is_chief()) return absl::OkStatus();
  names_ = std::move(names);
  kept_bytes_ = kept_bytes;
  kept_content_ = parts[2];
  has_rest_ = true;
  if (is_object() || !IsRegular(options_.filename)) return absl::OkStatus();
  if (const int64_t size = SizeOf(options_.filename); size < kept_bytes_) {
    LOG(WARNING) << kCsvLoggerName << ": " << options_.filename << " has "
                 << size << " of the " << kept_bytes_
                 << " bytes that it had when training was saved; lines are "
                    "missing";
    kept_bytes_ = size;
    if (size == 0) names_.clear();  // For another header.
  }
  return absl::OkStatus();
}

absl::Status CsvLogger::OnTrainEnd(Model&, const Logs&) {
  if (file_ != nullptr) Note(file_->Close());
  file_ = nullptr;
  is_logging_ = false;
  return absl::OkStatus();
}

void CsvLogger::Note(const absl::Status& status) {
  if (status.ok()) return;
  LOG(WARNING) << kCsvLoggerName << ": " << status.message()
               << "; training continues without it";
  file_ = nullptr;
  is_logging_ = false;
}

std::vector<std::string> CsvLogger::output_folders() const {
  // An existing file needs no room in its folder: /dev/stdout, for example.
  std::error_code ignored;
  const bool is_there =
      std::filesystem::exists(options_.filename, ignored) &&
      !std::filesystem::is_directory(options_.filename, ignored);
  if (is_there) return {};
  return {FolderOfFile(options_.filename)};
}

std::string CsvLogger::Row(const std::vector<std::string>& cells) const {
  return absl::StrCat(
      absl::StrJoin(cells, options_.separator,
                    [this](std::string* out, const std::string& cell) {
                      out->append(Cell(cell, options_.separator));
                    }),
      "\n");
}

}  // namespace muster
