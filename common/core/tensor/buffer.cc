#include "common/core/tensor/buffer.h"

#include <sys/mman.h>

#include <new>

namespace muster {
namespace {

// The size of a large page on common processors.
constexpr size_t kLargePageBytes = 2 << 20;

// Many small pages slow a training step by several percent, and more in a
// virtual machine, where each address is translated twice.
bool UsesLargePages(size_t size_bytes) {
  return size_bytes >= 2 * kLargePageBytes;
}

std::align_val_t AlignmentOf(size_t size_bytes) {
  return std::align_val_t{UsesLargePages(size_bytes) ? kLargePageBytes
                                                     : Buffer::kAlignmentBytes};
}

}  // namespace

std::shared_ptr<Buffer> Buffer::Allocate(size_t size_bytes) {
  void* data = ::operator new(size_bytes, AlignmentOf(size_bytes));
  // Only a hint: the code works without large pages.
  if (UsesLargePages(size_bytes)) madvise(data, size_bytes, MADV_HUGEPAGE);
  return std::shared_ptr<Buffer>(
      new Buffer(static_cast<uint8_t*>(data), size_bytes, nullptr, Place()));
}

std::shared_ptr<Buffer> Buffer::Wrap(void* data, size_t size_bytes,
                                     std::function<void()> release,
                                     Place place) {
  return std::shared_ptr<Buffer>(new Buffer(
      static_cast<uint8_t*>(data), size_bytes, std::move(release), place));
}

Buffer::~Buffer() {
  if (release_ != nullptr) {
    release_();
  } else {
    ::operator delete(data_, AlignmentOf(size_bytes_));
  }
}

}  // namespace muster
