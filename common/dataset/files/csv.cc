#include "common/dataset/files/csv.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/core/base/quoted_text.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor_codec.h"
#include "common/dataset/files/csv_cell.h"
#include "common/dataset/files/csv_reader.h"
#include "common/dataset/files/file_table.h"
#include "common/dataset/row_tables.h"
#include "proto/dataset.pb.h"

namespace muster {
namespace {

// How many names of a header an error lists.
constexpr size_t kNamesShownMax = 50;

template <typename T>
bool ParseNumber(absl::string_view text, double scale, T* value) {
  if constexpr (std::is_same_v<T, bool>) {
    return absl::SimpleAtob(text, value);
  } else if constexpr (std::is_integral_v<T>) {
    int64_t wide;
    if (!absl::SimpleAtoi(text, &wide) ||
        wide < std::numeric_limits<T>::min() ||
        wide > std::numeric_limits<T>::max()) {
      return false;
    }
    *value = static_cast<T>(wide);
    return true;
  } else {
    double wide;
    if (!absl::SimpleAtod(text, &wide)) return false;
    wide *= scale;
    if constexpr (std::is_arithmetic_v<T>) {
      *value = static_cast<T>(wide);
    } else {
      *value = T(static_cast<float>(wide));
    }
    return true;
  }
}

// The values of one component, record after record.
class ComponentBuilder {
 public:
  ComponentBuilder(DType dtype, double scale) : dtype_(dtype), scale_(scale) {}

  // Returns false if `text` is not a value of the dtype.
  bool Append(absl::string_view text) {
    if (dtype_ == DType::kString) {
      strings_.emplace_back(text);
      return true;
    }
    text = absl::StripAsciiWhitespace(text);
    return VisitNumber(dtype_, [&]<typename T>() {
      T value{};
      if (!ParseNumber(text, scale_, &value)) return false;
      const size_t end = bytes_.size();
      bytes_.resize(end + sizeof(T));
      std::memcpy(&bytes_[end], &value, sizeof(T));
      return true;
    });
  }

  Tensor Build(const Shape& shape) const {
    if (dtype_ == DType::kString) {
      return Tensor::FromSpan<std::string>(shape, strings_);
    }
    Tensor tensor(dtype_, shape);
    if (!bytes_.empty()) {
      std::memcpy(tensor.mutable_raw_data(), bytes_.data(), bytes_.size());
    }
    return tensor;
  }

  DType dtype() const { return dtype_; }

 private:
  const DType dtype_;
  const double scale_;
  std::vector<uint8_t> bytes_;
  std::vector<std::string> strings_;
};

// The columns to read, in this order, including the label's.
struct Plan {
  std::string first_path;  // Names the plan in errors.
  std::vector<CsvColumn> columns;
  int label = -1;  // Position in columns; -1: none.
  bool has_header = true;
  char delimiter = ',';
  bool pack_features = true;
  double scale = 0;

