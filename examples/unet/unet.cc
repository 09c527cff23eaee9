// A U-Net that finds the shapes in noisy images. Equivalent to "Image
// segmentation with a U-Net-like architecture" in the Keras documentation, on
// disks and boxes that the program draws.
//
//   unet                                            (one process)
//   launch --workers=2 --ps=0 --program=unet        (synchronous workers)

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster.h"

namespace {

using namespace muster;  // NOLINT: as in a user's program.

constexpr int64_t kSize = 32;

// Returns images [count, size, size, 1] with a disk or a box on noise, and
// masks of the same shape, which are 1 inside the disk or box. Equal seeds give
// equal results.
Element DrawShapes(int64_t count, uint32_t seed) {
  Tensor images(DType::kFloat32, {count, kSize, kSize, 1});
  Tensor masks(DType::kFloat32, {count, kSize, kSize, 1});
  float* pixel = images.mutable_flat<float>().data();
  float* mask = masks.mutable_flat<float>().data();
  std::mt19937 random(seed);
  const auto below = [&](uint32_t end) {
    return static_cast<int64_t>(random() % end);
  };
  for (int64_t i = 0; i < count; ++i) {
    const bool is_disk = below(2) == 0;
    const int64_t radius = 4 + below(6);
    const int64_t row = radius + below(kSize - 2 * radius);
    const int64_t column = radius + below(kSize - 2 * radius);
    for (int64_t y = -row; y < kSize - row; ++y) {
      for (int64_t x = -column; x < kSize - column; ++x) {
        const bool inside =
            is_disk ? x * x + y * y <= radius * radius
                    : std::abs(x) <= radius && 2 * std::abs(y) <= radius;
        const float noise = static_cast<float>(below(1000)) / 1000;
        *pixel++ = inside ? 0.3f + 0.7f * noise : 0.7f * noise;
        *mask++ = inside ? 1 : 0;
      }
    }
  }
  return {images, masks};
}

LayerOutput TwoConvolutions(LayerOutput x, int64_t filters) {
  for (int i = 0; i < 2; ++i) {
    x = Conv2D(filters, 3,
               {.padding = Padding::kSame, .activation = Activation::kRelu})(x);
  }
  return x;
}

// Halves the extents twice, and doubles them again. Each level on the way up
// also gets the output of the same level on the way down.
Model UNet() {
  const LayerOutput image = Input({kSize, kSize, 1});
  const LayerOutput full = TwoConvolutions(image, 8);
  const LayerOutput half = TwoConvolutions(MaxPooling2D(2)(full), 16);
  LayerOutput x = TwoConvolutions(MaxPooling2D(2)(half), 32);
  x = Conv2DTranspose(16, 2, {.strides = 2})(x);
  x = TwoConvolutions(Concatenate()({half, x}), 16);
  x = Conv2DTranspose(8, 2, {.strides = 2})(x);
  x = TwoConvolutions(Concatenate()({full, x}), 8);
  return Model(image, Conv2D(1, 1, {.activation = Activation::kSigmoid})(x));
}

absl::Status Train(Task& task) {
  ASSIGN_OR_RETURN(auto strategy, MultiWorkerMirroredStrategy::Create(task));
  Model model = UNet();
  RETURN_IF_ERROR(model.Compile(
      *strategy, {.optimizer = Adam({.learning_rate = 0.003}),
                  .loss = BinaryCrossentropy(),
                  .metrics = {BinaryIoU({.target_class_ids = {1}})},
                  .seed = 1}));
  RETURN_IF_ERROR(
      model.Fit(DrawShapes(512, /*seed=*/1), {.batch_size = 16, .epochs = 8})
          .status());
  ASSIGN_OR_RETURN(const Logs logs, model.Evaluate(DrawShapes(64, /*seed=*/2)));
  const double iou = logs.at("binary_io_u");
  if (strategy->is_chief()) std::cout << "test IoU " << iou << std::endl;
  if (iou >= 0.8) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("expected an IoU of 0.8, got ", iou));
}

}  // namespace

int main(int argc, char** argv) { return muster::RunTask(argc, argv, Train); }
