#ifndef COMMON_DATASET_FILES_CSV_CELL_H_
#define COMMON_DATASET_FILES_CSV_CELL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/dataset/files/sources.h"

namespace muster {

// Reads the cells of one column that are words for numbers: names of classes,
// and dates. Immutable.
class CsvCellReader {
 public:
  // `column` outlives the reader.
  explicit CsvCellReader(const CsvColumn& column);

  // Returns the number for which the cell stands, written to `buffer`; the cell
  // itself, if the column has neither classes nor dates. Unset if it is no
  // class or date.
  std::optional<absl::string_view> NumberOf(absl::string_view cell,
                                            std::string* buffer) const;

  // What an error says that a cell is not: "a number (float32)".
  std::string Expected() const;

 private:
  const CsvColumn& column_;
  absl::flat_hash_map<absl::string_view, int64_t> classes_;
};

// Returns the days from 1970-01-01 UTC to a date or time of ISO 8601:
// "2024-02-29", "2024-02-29 13:45", "2024-02-29T13:45:10.5Z",
// "2024-02-29T13:45:10+02:00". Times without a zone are UTC. Unset for other
// text.
std::optional<double> DaysOfDate(absl::string_view text);

}  // namespace muster

#endif  // COMMON_DATASET_FILES_CSV_CELL_H_
