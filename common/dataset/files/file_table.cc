#include "common/dataset/files/file_table.h"

#include <fnmatch.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/shape.h"
#include "common/dataset/interleaved_stream.h"
#include "common/io/storage/disk.h"
#include "common/io/storage/object_url.h"

namespace muster {
namespace {

// The numbers from `begin` to below `end`.
class RangeStream final : public RowStream {
 public:
  RangeStream(int64_t begin, int64_t end) : next_(begin), end_(end) {}

  absl::StatusOr<bool> Next(int64_t* row) override {
    if (next_ == end_) return false;
    *row = next_++;
    return true;
  }

 private:
  int64_t next_;
  const int64_t end_;
};

bool Exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

// Errors that stop glob(). A folder that does not exist has no matches.
int IsReadError(const char*, int error) {
  return error != ENOENT && error != ENOTDIR ? 1 : 0;
}

bool HasWildcard(absl::string_view text) {
  return text.find_first_of("*?[") != absl::string_view::npos;
}

absl::Status NoMatch(const std::string& pattern) {
  return absl::NotFoundError(absl::StrCat("no file matches \"", pattern, "\""));
}

// Of objects, sorted.
absl::Status AppendObjectMatches(const std::string& pattern,
                                 std::vector<std::string>* paths) {
  const absl::string_view folder = FolderOf(pattern);
  if (HasWildcard(folder)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pattern \"", pattern,
        "\" of objects: *, ? and [ are expected only behind the last slash"));
  }
  const absl::StatusOr<std::vector<std::string>> names =
      Disk::Real()->List(folder);
  if (absl::IsNotFound(names.status())) return NoMatch(pattern);
  RETURN_IF_ERROR(names.status());
  const size_t count_before = paths->size();
  const std::string name_pattern(BaseName(pattern));
  for (const std::string& name : *names) {
    if (fnmatch(name_pattern.c_str(), name.c_str(), FNM_PERIOD) == 0) {
      paths->push_back(JoinPath(folder, name));
    }
  }
  return paths->size() > count_before ? absl::OkStatus() : NoMatch(pattern);
}

absl::Status AppendMatches(const std::string& pattern,
                           std::vector<std::string>* paths) {
  if (IsObjectUrl(pattern)) return AppendObjectMatches(pattern, paths);
  glob_t matches = {};
  const int result = glob(pattern.c_str(), GLOB_NOSORT, IsReadError, &matches);
  const size_t begin = paths->size();
  if (result == 0) {
    paths->insert(paths->end(), matches.gl_pathv,
                  matches.gl_pathv + matches.gl_pathc);
  }
  globfree(&matches);
  if (result == GLOB_NOMATCH) return NoMatch(pattern);
  if (result != 0) {
    return absl::UnavailableError(
        absl::StrCat("a folder of \"", pattern, "\" cannot be read"));
  }
  // By bytes, so that the order does not depend on the machine's locale.
  std::sort(paths->begin() + begin, paths->end());
  return absl::OkStatus();
}

// Converts to `dtype` and multiplies by `scale` unless it is 0.
Tensor Converted(const Tensor& values, DType dtype, double scale) {
  Tensor converted(dtype, values.shape());
  const double factor = scale == 0 ? 1 : scale;
  VisitNumber(dtype, [&]<typename T>() {
    const auto out = converted.mutable_flat<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      const double value =
          values.ElementAsDouble(static_cast<int64_t>(i)) * factor;
      if constexpr (std::is_arithmetic_v<T>) {
        out[i] = static_cast<T>(value);
      } else {
        out[i] = T(static_cast<float>(value));
      }
    }
  });
  return converted;
}

absl::Status CheckSameForm(const std::string& first_path,
                           const TensorTable::Component& first,
                           const std::string& path,
                           const TensorTable::Component& component) {
  const Tensor& a = first.values;
  const Tensor& b = component.values;
  if (a.dtype() == b.dtype() && first.scale == component.scale &&
      a.shape().dims().subspan(1) == b.shape().dims().subspan(1)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, " holds ", b.type().ToString(), " and ", first_path, " ",
      a.type().ToString(), "; expected the same values in all files"));
}

