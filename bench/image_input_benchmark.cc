// Throughput of an image input pipeline: JPEG files are read, decoded, resized,
// scaled and batched. image_input_benchmark.py compares it with tf.data.
//
//   image_input_benchmark make FOLDER COUNT HEIGHT WIDTH
//   image_input_benchmark run FOLDER HEIGHT WIDTH THREADS SECONDS [fast]

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/core/base/random.h"
#include "common/core/base/status_macros.h"
#include "common/core/system/log.h"
#include "common/dataset/dataset.h"
#include "common/dataset/images/image_folder.h"
#include "common/io/image/image.h"
#include "common/io/image/jpeg.h"

namespace muster {
namespace {

constexpr int64_t kBatchSize = 32;

// Returns an image of waves, edges and noise, which needs about as many bits
// per pixel as a photograph.
Image Photograph(int64_t height, int64_t width, uint64_t seed) {
  RandomStream random(seed);
  Image image = {.height = height, .width = width, .channels = 3};
  const double period = 10.0 + static_cast<double>(random.Below(60));
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const double wave = 70 *
                          std::sin(static_cast<double>(x + y / 3) / period) *
                          std::cos(static_cast<double>(y) / (0.7 * period));
      const double edge = (x / 61 + y / 47) % 3 == 0 ? 40 : 0;
      for (int c = 0; c < 3; ++c) {
        const double grain = static_cast<double>(random.Next64() % 24) - 12;
        image.pixels.push_back(static_cast<uint8_t>(
            std::clamp(110 + wave * (1 - 0.2 * c) + edge + grain, 0.0, 255.0)));
      }
    }
  }
  return image;
}

absl::Status Make(const std::string& folder, int64_t count, int64_t height,
                  int64_t width) {
  mkdir(folder.c_str(), 0777);
  int64_t size_bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    const std::string directory = folder + (i % 2 == 0 ? "/cat" : "/dog");
    mkdir(directory.c_str(), 0777);
    ASSIGN_OR_RETURN(const std::string content,
                     EncodeJpeg(Photograph(height, width, i), {.quality = 85}));
    size_bytes += static_cast<int64_t>(content.size());
    std::ofstream(absl::StrCat(directory, "/", i, ".jpg"), std::ios::binary)
        << content;
  }
  std::printf("%ld files of %ld bytes on average\n", count, size_bytes / count);
  return absl::OkStatus();
}

absl::Status Run(const std::string& folder, int64_t height, int64_t width,
                 int thread_count, double seconds, bool fast_downscale) {
  const Dataset dataset = ImageFolder(folder, {.image_size = {height, width},
                                               .scale = 1.0 / 255,
                                               .fast_downscale = fast_downscale,
                                               .thread_count = thread_count,
                                               .shuffle = false})
                              .Repeat()
                              .Batch(kBatchSize);
  ASSIGN_OR_RETURN(const auto iterator, dataset.MakeIterator());
  Element batch;
  using Clock = std::chrono::steady_clock;
  // Warm-up: during the first batches, memory and files are not in the caches.
  Clock::time_point begin;
  int64_t image_count = -4 * kBatchSize;
  double passed = 0;
  while (passed < seconds) {
    if (image_count == 0) begin = Clock::now();
    ASSIGN_OR_RETURN(const bool more, iterator->Next(&batch));
    if (!more) break;
    image_count += kBatchSize;
    if (image_count > 0) {
      passed = std::chrono::duration<double>(Clock::now() - begin).count();
    }
  }
  std::printf("{\"images_per_s\": %.1f, \"threads\": %d, \"fast\": %s}\n",
              static_cast<double>(image_count) / passed, thread_count,
              fast_downscale ? "true" : "false");
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  int64_t numbers[4] = {};
  for (int i = 3; i < argc && i < 7; ++i) {
    if (!absl::SimpleAtoi(argv[i], &numbers[i - 3])) argc = 0;
  }
  absl::Status status = absl::InvalidArgumentError(
      "image_input_benchmark make FOLDER COUNT HEIGHT WIDTH | run FOLDER "
      "HEIGHT WIDTH THREADS SECONDS [fast]");
  if (argc == 6 && std::strcmp(argv[1], "make") == 0) {
    status = Make(argv[2], numbers[0], numbers[1], numbers[2]);
  } else if (argc >= 7 && std::strcmp(argv[1], "run") == 0) {
    status = Run(argv[2], numbers[0], numbers[1], static_cast<int>(numbers[2]),
                 static_cast<double>(numbers[3]), argc > 7);
  }
  if (!status.ok()) LOG(ERROR) << status.message();
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
