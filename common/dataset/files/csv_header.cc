#include "common/dataset/files/csv_header.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "common/core/base/status_macros.h"
#include "common/dataset/files/csv_reader.h"
#include "common/dataset/files/file_table.h"

namespace muster {

absl::StatusOr<std::vector<std::string>> ReadCsvHeader(
    absl::Span<const std::string> patterns, char delimiter) {
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   ExpandFilePatterns(patterns));
  ASSIGN_OR_RETURN(const auto reader,
                   CsvReader::Open(paths.front(), delimiter));
  std::vector<CsvField> header;
  RETURN_IF_ERROR(reader->ReadRecord(&header).status());
  std::vector<std::string> names;
  for (const CsvField& field : header) {
    names.emplace_back(absl::StripAsciiWhitespace(field.text));
  }
  return names;
}

}  // namespace muster
