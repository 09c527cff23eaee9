#include "common/net/cluster/hostlist.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/core/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kNamesMax = 65536;
// Numbers of at most this many digits fit into 64 bits.
constexpr size_t kDigitsMax = 18;

absl::Status BadHostlist(absl::string_view part, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", absl::CHexEscape(part.substr(0, 64)), "\" ", problem));
}

bool ParseNumber(absl::string_view text, int64_t* number) {
  if (text.empty() || text.size() > kDigitsMax) return false;
  for (const char c : text) {
    if (!absl::ascii_isdigit(c)) return false;
  }
  return absl::SimpleAtoi(text, number);
}

// Expands "0-3,07", the content of brackets.
absl::StatusOr<std::vector<std::string>> ExpandRanges(
    absl::string_view ranges) {
  std::vector<std::string> numbers;
  for (absl::string_view range : absl::StrSplit(ranges, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    const bool is_single = !range.empty() && ends.first.size() == range.size();
    int64_t first = 0;
    int64_t last = 0;
    if (!ParseNumber(ends.first, &first) ||
        !ParseNumber(is_single ? ends.first : ends.second, &last) ||
        last < first) {
      return BadHostlist(range,
                         "is no range of ascending numbers, as in [0-3,07]");
    }
    if (static_cast<uint64_t>(last - first) >= kNamesMax - numbers.size()) {
      return BadHostlist(range,
                         absl::StrCat("names more than ", kNamesMax, " hosts"));
    }
    const int width = static_cast<int>(ends.first.size());
    for (int64_t number = first; number <= last; ++number) {
      numbers.push_back(absl::StrFormat("%0*d", width, number));
    }
  }
  return numbers;
}

// Replaces `names` with all combinations of a name and a suffix.
absl::Status Append(const std::vector<std::string>& suffixes,
                    absl::string_view entry, std::vector<std::string>* names) {
  if (names->size() * suffixes.size() > kNamesMax) {
    return BadHostlist(entry,
                       absl::StrCat("names more than ", kNamesMax, " hosts"));
  }
  std::vector<std::string> result;
  result.reserve(names->size() * suffixes.size());
  for (const std::string& name : *names) {
    for (const std::string& suffix : suffixes) result.push_back(name + suffix);
  }
  *names = std::move(result);
  return absl::OkStatus();
}

// Expands "rack[0-1]n[08-09]", an entry without commas outside brackets.
absl::StatusOr<std::vector<std::string>> ExpandEntry(absl::string_view entry) {
  if (entry.empty()) return BadHostlist(entry, "is an empty host name");
  std::vector<std::string> names = {""};
  absl::string_view rest = entry;
  while (!rest.empty()) {
    const size_t open = rest.find('[');
    const absl::string_view text = rest.substr(0, open);
    if (text.find(']') != absl::string_view::npos) {
      return BadHostlist(entry, "has a \"]\" without a \"[\"");
    }
    RETURN_IF_ERROR(Append({std::string(text)}, entry, &names));
    if (open == absl::string_view::npos) break;
    const size_t close = rest.find(']', open);
    if (close == absl::string_view::npos) {
      return BadHostlist(entry, "has a \"[\" without a \"]\"");
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> numbers,
                     ExpandRanges(rest.substr(open + 1, close - open - 1)));
    RETURN_IF_ERROR(Append(numbers, entry, &names));
    rest.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandHostlist(
    absl::string_view list) {
  std::vector<std::string> names;
  size_t begin = 0;
  bool is_in_brackets = false;
  for (size_t at = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '[') is_in_brackets = true;
    if (at < list.size() && list[at] == ']') is_in_brackets = false;
    const bool ends_entry =
        at == list.size() || (list[at] == ',' && !is_in_brackets);
    if (!ends_entry) continue;
    const absl::string_view entry = list.substr(begin, at - begin);
    ASSIGN_OR_RETURN(std::vector<std::string> expanded, ExpandEntry(entry));
    if (names.size() + expanded.size() > kNamesMax) {
      return BadHostlist(list,
                         absl::StrCat("names more than ", kNamesMax, " hosts"));
    }
    for (std::string& name : expanded) names.push_back(std::move(name));
    begin = at + 1;
  }
  return names;
}

}  // namespace muster
