#include "ps/slab.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/core/tensor/buffer.h"

namespace muster {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

}  // namespace

absl::StatusOr<Tensor> AllocateSlab(const TensorType& type) {
  const size_t size_bytes = type.shape.element_count() * SizeOf(type.dtype);
  if (size_bytes < kHugePageBytes) {
    return Tensor::Zeros(type.dtype, type.shape);
  }
  // One additional huge page, so that the slab can be aligned to a huge page.
  const size_t mapped_bytes = size_bytes + kHugePageBytes;
  void* mapped = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", type.ToString(), " (", size_bytes,
                     " bytes): ", std::strerror(errno)));
  }
  const auto address = reinterpret_cast<uintptr_t>(mapped);
  const size_t offset = -address % kHugePageBytes;
  madvise(mapped, mapped_bytes, MADV_HUGEPAGE);  // A hint; failure is harmless.
  auto buffer =
      Buffer::Wrap(static_cast<uint8_t*>(mapped) + offset, size_bytes,
                   [mapped, mapped_bytes] { munmap(mapped, mapped_bytes); });
  return Tensor(type.dtype, type.shape, std::move(buffer));
}

}  // namespace muster
