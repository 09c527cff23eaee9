#include "common/learn/train/callbacks/file_name_pattern.h"

#include <algorithm>
#include <cstdio>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/core/base/status_macros.h"
#include "common/learn/train/callbacks/message.h"

namespace muster {
namespace {

// Digits of a width or a precision.
constexpr size_t kDigitsMax = 2;

struct Spec {
  std::string flags_and_sizes;  // "02", ".2": as printf() has them.
  char type = 0;                // 0: none was given.
};

absl::StatusOr<Spec> ParseSpec(absl::string_view text) {
  Spec spec;
  const auto take_digits = [&] {
    const auto end =
        std::find_if_not(text.begin(), text.end(), absl::ascii_isdigit);
    const size_t count = end - text.begin();
    absl::StrAppend(&spec.flags_and_sizes, text.substr(0, count));
    text.remove_prefix(count);
    return count <= kDigitsMax + 1;
  };
  const absl::string_view whole = text;
  bool is_right = take_digits();
  if (is_right && !text.empty() && text[0] == '.') {
    spec.flags_and_sizes += '.';
    text.remove_prefix(1);
    is_right = !text.empty() && absl::ascii_isdigit(text[0]) && take_digits();
  }
  if (is_right && !text.empty()) {
    is_right = absl::StrContains("dfFeEgG", text.substr(0, 1));
    spec.type = text[0];
    text.remove_prefix(1);
  }
  if (is_right && text.empty()) return spec;
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", whole, "\" is no format of a number; expected for example \"02d\" ",
      "or \".2f\""));
}

std::string Print(const Spec& spec, bool is_integer, double value) {
  char text[512];
  if (is_integer && (spec.type == 0 || spec.type == 'd')) {
    const std::string format = absl::StrCat("%", spec.flags_and_sizes, "lld");
    std::snprintf(text, sizeof(text), format.c_str(),
                  static_cast<long long>(value));
    return text;
  }
  if (spec.type == 0 && spec.flags_and_sizes.empty()) {
    return ShortestText(value);
  }
  const std::string format =
      absl::StrCat("%", spec.flags_and_sizes,
                   std::string(1, spec.type == 0 ? 'g' : spec.type));
  std::snprintf(text, sizeof(text), format.c_str(), value);
  return text;
}

absl::StatusOr<std::string> FormatField(absl::string_view field, int64_t epoch,
                                        int64_t batch, const Logs& logs) {
  const size_t colon = field.find(':');
  const absl::string_view name = field.substr(0, colon);
  ASSIGN_OR_RETURN(const Spec spec, ParseSpec(colon == absl::string_view::npos
                                                  ? absl::string_view()
                                                  : field.substr(colon + 1)));
  if (name == "epoch") return Print(spec, true, static_cast<double>(epoch));
  if (name == "batch") return Print(spec, true, static_cast<double>(batch));
  const auto found = logs.find(std::string(name));
  if (found == logs.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name, "\" is not there; there are epoch, batch",
        logs.empty() ? "" : ", ",
        absl::StrJoin(logs, ", ", [](std::string* out, const auto& entry) {
          out->append(entry.first);
        })));
  }
  if (spec.type == 'd') {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is no integer, and \"d\" prints those"));
  }
  return Print(spec, false, found->second);
}

}  // namespace

absl::StatusOr<std::string> FormatFileName(absl::string_view pattern,
                                           int64_t epoch, int64_t batch,
                                           const Logs& logs) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const bool is_doubled = i + 1 < pattern.size() && pattern[i + 1] == c;
    if (c != '{' && c != '}') {
      name += c;
      continue;
    }
    if (is_doubled) {
      name += c;
      ++i;
      continue;
    }
    const size_t end = pattern.find('}', i);
    if (c == '}' || end == absl::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat(
          "file name \"", pattern, "\": a brace stands alone; double it"));
    }
    const absl::StatusOr<std::string> field =
        FormatField(pattern.substr(i + 1, end - i - 1), epoch, batch, logs);
    if (!field.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "file name \"", pattern, "\": ", field.status().message()));
    }
    name += *field;
    i = end;
  }
  return name;
}

}  // namespace muster
