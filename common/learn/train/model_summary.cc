#include "common/learn/train/model_summary.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/learn/nn/functional.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/weight.h"

namespace muster {
namespace {

// A cell for each column.
using Row = std::vector<std::string>;

struct Column {
  absl::string_view title;
  size_t width;  // In characters, without padding and borders.
  bool is_number = false;
};

// Returns the columns that Keras prints on a terminal of 80 columns.
std::vector<Column> ColumnsOf(bool has_connections) {
  if (!has_connections) {
    return {{"Layer (type)", 31},
            {"Output Shape", 22},
            {"Param #", 13, /*is_number=*/true}};
  }
  return {{"Layer (type)", 19},
          {"Output Shape", 17},
          {"Param #", 10, /*is_number=*/true},
          {"Connected to", 17}};
}

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

std::string ShapeText(const Shape& shape) {
  const auto append_extent = [](std::string* out, int64_t extent) {
    if (extent == Shape::kUnknown) {
      absl::StrAppend(out, "None");
    } else {
      absl::StrAppend(out, extent);
    }
  };
  return absl::StrCat("(", absl::StrJoin(shape.dims(), ", ", append_extent),
                      ")");
}

std::string OutputShapesText(const Layer& layer) {
  if (!layer.built()) return "?";
  if (layer.output_shapes().size() == 1) {
    return ShapeText(layer.output_shape());
  }
  std::vector<std::string> texts;
  for (const Shape& shape : layer.output_shapes()) {
    texts.push_back(ShapeText(shape));
  }
  return absl::StrCat("[", absl::StrJoin(texts, ", "), "]");
}

// Returns the sources of the layer's inputs: "layer[index of call][index of
// output]" for each.
std::string ConnectionsText(const FunctionalLayer& model, const Layer& layer) {
  std::vector<std::string> texts;
  for (const auto& call : model.calls()) {
    if (call->layer.get() != &layer) continue;
    for (const LayerOutput& input : call->inputs) {
      texts.push_back(absl::StrCat(input.call()->layer->name(), "[",
                                   input.call()->index, "][", input.index(),
                                   "]"));
    }
  }
  return texts.empty() ? "-" : absl::StrJoin(texts, ", ");
}

// True if each layer is called once, on the output of the previous one.
bool IsChain(const FunctionalLayer& model) {
  absl::flat_hash_set<const Layer*> seen;
  const LayerCall* previous = nullptr;
  for (const auto& call : model.calls()) {
    if (!seen.insert(call->layer.get()).second) return false;
    const size_t input_count = previous == nullptr ? 0 : 1;
    if (call->inputs.size() != input_count) return false;
    if (input_count == 1 && call->inputs.front().call().get() != previous) {
      return false;
    }
    previous = call.get();
  }
  return true;
}

// `model` is null if the table has no connections.
Row RowOf(const Layer& layer, const FunctionalLayer* model) {
  const int64_t count = CountParameters(layer.weights(), true).count +
                        CountParameters(layer.weights(), false).count;
  Row row = {absl::StrCat(layer.name(), " (", layer.kind(), ")"),
             OutputShapesText(layer),
             layer.built() ? WithCommas(count) : "0 (unbuilt)"};
  if (model != nullptr) row.push_back(ConnectionsText(*model, layer));
  return row;
}

// Splits `text` at spaces into lines of at most `width` characters. A longer
// word becomes a separate line, which Aligned() truncates.
std::vector<std::string> Wrap(const std::string& text, size_t width) {
  std::vector<std::string> lines = {""};
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    std::string& line = lines.back();
    if (line.empty()) {
      line = std::string(word);
    } else if (line.size() + 1 + word.size() <= width) {
      absl::StrAppend(&line, " ", word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

// Returns `text` padded with spaces to the width of the column, or truncated.
std::string Aligned(const std::string& text, const Column& column) {
  if (text.size() > column.width) {
    return absl::StrCat(text.substr(0, column.width - 1), "…");
  }
  const std::string padding(column.width - text.size(), ' ');
  return column.is_number ? padding + text : text + padding;
}

std::string Line(absl::string_view left, absl::string_view fill,
                 absl::string_view middle, absl::string_view right,
                 const std::vector<Column>& columns) {
  std::string line(left);
  for (size_t i = 0; i < columns.size(); ++i) {
    for (size_t j = 0; j < columns[i].width + 2; ++j) {
      absl::StrAppend(&line, fill);
    }
    absl::StrAppend(&line, i + 1 < columns.size() ? middle : right);
  }
  return line + "\n";
}

std::string Cells(const Row& row, absl::string_view border,
                  const std::vector<Column>& columns) {
  std::vector<std::vector<std::string>> cells;
  size_t height = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    cells.push_back(Wrap(row[i], columns[i].width));
    height = std::max(height, cells.back().size());
  }
  std::string text;
  for (size_t line = 0; line < height; ++line) {
    absl::StrAppend(&text, border);
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::string cell = line < cells[i].size() ? cells[i][line] : "";
      absl::StrAppend(&text, " ", Aligned(cell, columns[i]), " ", border);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

std::string Totals(const Layer& model) {
  const ParameterCount trained = CountParameters(model.weights(), true);
  const ParameterCount fixed = CountParameters(model.weights(), false);
  return absl::StrCat(
      " Total params: ", WithCommas(trained.count + fixed.count), " (",
      ByteSize(trained.bytes + fixed.bytes), ")\n",
      " Trainable params: ", WithCommas(trained.count), " (",
      ByteSize(trained.bytes), ")\n",
      " Non-trainable params: ", WithCommas(fixed.count), " (",
      ByteSize(fixed.bytes), ")\n");
}

}  // namespace

std::string SummarizeModel(const Layer& model) {
  const auto* functional = dynamic_cast<const FunctionalLayer*>(&model);
  if (functional != nullptr && IsChain(*functional)) functional = nullptr;
  std::vector<Row> rows;
  for (const LayerPtr& layer : model.layers()) {
    rows.push_back(RowOf(*layer, functional));
  }
  if (rows.empty()) rows.push_back(RowOf(model, nullptr));

  const std::vector<Column> columns = ColumnsOf(functional != nullptr);
  Row header;
  for (const Column& column : columns) header.emplace_back(column.title);
  std::string table = absl::StrCat(
      "Model: \"", model.name(), "\"\n", Line("┏", "━", "┳", "┓", columns),
      Cells(header, "┃", columns), Line("┡", "━", "╇", "┩", columns));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) absl::StrAppend(&table, Line("├", "─", "┼", "┤", columns));
    absl::StrAppend(&table, Cells(rows[i], "│", columns));
  }
  absl::StrAppend(&table, Line("└", "─", "┴", "┘", columns));
  return absl::StrCat(table, Totals(model));
}

}  // namespace muster
