#include "common/core/tensor/page_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace muster {

std::shared_ptr<Buffer> AllocatePages(size_t size_bytes) {
  const auto page_bytes = static_cast<size_t>(getpagesize());
  const size_t pages_bytes =
      (std::max<size_t>(size_bytes, 1) + page_bytes - 1) / page_bytes *
      page_bytes;
  const std::align_val_t alignment{page_bytes};
  void* const data = ::operator new(pages_bytes, alignment);
  std::memset(data, 0, pages_bytes);
  return Buffer::Wrap(data, size_bytes, [data, alignment] {
    ::operator delete(data, alignment);
  });
}

}  // namespace muster