  int feature_count() const {
    return static_cast<int>(columns.size()) - (label >= 0 ? 1 : 0);
  }
  int component_count() const {
    return (pack_features ? 1 : feature_count()) + (label >= 0 ? 1 : 0);
  }
  // The component that column `c` belongs to.
  int ComponentOf(int c) const {
    if (c == label) return component_count() - 1;
    if (pack_features) return 0;
    return c - (label >= 0 && c > label ? 1 : 0);
  }
};

std::vector<TensorType> TypesOf(const Plan& plan) {
  std::vector<TensorType> types(plan.component_count());
  for (int c = 0; c < static_cast<int>(plan.columns.size()); ++c) {
    types[plan.ComponentOf(c)].dtype = plan.columns[c].dtype;
  }
  if (plan.pack_features) types[0].shape = Shape({plan.feature_count()});
  return types;
}

// Those of the features that are components of their own. The label has none,
// as in tf.data.experimental.make_csv_dataset.
std::vector<std::string> NamesOf(const Plan& plan) {
  if (plan.pack_features) return {};
  std::vector<std::string> names(plan.component_count());
  for (int c = 0; c < static_cast<int>(plan.columns.size()); ++c) {
    if (c != plan.label) names[plan.ComponentOf(c)] = plan.columns[c].name;
  }
  return names;
}

// The first names of a header, for an error.
std::string NamesIn(const std::vector<CsvField>& header) {
  std::vector<std::string> names;
  for (const CsvField& field : header) {
    if (names.size() == kNamesShownMax) {
      names.push_back(absl::StrCat(header.size() - names.size(), " more"));
      break;
    }
    names.push_back(QuotedText(absl::StripAsciiWhitespace(field.text)));
  }
  return absl::StrJoin(names, ", ");
}

// Returns how a header without a wanted column may have been misread, for an
// error; empty if nothing points to that.
std::string HintOn(const std::vector<CsvField>& header) {
  const std::string& first = header[0].text;
  if (first.find('\0') != std::string::npos) {
    return "; the file has bytes of 0, as UTF-16 has: convert it to UTF-8";
  }
  const size_t other = first.find_first_of(";\t|,");
  if (header.size() > 1 || other == std::string::npos) return "";
  return absl::StrCat("; its delimiter may be ",
                      QuotedText(first.substr(other, 1)));
}

// The position in the file of each of the plan's columns.
absl::StatusOr<std::vector<size_t>> FindColumns(
    const Plan& plan, const CsvReader& reader,
    const std::vector<CsvField>& header) {
  absl::flat_hash_map<absl::string_view, size_t> positions;
  for (size_t i = 0; i < header.size(); ++i) {
    positions.try_emplace(absl::StripAsciiWhitespace(header[i].text), i);
  }
  std::vector<size_t> found;
  for (const CsvColumn& column : plan.columns) {
    const auto position = positions.find(column.name);
    if (position == positions.end()) {
      return reader.ErrorAt(
          header[0].line, 1,
          absl::StrCat("no column ", QuotedText(column.name), "; there are ",
                       NamesIn(header), HintOn(header)));
    }
    found.push_back(position->second);
  }
  return found;
}

// The components of records, as they are read.
class RecordBuilder {
 public:
  // `plan` outlives the builder.
  explicit RecordBuilder(const Plan& plan)
      : plan_(plan), types_(TypesOf(plan)) {
    for (size_t i = 0; i < types_.size(); ++i) {
      const bool is_label = plan.label >= 0 && i + 1 == types_.size();
      components_.emplace_back(types_[i].dtype,
                               is_label || plan.scale == 0 ? 1 : plan.scale);
    }
    cells_.reserve(plan.columns.size());
    for (const CsvColumn& column : plan.columns) cells_.emplace_back(column);
  }

  // `positions` has that of each column in `fields`.
  absl::Status Append(const CsvReader& reader,
                      const std::vector<CsvField>& fields,
                      const std::vector<size_t>& positions) {
    for (size_t c = 0; c < positions.size(); ++c) {
      RETURN_IF_ERROR(AppendField(reader, fields[positions[c]], c));
    }
    return absl::OkStatus();
  }

  std::vector<TensorTable::Component> Build(int64_t record_count) const {
    std::vector<TensorTable::Component> built;
    for (size_t i = 0; i < types_.size(); ++i) {
      Shape shape = types_[i].shape;
      shape.InsertDim(0, record_count);
      built.push_back({.values = components_[i].Build(shape)});
    }
    return built;
  }

 private:
  absl::Status AppendField(const CsvReader& reader, const CsvField& field,
                           size_t c) {
    const CsvColumn& column = plan_.columns[c];
    absl::string_view text = field.text;
    if (text.empty() && column.default_value.has_value()) {
      text = *column.default_value;
    }
    ComponentBuilder& component =
        components_[plan_.ComponentOf(static_cast<int>(c))];
    const bool is_missing = text.empty() && !column.default_value.has_value() &&
                            component.dtype() != DType::kString;
    if (is_missing) {
      return reader.ErrorAt(field.line, field.column,
                            absl::StrCat("column ", QuotedText(column.name),
                                         " is empty and has no default"));
    }
    const std::optional<absl::string_view> value =
        cells_[c].NumberOf(text, &number_);
    if (value.has_value() && component.Append(*value)) return absl::OkStatus();
    absl::Status error = reader.ErrorAt(
        field.line, field.column,
        absl::StrCat(QuotedText(text), " in column ", QuotedText(column.name),
                     " is not ", cells_[c].Expected()));
    error.SetPayload(kCsvNotANumberUrl, absl::Cord(column.name));
    return error;
  }

