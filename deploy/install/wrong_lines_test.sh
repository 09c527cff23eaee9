#!/usr/bin/env bash
# Checks that a mistake in a call of the library causes one error, at the program's line.
set -euo pipefail

if ! command -v clang++ >/dev/null; then
  echo "there is no clang++: the test is skipped. Install Debian's package clang."
  exit 0
fi
program=$TEST_TMPDIR/program.cc
cat >"$program" <<'PROGRAM'
#include "muster.h"
using namespace muster;
void Program(Model& model, Dataset& data) {
  model.Compile({.optimizer = Adam()}).IgnoreError();  // Right.
  model.Compile({.optimzer = Adam()}).IgnoreError();
  model.Compile({.loss = Adam()}).IgnoreError();
  model.Compile({.metrics = {Adam()}}).IgnoreError();
  Dense(64, {.activaton = Activation::kRelu});
  Dense(64, {.activation = 3});
  Dense("64");
  Adam({.learning_rat = 0.1});
  Sequential({Dense(3), Adam()});
  model.Fit(data, {.epoch = 3}).IgnoreError();
  model.Fit(3, {.epochs = 3}).IgnoreError();
  model.Fit(data, {.callbacks = {3}}).IgnoreError();
  model.Evaluate(data, {.stepss = 3}).IgnoreError();
  data.Batch("32");
  data.Map([](int x) { return x; });
  data.Map([](absl::Span<const Value> x) { return x[0]; });
  data.Filter([](absl::Span<const Value>) { return 3; });
  data.Shuffle(10, {.sed = 1});
  Csv("x", {.label = "y"});
  RunTask(0, nullptr, 3);
  RunTask(0, nullptr, [](int) { return 3; });
  ModelCheckpoint({.filepth = "x"});
  LambdaCallback({.on_epoch_ende = nullptr});
  Dense(3)(5);
  Loss("x", [](Value y) { return y; });
  Metric("x", 3, 4);
  Input({3}, {.title = "x"});
  Conv2D(3, 3, {.paddin = Padding::kSame});
}
PROGRAM
first=5
last=$(($(wc -l <"$program") - 1))

if clang++ -std=c++20 -fsyntax-only -ferror-limit=0 -Wno-unused \
  -I deploy/install/development_files_include "$program" 2>"$TEST_TMPDIR/errors"; then
  echo "wrong lines compile" >&2
  exit 1
fi
grep -E '(^|[ :])(fatal )?error: ' "$TEST_TMPDIR/errors" | cut -d : -f 1,2 |
  sed 's|.*/||' >"$TEST_TMPDIR/found"
seq "$first" "$last" | sed 's/^/program.cc:/' >"$TEST_TMPDIR/expected"
diff "$TEST_TMPDIR/expected" "$TEST_TMPDIR/found" || {
  cat "$TEST_TMPDIR/errors" >&2
  exit 1
}
# An error with its notes has fewer than 25 lines on average.
length=$(wc -l <"$TEST_TMPDIR/errors")
((length < 25 * (last - first + 1)))
