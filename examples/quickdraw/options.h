#ifndef EXAMPLES_QUICKDRAW_OPTIONS_H_
#define EXAMPLES_QUICKDRAW_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster.h"

// The common parts of the two programs that recognize drawings.
namespace quickdraw {

// The settings of both programs, from --set.
struct Options {
  std::string data_dir;
  int64_t image_size = 0;
  int64_t batch_size = 0;  // The global batch size.
  int epochs = 0;
  std::vector<std::string> devices;  // If empty, all GPUs, or one CPU.
};

std::vector<muster::Setting> Flags();

//   kInvalidArgument  a setting is not a number above 0
absl::StatusOr<Options> ReadOptions(const muster::Task& task);

// Returns a model of two convolutions and two dense layers. It maps images
// [size, size, 1] to one logit for each class.
muster::LayerPtr Network(int64_t image_size, size_t class_count);

}  // namespace quickdraw

#endif  // EXAMPLES_QUICKDRAW_OPTIONS_H_
