#include "common/core/tensor/page_memory.h"

#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace muster {

std::shared_ptr<Buffer> AllocatePages(size_t size_bytes) {
  const auto page_bytes = static_cast<size_t>(getpagesize());
  const size_t pages_bytes =
      (size_bytes + page_bytes - 1) / page_bytes * page_bytes;
  // Allocates one more page, so that the pages fit wherever the memory begins.
  // Large memory begins at a page already, and has the large pages that Buffer
  // requests.
  std::shared_ptr<Buffer> memory = Buffer::Allocate(pages_bytes + page_bytes);
  const size_t misaligned =
      reinterpret_cast<uintptr_t>(memory->data()) % page_bytes;
  uint8_t* const begin =
      memory->data() + (misaligned == 0 ? 0 : page_bytes - misaligned);
  std::memset(begin, 0, pages_bytes);
  return Buffer::Wrap(begin, size_bytes, [memory] {});
}

}  // namespace muster
