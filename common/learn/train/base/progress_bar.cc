#include "common/learn/train/base/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {
namespace {

constexpr int kBarWidth = 20;
// Numbers no larger than this are shown with an exponent.
constexpr double kTiny = 1e-3;

std::string Repeat(absl::string_view piece, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) absl::StrAppend(&text, piece);
  return text;
}

constexpr absl::string_view kBold = "\x1b[1m";
constexpr absl::string_view kGreen = "\x1b[32m";
constexpr absl::string_view kGrey = "\x1b[37m";
constexpr absl::string_view kPlain = "\x1b[0m";

// An empty NO_COLOR counts as unset.
bool IsColorAllowed() {
  const char* const no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == '\0';
}

// Rounds as Keras does: half to even.
std::string Rounded(double value) { return absl::StrFormat("%.0f", value); }

std::string TimePerUnit(double seconds, absl::string_view unit) {
  if (seconds >= 1 || seconds == 0) {
    return absl::StrCat(" ", Rounded(seconds), "s/", unit);
  }
  if (seconds >= 1e-3) {
    return absl::StrCat(" ", Rounded(seconds * 1e3), "ms/", unit);
  }
  return absl::StrCat(" ", Rounded(seconds * 1e6), "us/", unit);
}

std::string TimeLeft(double seconds) {
  const int64_t whole = static_cast<int64_t>(seconds);
  if (seconds > 3600) {
    return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole % 3600 / 60,
                           whole % 60);
  }
  if (seconds > 60) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrCat(whole, "s");
}

// "  7/100", padded to the width of the target.
std::string Count(int64_t current, int64_t target) {
  const int width = static_cast<int>(absl::StrCat(target).size());
  return absl::StrFormat("%*d/%d", width, current, target);
}

// Returns the number of columns on the screen. Escape sequences take none; a
// bar character takes one, although it has three bytes.
int64_t VisibleWidth(absl::string_view text) {
  int64_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    const bool continues_character = (text[i] & 0xc0) == 0x80;
    if (!continues_character) ++width;
  }
  return width;
}

}  // namespace

Verbosity ResolveVerbosity(Verbosity verbosity, bool is_chief) {
  if (verbosity != Verbosity::kAuto) return verbosity;
  if (!is_chief) return Verbosity::kSilent;
  return isatty(STDOUT_FILENO) ? Verbosity::kBar : Verbosity::kLines;
}

ProgressBar::ProgressBar(Options options)
    : options_(std::move(options)),
      has_color_(options_.color.value_or(IsColorAllowed())),
      target_(options_.target),
      start_(options_.clock->Now()) {}

bool ProgressBar::IsDue() const {
  if (options_.verbosity != Verbosity::kBar) return false;
  return !last_update_.has_value() ||
         options_.clock->Now() - *last_update_ >= options_.interval;
}

void ProgressBar::Update(int64_t current, const ProgressValues& values) {
  Keep(values);
  const absl::Time now = options_.clock->Now();
  const double seconds_per_step = SecondsPerStep(current, now);
  if (!IsDue()) return;
  DrawBar(current, seconds_per_step, /*is_last=*/false);
  last_update_ = now;
}

void ProgressBar::Finish(int64_t current, const ProgressValues& values) {
  Keep(values);
  if (!target_.has_value()) target_ = current;
  const double seconds_per_step =
      SecondsPerStep(current, options_.clock->Now());
  if (options_.verbosity == Verbosity::kBar) {
    DrawBar(current, seconds_per_step, /*is_last=*/true);
  } else if (options_.verbosity == Verbosity::kLines) {
    DrawLine(current, seconds_per_step);
  }
}

void ProgressBar::Keep(const ProgressValues& values) {
  for (const auto& value : values) {
    const auto known = std::find_if(
        values_.begin(), values_.end(),
        [&](const auto& entry) { return entry.first == value.first; });
    if (known == values_.end()) {
      values_.push_back(value);
    } else {
      known->second = value.second;
    }
  }
}

double ProgressBar::SecondsPerStep(int64_t current, absl::Time now) {
  if (current == 0) return 0;
  double seconds;
  if (first_step_end_.has_value() && current > 1 &&
      options_.first_step_is_apart) {
    seconds = absl::ToDoubleSeconds(now - *first_step_end_) /
              static_cast<double>(current - 1);
  } else {
    seconds =
        absl::ToDoubleSeconds(now - start_) / static_cast<double>(current);
  }
  if (current == 1) first_step_end_ = now;
  return seconds;
}

void ProgressBar::DrawBar(int64_t current, double seconds_per_step,
                          bool is_last) {
  std::string line;
  if (target_.has_value()) {
    const int64_t target = std::max<int64_t>(*target_, 1);
    const int64_t done =
        std::min<int64_t>(kBarWidth * current / target, kBarWidth);
    absl::StrAppend(&line, Styled(kBold, Count(current, target)), " ");
    if (done > 0) absl::StrAppend(&line, Styled(kGreen, Repeat("━", done)));
    // Without colours, the remaining part must be blank to differ from the
    // finished part.
    absl::StrAppend(&line, has_color_
                               ? Styled(kGrey, Repeat("━", kBarWidth - done))
                               : Repeat(" ", kBarWidth - done));
  } else {
    line = absl::StrFormat("%7d/Unknown", current);
  }

  if (target_.has_value() && !is_last) {
    const double left =
        seconds_per_step * static_cast<double>(*target_ - current);
    absl::StrAppend(&line, " ", Styled(kBold, TimeLeft(std::max(left, 0.0))));
  } else {
    const double elapsed =
        absl::ToDoubleSeconds(options_.clock->Now() - start_);
    absl::StrAppend(&line, " ",
                    Styled(kBold, absl::StrCat(Rounded(elapsed), "s")));
  }
  absl::StrAppend(&line, TimePerUnit(seconds_per_step, options_.unit_name));
  for (const auto& [name, value] : values_) {
    absl::StrAppend(&line, " - ", name, ": ",
                    std::abs(value) > kTiny ? absl::StrFormat("%.4f", value)
                                            : absl::StrFormat("%.4e", value));
  }

  const int64_t width = VisibleWidth(line);
  Write(absl::StrCat(Repeat("\b", previous_width_), "\r", line,
                     Repeat(" ", previous_width_ - width),
                     is_last ? "\n" : ""));
  previous_width_ = width;
}

void ProgressBar::DrawLine(int64_t current, double seconds_per_step) {
  const double elapsed = absl::ToDoubleSeconds(options_.clock->Now() - start_);
  std::string line =
      absl::StrCat(Count(current, *target_), " - ", Rounded(elapsed), "s -",
                   TimePerUnit(seconds_per_step, options_.unit_name));
  for (const auto& [name, value] : values_) {
    // Without abs(), unlike in the bar, as in Keras.
    absl::StrAppend(&line, " - ", name, ": ",
                    value > kTiny ? absl::StrFormat("%.4f", value)
                                  : absl::StrFormat("%.4e", value));
  }
  Write(line + "\n");
}

std::string ProgressBar::Styled(absl::string_view escape,
                                absl::string_view text) const {
  if (!has_color_) return std::string(text);
  return absl::StrCat(escape, text, kPlain);
}

void ProgressBar::Write(absl::string_view text) {
  std::ostream& output =
      options_.output == nullptr ? std::cout : *options_.output;
  output << text << std::flush;
}

}  // namespace muster
