// Tests updates of arrays of any length that begin at any element.

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/compute/functions/update.h"
#include "common/compute/kernels/cuda/device_code/update_image.h"
#include "common/compute/kernels/cuda/device_code/update_parameters.h"
#include "common/core/base/testing/status_matchers.h"
#include "common/core/device/driver/kernel_image.h"
#include "common/core/device/driver/launch_shape.h"
#include "common/core/device/simulated/simulated_grid.h"
#include "gtest/gtest.h"

namespace muster::internal {
namespace {

constexpr int64_t kBlock = UpdateParameters::kElementsPerBlock;

void RunUpdate(absl::string_view name, UpdateParameters parameters,
               int64_t block_count) {
  for (const SimulatedKernel& kernel : update_image().simulated) {
    if (kernel.name != name) continue;
    void* arguments[] = {&parameters};
    LaunchShape shape;
    shape.grid[0] = static_cast<uint32_t>(block_count);
    shape.block[0] = UpdateParameters::kThreads;
    ASSERT_OK(RunSimulatedGrid(kernel, shape, arguments, /*seed=*/1));
    return;
  }
  FAIL() << "no kernel " << name;
}

// An array of numbers between 0.5 and 1.5 that begins `shift` elements after an
// aligned address, and is followed by one more element.
template <typename T>
struct Array {
  Array(int64_t count, int shift, int salt) : shift(shift) {
    memory.resize(static_cast<size_t>(count + shift + 1 + 16 / sizeof(T)));
    while (reinterpret_cast<uintptr_t>(memory.data() + align) % 16 != 0) {
      ++align;
    }
    for (size_t i = 0; i < memory.size(); ++i) {
      memory[i] = T(0.5) + static_cast<T>((i * 37 + salt * 11) % 101) / 101;
    }
  }
  T* data() { return memory.data() + align + shift; }

  int shift;
  int align = 0;
  std::vector<T> memory;
};

// The arrays of an item: gradient, variable, two slots.
template <typename T>
using Arrays = std::vector<Array<T>>;

template <typename T>
Arrays<T> MakeArrays(int64_t count, int shifted) {
  Arrays<T> arrays;
  for (int i = 0; i < 4; ++i) {
    arrays.emplace_back(count, i == shifted ? 1 : 0, i);
  }
  return arrays;
}

template <typename T>
UpdateItem ItemOf(Arrays<T>& arrays, int64_t count, int64_t first_block) {
  UpdateItem item = {};
  item.gradient = arrays[0].data();
  item.variable = arrays[1].data();
  item.slots[0] = arrays[2].data();
  item.slots[1] = arrays[3].data();
  item.count = count;
  item.first_block = first_block;
  item.row_elements = 1;
  item.type = sizeof(T) == sizeof(float) ? ElementType::kFloat32
                                         : ElementType::kFloat64;
  return item;
}

template <typename T>
T LimitedOnHost(const UpdateItem& item, T g, double factor) {
  if (item.gradients_in_sum != 0) g /= static_cast<T>(item.gradients_in_sum);
  const T bound = static_cast<T>(item.clip_limit);
  if (item.clip == ClipKind::kValue) return g > bound ? bound : g;
  return item.clip == ClipKind::kNone ? g : g * static_cast<T>(factor);
}

// Checks an update with the gradient limits of `form`. Array `shifted` is not
// aligned; -1: all arrays are aligned.
template <typename T>
void ExpectUpdates(const UpdateItem& form, int64_t count, int shifted) {
  SCOPED_TRACE(absl::StrCat(sizeof(T), " bytes, ", count, " elements, array ",
                            shifted, " is shifted"));
  const AdamCoefficients<T> coefficients = {T(0.01),  T(0.1),  T(0.02), T(0.1),
                                            T(0.001), T(1e-7), false};
  // `others` belong to a second item, which follows the checked one.
  Arrays<T> arrays = MakeArrays<T>(count, shifted);
  Arrays<T> wanted = arrays;
  Arrays<T> others = MakeArrays<T>(5, -1);
  const int64_t block_count = (count + kBlock - 1) / kBlock;
  std::vector<UpdateItem> items = {ItemOf(arrays, count, 0),
                                   ItemOf(others, 5, block_count)};
  UpdateItem& item = items[0];
  item.gradients_in_sum = form.gradients_in_sum;
  item.clip = form.clip;
  item.clip_limit = form.clip_limit;
  const double factors[] = {0.75, 1};
  UpdateParameters parameters = {};
  parameters.items = items.data();
  parameters.item_count = 2;
  parameters.factors = factors;
  std::memcpy(parameters.coefficients, &coefficients, sizeof(coefficients));
  RunUpdate(
      sizeof(T) == sizeof(float) ? "update_adam_float" : "update_adam_double",
      parameters, block_count + 1);
  for (int64_t i = 0; i < count; ++i) {
    T slots[] = {wanted[2].data()[i], wanted[3].data()[i]};
    const T g = LimitedOnHost(item, wanted[0].data()[i], factors[0]);
    wanted[1].data()[i] = AdamUpdate<false>::Apply<T>(
        coefficients, g, wanted[1].data()[i], slots);
    wanted[2].data()[i] = slots[0];
    wanted[3].data()[i] = slots[1];
    if (item.gradients_in_sum != 0) wanted[0].data()[i] = 0;
  }
  // Compares the elements before and after the arrays, too: updates must not
  // change them.
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(arrays[i].memory, wanted[i].memory) << "array " << i;
  }
}

TEST(UpdateTest, UpdatesAnyCountFromAnyElement) {
  for (const int64_t count :
       {int64_t{1}, kBlock - 1, kBlock, kBlock + 1, 2 * kBlock + 6}) {
    for (const int shifted : {-1, 0, 1, 2, 3}) {
      ExpectUpdates<float>({}, count, shifted);
      ExpectUpdates<double>({}, count, shifted);
    }
  }
}

TEST(UpdateTest, LimitsGradientsOfWholeAndOfPartialBlocks) {
  UpdateItem value = {};
  value.clip = ClipKind::kValue;
  value.clip_limit = 0.8;
  UpdateItem norm = {};
  norm.clip = ClipKind::kNorm;
  UpdateItem sum = value;
  sum.gradients_in_sum = 3;
  sum.clip_limit = 0.3;
  for (const UpdateItem& form : {value, norm, sum}) {
    for (const int shifted : {-1, 0}) {
      ExpectUpdates<float>(form, kBlock + 7, shifted);
      ExpectUpdates<double>(form, kBlock + 7, shifted);
    }
  }
}

}  // namespace
}  // namespace muster::internal
