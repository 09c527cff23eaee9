#ifndef COMMON_CORE_TENSOR_PAGE_MEMORY_H_
#define COMMON_CORE_TENSOR_PAGE_MEMORY_H_

#include <cstddef>
#include <memory>

#include "common/core/tensor/buffer.h"

namespace muster {

// Allocates memory that begins at a page and shares no page with other memory,
// so that it can be pinned. Filled with zeros. Terminates the process if the
// machine is out of memory.
std::shared_ptr<Buffer> AllocatePages(size_t size_bytes);

}  // namespace muster

#endif  // COMMON_CORE_TENSOR_PAGE_MEMORY_H_
