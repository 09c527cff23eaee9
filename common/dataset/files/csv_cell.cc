#include "common/dataset/files/csv_cell.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/tensor/dtype.h"

namespace muster {

CsvCellReader::CsvCellReader(const CsvColumn& column) : column_(column) {
  for (const std::string& name : column.class_names) {
    classes_.try_emplace(name, static_cast<int64_t>(classes_.size()));
  }
}

std::optional<absl::string_view> CsvCellReader::NumberOf(
    absl::string_view cell, std::string* buffer) const {
  if (!classes_.empty()) {
    const auto found = classes_.find(absl::StripAsciiWhitespace(cell));
    if (found == classes_.end()) return std::nullopt;
    *buffer = absl::StrCat(found->second);
    return *buffer;
  }
  if (column_.is_date) {
    const std::optional<double> days = DaysOfDate(cell);
    if (!days.has_value()) return std::nullopt;
    *buffer = absl::StrFormat("%.17g", *days);
    return *buffer;
  }
  return cell;
}

std::string CsvCellReader::Expected() const {
  if (!classes_.empty()) {
    return absl::StrCat("one of its ", classes_.size(), " class names");
  }
  if (column_.is_date) {
    return "a date, as 2024-02-29 or 2024-02-29T13:45:10Z";
  }
  const absl::string_view kind = column_.dtype == DType::kBool ? "true or false"
                                 : IsInteger(column_.dtype)
                                     ? "a whole number in the range"
                                     : "a number";
  return absl::StrCat(kind, " (", DTypeName(column_.dtype), ")");
}

std::optional<double> DaysOfDate(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  for (const absl::string_view format :
       {"%Y-%m-%d", "%Y-%m-%d%ET%H:%M:%E*S%Ez", "%Y-%m-%d %H:%M:%E*S%Ez",
        "%Y-%m-%d%ET%H:%M:%E*S", "%Y-%m-%d %H:%M:%E*S", "%Y-%m-%d%ET%H:%M",
        "%Y-%m-%d %H:%M"}) {
    absl::Time time;
    if (absl::ParseTime(format, text, &time, nullptr)) {
      return absl::FDivDuration(time - absl::UnixEpoch(), absl::Hours(24));
    }
  }
  return std::nullopt;
}

}  // namespace muster
