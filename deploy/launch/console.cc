#include "deploy/launch/console.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Colours that are readable on dark and light backgrounds.
constexpr absl::string_view kColors[] = {"\x1b[36m", "\x1b[33m", "\x1b[35m",
                                         "\x1b[32m", "\x1b[34m", "\x1b[31m"};
constexpr absl::string_view kPlain = "\x1b[0m";
constexpr absl::string_view kWipeLine = "\r\x1b[K";

void WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // The terminal is closed; the logs remain.
    text.remove_prefix(written);
  }
}

}  // namespace

void Console::WriteLine(ConsoleStream stream, absl::string_view label,
                        int color_index, absl::string_view line) {
  std::string text;
  if (bar_on_line_) {
    WriteAll(options_.output_fd, kWipeLine);
    bar_on_line_ = false;
  }
  const std::string padding(
      std::max(0, options_.label_width - static_cast<int>(label.size())), ' ');
  if (options_.color) {
    const absl::string_view color =
        kColors[static_cast<size_t>(color_index) % std::size(kColors)];
    absl::StrAppend(&text, color, label, padding, " |", kPlain);
  } else {
    absl::StrAppend(&text, label, padding, " |");
  }
  if (!line.empty()) absl::StrAppend(&text, " ", line);
  absl::StrAppend(&text, "\n");
  WriteAll(
      stream == ConsoleStream::kOutput ? options_.output_fd : options_.error_fd,
      text);
}

void Console::WriteRaw(absl::string_view bytes) {
  if (bytes.empty()) return;
  WriteAll(options_.output_fd, bytes);
  bar_on_line_ = bytes.back() != '\n';
}

}  // namespace muster
