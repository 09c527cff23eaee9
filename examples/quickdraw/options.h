#ifndef EXAMPLES_QUICKDRAW_OPTIONS_H_
#define EXAMPLES_QUICKDRAW_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster.h"

// What the two programs that recognize drawings have in common.
namespace quickdraw {

// The settings that both programs take by --set.
struct Options {
  std::string data_dir;
  int64_t image_size = 0;
  int64_t batch_size = 0;  // Of all replicas together.
  int epochs = 0;
  std::vector<std::string> devices;  // Empty: all GPUs, or one CPU.
};

std::vector<muster::Setting> Flags();

//   kInvalidArgument  a setting is no number above 0
absl::StatusOr<Options> ReadOptions(const muster::Task& task);

// Two convolutions and two dense layers: images [size, size, 1] to one logit
// for each class.
muster::LayerPtr Network(int64_t image_size, size_t class_count);

}  // namespace quickdraw

#endif  // EXAMPLES_QUICKDRAW_OPTIONS_H_
