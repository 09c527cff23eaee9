#ifndef DEPLOY_LAUNCH_CONSOLE_H_
#define DEPLOY_LAUNCH_CONSOLE_H_

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace muster {

enum class ConsoleStream { kOutput, kError };

// The output of `launch`: lines of many tasks, each after its task's name, and
// on a terminal the progress bar of one task.
//
// Not thread-safe.
class Console {
 public:
  struct Options {
    int output_fd = 1;
    int error_fd = 2;
    bool color = false;
    int label_width = 0;  // Shorter labels are padded to this width.
  };

  explicit Console(Options options) : options_(options) {}

  // Writes "worker 1 | line\n". `color_index` selects the colour of the task.
  // Erases a progress bar on the current line; its task draws it again.
  void WriteLine(ConsoleStream stream, absl::string_view label, int color_index,
                 absl::string_view line);

  // Writes bytes of the task that owns the terminal unchanged.
  void WriteRaw(absl::string_view bytes);

 private:
  const Options options_;
  bool bar_on_line_ = false;
};

// Splits a stream of bytes into lines. Emits a very long line in pieces, so
// that memory stays bounded.
class LineSplitter {
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

  // Called at the end of the stream. Emits the last line if it is incomplete.
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