// One component of all files, one after another.
TensorTable::Component Concatenate(
    const std::vector<std::vector<TensorTable::Component>>& files, size_t c) {
  Shape shape = files[0][c].values.shape();
  int64_t row_count = 0;
  for (const auto& file : files) row_count += file[c].values.shape().dim(0);
  shape.set_dim(0, row_count);
  const DType dtype = files[0][c].values.dtype();
  Tensor all(dtype, shape);
  int64_t row = 0;
  for (const auto& file : files) {
    const Tensor& part = file[c].values;
    const int64_t end = row + part.shape().dim(0);
    Tensor place = all.SliceRows(row, end);
    if (dtype == DType::kString) {
      std::copy(part.flat<std::string>().begin(),
                part.flat<std::string>().end(),
                place.mutable_flat<std::string>().begin());
    } else {
      std::copy(part.raw_data(), part.raw_data() + part.size_bytes(),
                place.mutable_raw_data());
    }
    row = end;
  }
  return {.values = std::move(all), .scale = files[0][c].scale};
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandFilePatterns(
    absl::Span<const std::string> patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    if (!HasWildcard(pattern) || Exists(pattern)) {
      paths.push_back(pattern);
    } else {
      RETURN_IF_ERROR(AppendMatches(pattern, &paths));
    }
  }
  if (paths.empty() || paths.size() > kFileCountMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(paths.size(), " files; expected 1 to ", kFileCountMax));
  }
  return paths;
}

TensorTable::Component MakeComponent(Tensor values, DType dtype, double scale) {
  TensorTable::Component component;
  if (values.dtype() == DType::kUint8 && dtype == DType::kFloat32) {
    component.scale = scale == 0 ? 1.0f : static_cast<float>(scale);
    component.values = std::move(values);
  } else if (values.dtype() == dtype && scale == 0) {
    component.values = std::move(values);
  } else {
    component.values = Converted(values, dtype, scale);
  }
  return component;
}

absl::Status CheckFiles(const char* format, absl::Span<const std::string> paths,
                        const InterleaveOptions& order) {
  if (paths.empty() || paths.size() > kFileCountMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        format, ": ", paths.size(), " files; expected 1 to ", kFileCountMax));
  }
  return CheckInterleave(format, order);
}

class FileTableNode::Table final : public RowTable {
 public:
  // `ends`: for each file, the number of rows up to its end.
  Table(Components components, std::vector<int64_t> ends)
      : rows_(std::move(components)), ends_(std::move(ends)) {}

  int64_t row_count() const override { return rows_.row_count(); }
  int component_count() const override { return rows_.component_count(); }
  absl::Status Get(int64_t row, absl::Span<Tensor> element) const override {
    return rows_.Get(row, element);
  }
  absl::Status Gather(absl::Span<const int64_t> rows,
                      absl::Span<Tensor> batch) const override {
    return rows_.Gather(rows, batch);
  }
  std::shared_ptr<const RowTable> Select(
      absl::Span<const int> components) const override {
    return rows_.Select(components);
  }

  std::unique_ptr<RowStream> Interleaved(const InterleaveOptions& order) const {
    return std::make_unique<InterleavedStream<int64_t>>(
        [this, file = size_t{0}]() mutable -> std::unique_ptr<RowStream> {
          if (file == ends_.size()) return nullptr;
          const int64_t begin = file == 0 ? 0 : ends_[file - 1];
          return std::make_unique<RangeStream>(begin, ends_[file++]);
        },
        order);
  }

 private:
  const TensorTable rows_;
  const std::vector<int64_t> ends_;
};

absl::StatusOr<std::shared_ptr<const RowTable>> FileTableNode::Load() const {
  std::vector<Components> files;
  std::vector<int64_t> ends;
  for (int i = 0; i < file_count(); ++i) {
    ASSIGN_OR_RETURN(files.emplace_back(), ReadFile(i));
    for (size_t c = 0; c < files[i].size(); ++c) {
      RETURN_IF_ERROR(
          CheckSameForm(paths_[0], files[0][c], paths_[i], files[i][c]));
    }
    ends.push_back((ends.empty() ? 0 : ends.back()) +
                   files[i][0].values.shape().dim(0));
  }
  if (files.size() == 1) {
    return std::make_shared<Table>(std::move(files[0]), std::move(ends));
  }
  Components all;
  for (size_t c = 0; c < files[0].size(); ++c) {
    all.push_back(Concatenate(files, c));
    // Avoids holding more than one component twice.
    for (Components& file : files) file[c].values = Tensor();
  }
  return std::make_shared<Table>(std::move(all), std::move(ends));
}

absl::StatusOr<RowSelection> FileTableNode::MakeRows(const PassContext&) const {
  ASSIGN_OR_RETURN(std::shared_ptr<const RowTable> table,
                   table_.Get([this] { return Load(); }));
  if (order_.cycle_length == 1 || paths_.size() == 1) {
    return WholeTable(std::move(table));
  }
  RowSelection selection;
  selection.rows = static_cast<const Table&>(*table).Interleaved(order_);
  selection.table = std::move(table);
  return selection;
}

absl::StatusOr<std::unique_ptr<ElementStream>> FileTableNode::MakeElements(
    const PassContext& context) const {
  ASSIGN_OR_RETURN(RowSelection selection, MakeRows(context));
  return ElementsOf(std::move(selection));
}

}  // namespace muster
