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

// How much a run says about itself. Equivalent to: Keras' `verbose`.
enum class Verbosity {
  kAuto,    // On the chief: a bar on a terminal, a line for each epoch
            // elsewhere. Nothing on the other workers.
  kSilent,  // Keras' 0.
  kBar,     // Keras' 1: one line, drawn again and again.
  kLines,   // Keras' 2: one line when an epoch is done.
};

// Returns what kAuto stands for on this process: kSilent unless it is the
// chief, or else kBar or kLines, by what standard output is.
Verbosity ResolveVerbosity(Verbosity verbosity, bool is_chief);

// The values shown behind the bar, in order.
using ProgressValues = std::vector<std::pair<std::string, double>>;

// How far an epoch has come, in the words of Keras 3:
//
//   391/391 ━━━━━━━━━━━━━━━━━━━━ 1s 2ms/step - loss: 0.2238
//
// Not thread-safe.
class ProgressBar {
 public:
  struct Options {
    // Steps to come in all; unset when not known.
    std::optional<int64_t> target = std::nullopt;
    Verbosity verbosity = Verbosity::kBar;
    std::string unit_name = "step";
    // Time per step leaves out the first step, which compiles. False where
    // other processes run the steps: their ends are reported several at a time,
    // so that nothing is known of the first alone.
    bool first_step_is_apart = true;
    // Colours and bold type. Unset: unless the environment has NO_COLOR
    // (https://no-color.org).
    std::optional<bool> color = std::nullopt;
    // The bar is drawn no more often than this.
    absl::Duration interval = absl::Milliseconds(50);
    Clock* clock = Clock::Real();    // Borrowed.
    std::ostream* output = nullptr;  // Borrowed; null for standard output.
  };

  explicit ProgressBar(Options options);

  // True if Update() would draw now. Saves computing values that are not shown.
  bool IsDue() const;

  // `current` steps are done. Values seen before and absent now keep their
  // place and number.
  void Update(int64_t current, const ProgressValues& values);

  // The last line of the epoch; always drawn unless silent. `current` becomes
  // the target if there was none.
  void Finish(int64_t current, const ProgressValues& values);

 private:
  void Keep(const ProgressValues& values);
  double SecondsPerStep(int64_t current, absl::Time now);
  void DrawBar(int64_t current, double seconds_per_step, bool is_last);
  void DrawLine(int64_t current, double seconds_per_step);
  void Write(absl::string_view text);
  // `text` within `escape`, or as it is without colours.
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