  const Plan& plan_;
  const std::vector<TensorType> types_;
  std::vector<ComponentBuilder> components_;
  std::vector<CsvCellReader> cells_;  // By column.
  std::string number_;                // Of a cell.
};

// Finds a column that does not have the type that is expected before training
// begins. What cannot be read at all is left to those who read it.
absl::Status CheckFirstRecord(const Plan& plan) {
  const auto reader = CsvReader::Open(plan.first_path, plan.delimiter);
  if (!reader.ok()) return absl::OkStatus();
  std::vector<CsvField> fields;
  std::vector<size_t> positions(plan.columns.size());
  for (size_t c = 0; c < positions.size(); ++c) positions[c] = c;
  if (plan.has_header) {
    if (!(*reader)->ReadRecord(&fields).value_or(false)) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(positions, FindColumns(plan, **reader, fields));
  }
  const size_t field_count = plan.has_header ? fields.size() : positions.size();
  if (!(*reader)->ReadRecord(&fields).value_or(false) ||
      fields.size() != field_count) {
    return absl::OkStatus();
  }
  return RecordBuilder(plan).Append(**reader, fields, positions);
}

absl::StatusOr<std::vector<TensorTable::Component>> ReadCsv(
    const Plan& plan, const std::string& path) {
  ASSIGN_OR_RETURN(const auto reader, CsvReader::Open(path, plan.delimiter));
  std::vector<CsvField> fields;
  std::vector<size_t> positions(plan.columns.size());
  size_t field_count = plan.columns.size();
  for (size_t c = 0; c < positions.size(); ++c) positions[c] = c;
  if (plan.has_header) {
    ASSIGN_OR_RETURN(const bool more, reader->ReadRecord(&fields));
    if (!more) return reader->ErrorAt(1, 1, "expected a header; found nothing");
    ASSIGN_OR_RETURN(positions, FindColumns(plan, *reader, fields));
    field_count = fields.size();
  }
  RecordBuilder records(plan);
  int64_t record_count = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader->ReadRecord(&fields));
    if (!more) break;
    if (fields.size() != field_count) {
      return reader->ErrorAt(
          fields[0].line, 1,
          absl::StrCat(fields.size(), " fields; expected ", field_count));
    }
    RETURN_IF_ERROR(records.Append(*reader, fields, positions));
    ++record_count;
  }
  return records.Build(record_count);
}

class CsvNode final : public FileTableNode {
 public:
  CsvNode(Plan plan, std::vector<std::string> paths,
          const InterleaveOptions& order)
      : FileTableNode(TypesOf(plan), Dataset::kUnknownCardinality,
                      std::move(paths), order, NamesOf(plan)),
        plan_(std::move(plan)) {}

  absl::StatusOr<NodePointer> WithFiles(
      absl::Span<const int> files) const override {
    std::vector<std::string> chosen;
    for (const int file : files) chosen.push_back(paths()[file]);
    return std::make_shared<CsvNode>(plan_, std::move(chosen), order());
  }

  absl::Status Encode(proto::Dataset* encoded) const override {
    proto::DatasetStage::Csv* const csv = encoded->add_stages()->mutable_csv();
    *csv->mutable_path() = {paths().begin(), paths().end()};
    for (const CsvColumn& column : plan_.columns) {
      proto::DatasetStage::Csv::Column* const out = csv->add_columns();
      out->set_name(column.name);
      out->set_dtype(EncodeDType(column.dtype));
      if (column.default_value.has_value()) {
        out->set_default_value(*column.default_value);
      }
      *out->mutable_class_names() = {column.class_names.begin(),
                                     column.class_names.end()};
      out->set_is_date(column.is_date);
    }
    if (plan_.label >= 0) {
      csv->set_label_column(plan_.columns[plan_.label].name);
    }
    csv->set_no_header(!plan_.has_header);
    csv->set_delimiter(std::string(1, plan_.delimiter));
    csv->set_separate_features(!plan_.pack_features);
    csv->set_scale(plan_.scale);
    csv->mutable_order()->set_cycle_length(order().cycle_length);
    csv->mutable_order()->set_block_length(order().block_length);
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<Components> ReadFile(int file) const override {
    return ReadCsv(plan_, paths()[file]);
  }

 private:
  const Plan plan_;
};

absl::Status PlanError(const Plan& plan, absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat(plan.first_path, ": ", message));
}

