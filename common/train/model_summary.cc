#include "common/train/model_summary.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/nn/layer.h"
#include "common/nn/weight.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace muster {
namespace {

using Row = std::array<std::string, 3>;
// Keras' least widths, so that tables of small models look alike.
constexpr std::array<size_t, 3> kWidthMin = {31, 22, 13};

struct ParameterCount {
  int64_t count = 0;
  int64_t bytes = 0;
};

ParameterCount CountParameters(const std::vector<Weight>& weights,
                               bool trainable) {
  ParameterCount total;
  for (const Weight& weight : weights) {
    if (weight.trainable() != trainable) continue;
    const int64_t count = weight.handle().type.shape.element_count();
    total.count += count;
    total.bytes +=
        count * static_cast<int64_t>(SizeOf(weight.handle().type.dtype));
  }
  return total;
}

std::string WithCommas(int64_t number) {
  std::string digits = absl::StrCat(number);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string ByteSize(int64_t bytes) {
  double size = static_cast<double>(bytes);
  constexpr absl::string_view kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (size >= 1024 && unit + 1 < std::size(kUnits)) {
    size /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.2f %s", size, kUnits[unit]);
}

std::string ShapeText(const Layer& layer) {
  if (!layer.built()) return "?";
  return absl::StrCat("(",
                      absl::StrJoin(layer.output_shape().dims(), ", ",
                                    [](std::string* out, int64_t extent) {
                                      absl::StrAppend(
                                          out, extent == Shape::kUnknown
                                                   ? std::string("None")
                                                   : absl::StrCat(extent));
                                    }),
                      ")");
}

Row RowOf(const Layer& layer) {
  const int64_t count = CountParameters(layer.weights(), true).count +
                        CountParameters(layer.weights(), false).count;
  const bool is_unknown = !layer.built();
  return {absl::StrCat(layer.name(), " (", layer.kind(), ")"), ShapeText(layer),
          is_unknown ? "0 (unbuilt)" : WithCommas(count)};
}

std::string Line(absl::string_view left, absl::string_view fill,
                 absl::string_view middle, absl::string_view right,
                 const std::array<size_t, 3>& widths) {
  std::string line(left);
  for (size_t column = 0; column < widths.size(); ++column) {
    for (size_t i = 0; i < widths[column] + 2; ++i) {
      absl::StrAppend(&line, fill);
    }
    absl::StrAppend(&line, column + 1 < widths.size() ? middle : right);
  }
  return line + "\n";
}

std::string Cells(const Row& row, absl::string_view border,
                  const std::array<size_t, 3>& widths) {
  std::string line(border);
  for (size_t column = 0; column < row.size(); ++column) {
    const std::string padding(widths[column] - row[column].size(), ' ');
    const bool is_number = column == 2;
    absl::StrAppend(&line, " ", is_number ? padding : "", row[column],
                    is_number ? "" : padding, " ", border);
  }
  return line + "\n";
}

}  // namespace

std::string SummarizeModel(const Layer& model) {
  const Row header = {"Layer (type)", "Output Shape", "Param #"};
  std::vector<Row> rows;
  for (const LayerPtr& layer : model.layers()) rows.push_back(RowOf(*layer));
  if (rows.empty()) rows.push_back(RowOf(model));

  std::array<size_t, 3> widths = kWidthMin;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }

  std::string table = absl::StrCat(
      "Model: \"", model.name(), "\"\n", Line("┏", "━", "┳", "┓", widths),
      Cells(header, "┃", widths), Line("┡", "━", "╇", "┩", widths));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) absl::StrAppend(&table, Line("├", "─", "┼", "┤", widths));
    absl::StrAppend(&table, Cells(rows[i], "│", widths));
  }
  absl::StrAppend(&table, Line("└", "─", "┴", "┘", widths));

  const ParameterCount trained = CountParameters(model.weights(), true);
  const ParameterCount fixed = CountParameters(model.weights(), false);
  absl::StrAppend(&table,
                  " Total params: ", WithCommas(trained.count + fixed.count),
                  " (", ByteSize(trained.bytes + fixed.bytes), ")\n",
                  " Trainable params: ", WithCommas(trained.count), " (",
                  ByteSize(trained.bytes), ")\n",
                  " Non-trainable params: ", WithCommas(fixed.count), " (",
                  ByteSize(fixed.bytes), ")\n");
  return table;
}

}  // namespace muster
