#include "common/io/storage/s3_xml.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace muster {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::vector<absl::string_view> XmlElements(absl::string_view xml,
                                           absl::string_view name) {
  const std::string begin = absl::StrCat("<", name, ">");
  const std::string end = absl::StrCat("</", name, ">");
  std::vector<absl::string_view> contents;
  for (size_t at = xml.find(begin); at != absl::string_view::npos;
       at = xml.find(begin, at)) {
    at += begin.size();
    const size_t close = xml.find(end, at);
    if (close == absl::string_view::npos) break;
    contents.push_back(xml.substr(at, close - at));
    at = close + end.size();
  }
  return contents;
}

std::string XmlText(absl::string_view xml, absl::string_view name) {
  const std::vector<absl::string_view> elements = XmlElements(xml, name);
  if (elements.empty()) return "";
  return absl::StrReplaceAll(elements.front(), {{"&lt;", "<"},
                                                {"&gt;", ">"},
                                                {"&quot;", "\""},
                                                {"&#34;", "\""},
                                                {"&apos;", "'"},
                                                {"&#39;", "'"},
                                                {"&amp;", "&"}});
}

std::string XmlEscape(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string UrlEscape(absl::string_view text, bool keeps_slashes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string escaped;
  for (const unsigned char c : text) {
    if (absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.' ||
        c == '~' || (c == '/' && keeps_slashes)) {
      escaped += static_cast<char>(c);
    } else {
      escaped += '%';
      escaped += kDigits[c >> 4];
      escaped += kDigits[c & 15];
    }
  }
  return escaped;
}

std::string UrlUnescape(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool has_digits = text[i] == '%' && i + 2 < text.size() &&
                            HexDigit(text[i + 1]) >= 0 &&
                            HexDigit(text[i + 2]) >= 0;
    if (has_digits) {
      plain +=
          static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::string UrlQuery(std::vector<std::pair<std::string, std::string>> query) {
  std::sort(query.begin(), query.end());
  return absl::StrJoin(query, "&", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, UrlEscape(entry.first, /*keeps_slashes=*/false), "=",
                    UrlEscape(entry.second, /*keeps_slashes=*/false));
  });
}

}  // namespace muster
