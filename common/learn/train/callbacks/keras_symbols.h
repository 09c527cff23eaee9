#ifndef COMMON_LEARN_TRAIN_CALLBACKS_KERAS_SYMBOLS_H_
#define COMMON_LEARN_TRAIN_CALLBACKS_KERAS_SYMBOLS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

// Returns docs/keras_symbols.md: which classes of Keras are here, and what to
// use in place of the others.
//
// `symbols` is docs/keras_symbols.txt, which lists Keras' classes. A line that
// ends with ":" begins a section: "layers:". Every other line is
//
//   CLASS                 a kind in a table of the program, such as kLayerKinds
//   CLASS | here: TEXT    here, but in no table, because no file can name it
//   CLASS | TEXT          not here; TEXT, which may be empty, says what to use
//
// Empty lines and lines that begin with "#" are comments.
//   kInvalidArgument  a line is none of these, a section is unknown, missing or
//                     listed twice, or a class is listed twice
//   kFailedPrecondition  the list is outdated: a table has a class that the
//                        list says is not here or does not name, or lacks one
//                        that the list says it has. Names all of them
absl::StatusOr<std::string> KerasSymbolsPage(absl::string_view symbols);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_CALLBACKS_KERAS_SYMBOLS_H_
