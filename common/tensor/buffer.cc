#include "common/tensor/buffer.h"

#include <new>

namespace muster {

std::shared_ptr<Buffer> Buffer::Allocate(size_t size_bytes) {
  void* data = ::operator new (size_bytes, std::align_val_t{kAlignmentBytes});
  return std::shared_ptr<Buffer>(
      new Buffer(static_cast<uint8_t*>(data), size_bytes, nullptr));
}

std::shared_ptr<Buffer> Buffer::Wrap(void* data, size_t size_bytes,
                                     std::function<void()> release) {
  return std::shared_ptr<Buffer>(
      new Buffer(static_cast<uint8_t*>(data), size_bytes, std::move(release)));
}

Buffer::~Buffer() {
  if (release_ != nullptr) {
    release_();
  } else {
    ::operator delete (data_, std::align_val_t{kAlignmentBytes});
  }
}

}  // namespace muster
