#include "common/net/collectives/peers/job_digest.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "proto/peer_group.pb.h"

namespace muster {
namespace {

// Limits the size of a hello if the job file is long.
constexpr size_t kTextBytesMax = 64 << 10;
constexpr size_t kQuotedBytesMax = 120;
constexpr uint64_t kFingerprintKey = 0x6a6f622064696765;

std::string Quote(absl::string_view text) {
  const bool is_cut = text.size() > kQuotedBytesMax;
  return absl::StrCat("\"",
                      absl::Utf8SafeCEscape(text.substr(0, kQuotedBytesMax)),
                      is_cut ? "...\"" : "\"");
}

// Line `number` (from 0) of `text`, or "no line" past its end.
std::string QuoteLine(absl::string_view text, int number) {
  for (int i = 0; i < number; ++i) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) return "no line";
    text.remove_prefix(end + 1);
  }
  if (text.empty()) return "no line";
  return Quote(text.substr(0, text.find('\n')));
}

proto::DigestSection EncodeSection(absl::string_view name,
                                   absl::string_view text) {
  proto::DigestSection section;
  section.set_name(std::string(name));
  section.set_text(std::string(text.substr(0, kTextBytesMax)));
  section.set_size_bytes(text.size());
  section.set_fingerprint(FoldIn(kFingerprintKey, text));
  return section;
}

std::string DescribeSection(const proto::DigestSection& there,
                            const proto::DigestSection& here,
                            const std::vector<int>& lines) {
  if (there.fingerprint() == here.fingerprint() &&
      there.size_bytes() == here.size_bytes()) {
    return "";
  }
  const auto [in_there, in_here] =
      std::mismatch(there.text().begin(), there.text().end(),
                    here.text().begin(), here.text().end());
  if (there.text() == here.text()) {
    return absl::StrCat(here.name(), " differs after its first ",
                        here.text().size(), " bytes");
  }
  if (!absl::StrContains(there.text(), '\n') &&
      !absl::StrContains(here.text(), '\n')) {
    return absl::StrCat(here.name(), " is ", Quote(there.text()), " there and ",
                        Quote(here.text()), " here");
  }
  const int line =
      static_cast<int>(std::count(here.text().begin(), in_here, '\n'));
  // A line that is missing here has no line number in the file.
  const bool has_number =
      lines.empty() || static_cast<size_t>(line) < lines.size();
  return absl::StrCat(
      here.name(),
      has_number
          ? absl::StrCat(", line ", lines.empty() ? line + 1 : lines[line], ",")
          : "",
      " is ", QuoteLine(there.text(), line), " there and ",
      QuoteLine(here.text(), line), " here");
}

}  // namespace

void JobDigest::EncodeTo(proto::PeerHello* hello) const {
  hello->clear_digest();
  for (const Section& section : sections_) {
    *hello->add_digest() = EncodeSection(section.name, section.text);
  }
}

std::string JobDigest::DescribeDifference(
    const proto::PeerHello& hello_there) const {
  const auto& there = hello_there.digest();
  for (const Section& own : sections_) {
    const auto it = std::find_if(
        there.begin(), there.end(),
        [&own](const auto& section) { return section.name() == own.name; });
    if (it == there.end()) {
      return absl::StrCat("there is no section \"", own.name,
                          "\" there, and one here");
    }
    std::string difference =
        DescribeSection(*it, EncodeSection(own.name, own.text), own.lines);
    if (!difference.empty()) return difference;
  }
  for (const proto::DigestSection& section : there) {
    const bool is_known = std::any_of(
        sections_.begin(), sections_.end(),
        [&](const Section& own) { return own.name == section.name(); });
    if (!is_known) {
      return absl::StrCat("there is a section ", Quote(section.name()),
                          " there, and none here");
    }
  }
  return "";
}

}  // namespace muster
