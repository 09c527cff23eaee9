#ifndef COMMON_LEARN_STRATEGY_INPUT_PINNED_BATCHES_H_
#define COMMON_LEARN_STRATEGY_INPUT_PINNED_BATCHES_H_

#include "common/core/device/device.h"
#include "common/dataset/dataset.h"

namespace muster {

// Returns the elements of `dataset` in pinned memory of the device's, from
// which it copies by itself while the host continues. Strings stay where they
// are. Memory of elements that are no longer used is used again.
//
// Elements are copied by the thread that draws them, and large ones by others
// beside it: Prefetch() behind this takes the copies off the thread that
// trains.
//
// `device` is borrowed, and outlives the elements.
//   errors  as of the dataset, and as PinnedMemory::Allocate()
Dataset InPinnedMemory(const Dataset& dataset, Device* device);

}  // namespace muster

#endif  // COMMON_LEARN_STRATEGY_INPUT_PINNED_BATCHES_H_
