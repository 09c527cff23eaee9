#ifndef DEPLOY_LAUNCH_CONSOLE_H_
#define DEPLOY_LAUNCH_CONSOLE_H_

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

enum class ConsoleStream { kOutput, kError };

// The output of `launch`: lines of many tasks, each behind its
// task's name, and the progress bar of one of them where that is a terminal.
//
// Not thread-safe.
class Console {
 public:
  struct Options {
    int output_fd = 1;
    int error_fd = 2;
    bool color = false;
    int label_width = 0;  // Shorter labels are filled up.
  };

  explicit Console(Options options) : options_(options) {}

  // "worker 1 | line\n". `color_index` picks a colour that tells tasks apart. A
  // progress bar that stands on the line is wiped; its owner draws it again.
  void WriteLine(ConsoleStream stream, absl::string_view label, int color_index,
                 absl::string_view line);

  // Bytes of the task that owns the terminal, as they are.
  void WriteRaw(absl::string_view bytes);

 private:
  const Options options_;
  bool bar_on_line_ = false;
};

// Splits a stream of bytes into lines. An unterminated line is handed on in
// pieces, so that memory stays bounded.
class LineCutter {
 public:
  // Calls emit(line) for each line completed by `bytes`.
  template <typename Emit>
  void Add(absl::string_view bytes, Emit emit) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const size_t room = kLineBytesMax - partial_.size();
      const size_t taken = std::min({end, bytes.size(), room});
      partial_.append(bytes.data(), taken);
      bytes.remove_prefix(taken);
      const bool at_end = !bytes.empty() && bytes.front() == '\n';
      if (at_end) bytes.remove_prefix(1);
      if (at_end || partial_.size() == kLineBytesMax) Flush(emit, at_end);
    }
  }

  // The rest, if there is any, at the end of the stream.
  template <typename Emit>
  void Finish(Emit emit) {
    Flush(emit, false);
  }

 private:
  static constexpr size_t kLineBytesMax = 1 << 16;

  template <typename Emit>
  void Flush(Emit emit, bool even_if_empty) {
    if (!even_if_empty && partial_.empty()) return;
    if (!partial_.empty() && partial_.back() == '\r') partial_.pop_back();
    emit(absl::string_view(partial_));
    partial_.clear();
  }

  std::string partial_;
};

}  // namespace muster

#endif  // DEPLOY_LAUNCH_CONSOLE_H_
