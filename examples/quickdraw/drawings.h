#ifndef EXAMPLES_QUICKDRAW_DRAWINGS_H_
#define EXAMPLES_QUICKDRAW_DRAWINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster.h"

namespace quickdraw {

// A line through several points. Coordinates are 0 to 255, from the top left.
struct Stroke {
  std::vector<float> x;
  std::vector<float> y;
};

// Reads one line of a file of Quick, Draw!, simplified or raw: a JSON object
// whose "drawing" has an array of x and one of y for each stroke. Other members
// are ignored.
//   kInvalidArgument  the line has another form; says what was expected
//
// Source: github.com/googlecreativelab/quickdraw-dataset, "The raw moderated
// dataset" and "Simplified Drawing files".
absl::StatusOr<std::vector<Stroke>> ParseStrokes(absl::string_view line);

// Returns a float32 image [size, size, 1] of the strokes: 0 is the paper, 1 the
// ink, and pixels at the border of a line have values between. The drawing
// keeps its proportions and is scaled to fill the image except for a margin.
muster::Tensor Rasterize(const std::vector<Stroke>& strokes, int64_t size);

struct Drawings {
  std::vector<std::string> classes;  // The names of the files, in their order.
  // Elements (image [size, size, 1], label). `train` has nine of ten drawings
  // of each class, mixed; `test` has every tenth.
  muster::Dataset train;
  muster::Dataset test;
};

// Opens the files NAME.ndjson of a directory, one for each class. Several
// threads read and draw them while elements are requested.
//   kNotFound         there are fewer than two files
//   kInvalidArgument  from the datasets: as ParseStrokes(), naming the file
absl::StatusOr<Drawings> OpenDrawings(const std::string& directory,
                                      int64_t size);

}  // namespace quickdraw

#endif  // EXAMPLES_QUICKDRAW_DRAWINGS_H_
