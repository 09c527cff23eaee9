#ifndef COMMON_LEARN_TRAIN_BASE_PROGRESS_BAR_H_
#define COMMON_LEARN_TRAIN_BASE_PROGRESS_BAR_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/core/system/clock.h"

namespace muster {

// How much progress a run prints. Equivalent to: Keras' `verbose`.
enum class Verbosity {
  kAuto,    // On the chief: a bar on a terminal, a line for each epoch
            // elsewhere. Nothing on the other workers.
  kSilent,  // Keras' 0.
  kBar,     // Keras' 1: one line, which is redrawn.
  kLines,   // Keras' 2: one line at the end of each epoch.
};

// Resolves kAuto for this process: kSilent if it is not the chief, kBar if
// standard output is a terminal, else kLines. Returns other values unchanged.
Verbosity ResolveVerbosity(Verbosity verbosity, bool is_chief);

// The values shown after the bar, in order.
using ProgressValues = std::vector<std::pair<std::string, double>>;

// Shows the progress of an epoch in the format of Keras 3:
//
//   391/391 ━━━━━━━━━━━━━━━━━━━━ 1s 2ms/step - loss: 0.2238
//
// Not thread-safe.
class ProgressBar {
 public:
  struct Options {
    // Total number of steps; unset if unknown.
    std::optional<int64_t> target = std::nullopt;
    Verbosity verbosity = Verbosity::kBar;
    std::string unit_name = "step";
    // True if the time per step excludes the first step, which compiles. False
    // if other processes run the steps: they report several steps at a time, so
    // the time of the first one is unknown.
    bool first_step_is_apart = true;
    // Uses colours and bold type. Unset: true unless the environment variable
    // NO_COLOR is set (https://no-color.org).
    std::optional<bool> color = std::nullopt;
    // The minimal time between two updates of the bar.
    absl::Duration interval = absl::Milliseconds(50);
    Clock* clock = Clock::Real();    // Borrowed.
    std::ostream* output = nullptr;  // Borrowed; null for standard output.
  };

  explicit ProgressBar(Options options);

  // True if Update() would draw now. Saves computing values that are not shown.
  bool IsDue() const;

  // `current` steps have finished. Values of earlier calls that are missing in
  // `values` are still shown.
  void Update(int64_t current, const ProgressValues& values);

  // Draws the last line of the epoch, always unless silent. `current` becomes
  // the target if there was none.
  void Finish(int64_t current, const ProgressValues& values);

 private:
  void Keep(const ProgressValues& values);
  double SecondsPerStep(int64_t current, absl::Time now);
  void DrawBar(int64_t current, double seconds_per_step, bool is_last);
  void DrawLine(int64_t current, double seconds_per_step);
  void Write(absl::string_view text);
  // Returns `text` with the style `escape`, or unchanged without colours.
  std::string Styled(absl::string_view escape, absl::string_view text) const;

  const Options options_;
  const bool has_color_;
  std::optional<int64_t> target_;
  const absl::Time start_;
  std::optional<absl::Time> first_step_end_;
  std::optional<absl::Time> last_update_;
  int64_t previous_width_ = 0;
  ProgressValues values_;
};

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_BASE_PROGRESS_BAR_H_
