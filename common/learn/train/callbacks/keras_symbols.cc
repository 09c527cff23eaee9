#include "common/learn/train/callbacks/keras_symbols.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/compute/optimizers/keras_config.h"
#include "common/compute/optimizers/learning_rate_schedules.h"
#include "common/compute/optimizers/optimizer_kind.h"
#include "common/compute/optimizers/optimizers.h"
#include "common/compute/optimizers/schedule_kind.h"
#include "common/core/base/status_macros.h"
#include "common/learn/nn/layer.h"
#include "common/learn/nn/layers/layers.h"
#include "common/learn/nn/losses.h"
#include "common/learn/nn/metrics.h"
#include "common/learn/train/callbacks/callbacks.h"

namespace muster {
namespace {

constexpr absl::string_view kHere = "here: ";

constexpr absl::string_view kIntroduction =
    R"(# The classes of Keras that are here

All classes of Keras 3.15. Those that are here are read from and written to files of
Keras and can stand in job files, unless the last column says something else.
[keras.md](keras.md) says what is not supported of them.

This page is generated from [keras_symbols.txt](keras_symbols.txt) and the program's
tables: `bazel run //common/learn/train/callbacks:print_keras_symbols > docs/keras_symbols.md`.
)";

struct Symbol {
  std::string name;
  bool has_note = false;
  std::string note;
};

struct Section {
  std::string name;
  std::vector<Symbol> symbols = {};
};

// The section as the program's table has it.
struct Table {
  absl::string_view section;
  std::set<std::string> classes;
};

template <typename Kinds>
std::set<std::string> ClassesOf(const Kinds& kinds) {
  std::set<std::string> classes;
  for (const auto& kind : kinds) {
    // "accuracy" is a name that stands for several classes.
    if (!absl::ascii_isupper(kind.keras_class.front())) continue;
    classes.emplace(kind.keras_class);
  }
  return classes;
}

std::vector<Table> Tables() {
  std::set<std::string> layers;
  for (const LayerKind& kind : kLayerKinds) layers.insert(kind.make()->kind());
  std::set<std::string> optimizers;
  for (const OptimizerKind* const kind : kOptimizerKinds) {
    optimizers.emplace(kind->keras_class);
  }
  optimizers.emplace(kLossScaleClass);
  return {{"layers", std::move(layers)},
          {"losses", ClassesOf(kLossKinds)},
          {"metrics", ClassesOf(kMetricKinds)},
          {"optimizers", std::move(optimizers)},
          {"schedules", ClassesOf(ScheduleKinds())},
          {"callbacks", ClassesOf(kCallbackKinds)}};
}

absl::StatusOr<std::vector<Section>> Parse(absl::string_view text) {
  std::vector<Section> sections;
  std::set<std::string> seen;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || absl::StartsWith(line, "#")) continue;
    const auto refuse = [&](absl::string_view why) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", line, ": ", why));
    };
    if (absl::ConsumeSuffix(&line, ":") && !absl::StrContains(line, '|')) {
      if (!seen.insert(absl::StrCat(line, ":")).second) {
        return refuse("the section is listed twice");
      }
      sections.push_back({.name = std::string(line)});
      continue;
    }
    if (sections.empty()) return refuse("expected a section, such as layers:");
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('|', 1));
    Symbol symbol{
        .name = std::string(absl::StripAsciiWhitespace(parts.first)),
        .has_note = absl::StrContains(line, '|'),
        .note = std::string(absl::StripAsciiWhitespace(parts.second))};
    if (symbol.name.empty() || absl::StrContains(symbol.name, ' ')) {
      return refuse("expected CLASS, CLASS | here: TEXT or CLASS | TEXT");
    }
    if (!seen.insert(absl::StrCat(sections.back().name, "/", symbol.name))
             .second) {
      return refuse("the class is listed twice");
    }
    sections.back().symbols.push_back(std::move(symbol));
  }
  return sections;
}

// Appends how the list differs from the table.
void Compare(const Section& section, const Table& table,
             std::vector<std::string>* differences) {
  std::set<std::string> listed;
  for (const Symbol& symbol : section.symbols) {
    listed.insert(symbol.name);
    const bool is_in_table = table.classes.contains(symbol.name);
    if (is_in_table == !symbol.has_note) continue;
    differences->push_back(absl::StrCat(
        section.name, "/", symbol.name,
        is_in_table ? " is in the program's table: remove what follows the name"
                    : " is not in the program's table: say what to use after "
                      "\"|\""));
  }
  for (const std::string& name : table.classes) {
    if (listed.contains(name)) continue;
    differences->push_back(
        absl::StrCat(section.name, "/", name, " is missing in the list"));
  }
}

std::string Row(const Symbol& symbol) {
  absl::string_view note = symbol.note;
  const bool is_here = !symbol.has_note || absl::ConsumePrefix(&note, kHere);
  return absl::StrCat("| `", symbol.name, "` | ", is_here ? "yes" : "no", " | ",
                      note, note.empty() ? "|\n" : " |\n");
}

}  // namespace

absl::StatusOr<std::string> KerasSymbolsPage(absl::string_view symbols) {
  ASSIGN_OR_RETURN(const std::vector<Section> sections, Parse(symbols));
  const std::vector<Table> tables = Tables();
  if (sections.size() != tables.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected ", tables.size(), " sections, as ",
                     tables.front().section, ":, got ", sections.size()));
  }
  std::vector<std::string> differences;
  std::string page(kIntroduction);
  for (size_t i = 0; i < tables.size(); ++i) {
    const Section& section = sections[i];
    if (section.name != tables[i].section) {
      return absl::InvalidArgumentError(
          absl::StrCat("section ", i, " is ", section.name, "; expected ",
                       tables[i].section));
    }
    Compare(section, tables[i], &differences);
    absl::StrAppend(&page, "\n## ", section.name,
                    "\n\n| class | here | how, or what to use instead |\n"
                    "| --- | --- | --- |\n");
    for (const Symbol& symbol : section.symbols) {
      absl::StrAppend(&page, Row(symbol));
    }
  }
  if (differences.empty()) return page;
  return absl::FailedPreconditionError(
      absl::StrCat("docs/keras_symbols.txt is outdated: ",
                   absl::StrJoin(differences, "; ")));
}

}  // namespace muster