absl::Status AddColumnsOfHeader(const CsvOptions& options, Plan* plan) {
  if (!plan->has_header) {
    return PlanError(*plan, "without a header, columns must be given");
  }
  ASSIGN_OR_RETURN(const auto reader,
                   CsvReader::Open(plan->first_path, plan->delimiter));
  std::vector<CsvField> header;
  ASSIGN_OR_RETURN(const bool more, reader->ReadRecord(&header));
  if (!more) return reader->ErrorAt(1, 1, "expected a header; found nothing");
  bool found_label = options.label_column.empty();
  for (const CsvField& field : header) {
    CsvColumn column;
    column.name = std::string(absl::StripAsciiWhitespace(field.text));
    if (!found_label && column.name == options.label_column) {
      column.dtype = options.label_dtype;
      found_label = true;
    }
    plan->columns.push_back(std::move(column));
  }
  if (found_label) return absl::OkStatus();
  // Reading would detect this as well, but not before training begins.
  plan->columns.push_back({.name = options.label_column});
  return FindColumns(*plan, *reader, header).status();
}

// Names of classes become numbers, and dates floating-point numbers.
absl::Status CheckCells(const Plan& plan, const CsvColumn& column) {
  const absl::flat_hash_set<absl::string_view> classes(
      column.class_names.begin(), column.class_names.end());
  const auto refuse = [&](const auto&... words) {
    return PlanError(
        plan, absl::StrCat("column ", QuotedText(column.name), words...));
  };
  if (classes.size() < column.class_names.size()) {
    return refuse(" has a class name twice");
  }
  const bool is_number = IsFloating(column.dtype) || IsInteger(column.dtype);
  if (!classes.empty() && (column.is_date || !is_number)) {
    return refuse(" has class names, which become numbers, and is ",
                  column.is_date ? "a date" : DTypeName(column.dtype));
  }
  if (column.is_date && !IsFloating(column.dtype)) {
    return refuse(" is a date, which becomes a floating-point number, and is ",
                  DTypeName(column.dtype));
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(const Plan& plan) {
  if (plan.delimiter == '"' || plan.delimiter == '\n' ||
      plan.delimiter == '\r') {
    return PlanError(plan, "the delimiter is a quote or the end of a line");
  }
  if (!std::isfinite(plan.scale)) {
    return PlanError(plan, absl::StrCat("scale is ", plan.scale,
                                        "; expected a finite number"));
  }
  if (plan.columns.size() > CsvReader::kFieldCountMax ||
      plan.feature_count() == 0) {
    return PlanError(plan, absl::StrCat(plan.feature_count(),
                                        " feature columns; expected 1 to ",
                                        CsvReader::kFieldCountMax));
  }
  absl::flat_hash_set<absl::string_view> names;
  const CsvColumn* first = nullptr;
  for (int c = 0; c < static_cast<int>(plan.columns.size()); ++c) {
    const CsvColumn& column = plan.columns[c];
    if (!names.insert(column.name).second) {
      return PlanError(plan, absl::StrCat("column ", QuotedText(column.name),
                                          " is given twice"));
    }
    RETURN_IF_ERROR(CheckCells(plan, column));
    if (column.dtype == DType::kInvalid) {
      return PlanError(plan, absl::StrCat("column ", QuotedText(column.name),
                                          " has no dtype"));
    }
    if (c == plan.label || !plan.pack_features) continue;
    if (first == nullptr) first = &column;
    if (column.dtype == first->dtype) continue;
    return PlanError(
        plan,
        absl::StrCat("column ", QuotedText(first->name), " is ",
                     DTypeName(first->dtype), " and ", QuotedText(column.name),
                     " is ", DTypeName(column.dtype),
                     "; features of several dtypes cannot be packed, set "
                     "pack_features to false"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NodePointer> MakeCsv(std::vector<std::string> paths,
                                    const CsvOptions& options) {
  RETURN_IF_ERROR(CheckFiles("Csv", paths, options.order));
  Plan plan{.first_path = paths[0],
            .columns = options.columns,
            .has_header = options.has_header,
            .delimiter = options.delimiter,
            .pack_features = options.pack_features,
            .scale = options.scale};
  if (plan.columns.empty()) RETURN_IF_ERROR(AddColumnsOfHeader(options, &plan));
  if (!options.label_column.empty()) {
    const auto found = std::find_if(
        plan.columns.begin(), plan.columns.end(), [&](const CsvColumn& column) {
          return column.name == options.label_column;
        });
    plan.label = static_cast<int>(found - plan.columns.begin());
    if (found == plan.columns.end()) {
      plan.columns.push_back(
          {.name = options.label_column, .dtype = options.label_dtype});
    }
  }
  RETURN_IF_ERROR(CheckPlan(plan));
  RETURN_IF_ERROR(CheckFirstRecord(plan));
  return std::make_shared<CsvNode>(std::move(plan), std::move(paths),
                                   options.order);
}

}  // namespace muster
