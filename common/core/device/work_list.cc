#include "common/core/device/work_list.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "common/core/base/check.h"

namespace muster {

void WorkList::Clear() {
  size_ = 0;
  launch_count_ = 0;
  sizes_.clear();
  bytes_.clear();
}

WorkList::Item& WorkList::Add(Kind kind) {
  if (size_ == items_.size()) items_.emplace_back();
  Item& item = items_[size_++];
  item.kind = kind;
  item.call = nullptr;
  item.first_size = sizes_.size();
  item.size_count = 0;
  item.first_byte = bytes_.size();
  item.byte_count = 0;
  return item;
}

void WorkList::AddBytes(const void* bytes, size_t size_bytes, Item* item) {
  const auto* const begin = static_cast<const uint8_t*>(bytes);
  bytes_.insert(bytes_.end(), begin, begin + size_bytes);
  sizes_.push_back(size_bytes);
  ++item->size_count;
  item->byte_count += size_bytes;
}

void WorkList::AddLaunch(const KernelFunction& kernel, const LaunchShape& shape,
                         absl::Span<const KernelArgument> arguments) {
  Item& item = Add(Kind::kLaunch);
  item.kernel = kernel;
  item.shape = shape;
  for (const KernelArgument& argument : arguments) {
    AddBytes(argument.address, argument.size_bytes, &item);
  }
  ++launch_count_;
}

void WorkList::AddCopy(const void* from, Memory from_memory, void* to,
                       Memory to_memory, size_t size_bytes) {
  Item& item = Add(Kind::kCopy);
  item.from = from;
  item.from_memory = from_memory;
  item.to = to;
  item.to_memory = to_memory;
  item.size_bytes = size_bytes;
}

void WorkList::AddFill(void* to, uint8_t byte, size_t size_bytes) {
  Item& item = Add(Kind::kFill);
  item.to = to;
  item.byte = byte;
  item.size_bytes = size_bytes;
}

void WorkList::AddLibraryCall(LibraryCall call) {
  Item& item = Add(Kind::kLibraryCall);
  AddBytes(call.identity.data(), call.identity.size() * sizeof(const void*),
           &item);
  item.call = std::move(call.enqueue);
  ++launch_count_;
}

void WorkList::ListAddresses(const Item& item,
                             std::vector<void*>* addresses) const {
  addresses->clear();
  size_t byte = item.first_byte;
  for (size_t i = 0; i < item.size_count; ++i) {
    // The driver only reads arguments.
    addresses->push_back(const_cast<uint8_t*>(bytes_.data() + byte));
    byte += sizes_[item.first_size + i];
  }
}

absl::Status WorkList::Enqueue(size_t i, DeviceStream* stream) const {
  const Item& item = items_[i];
  switch (item.kind) {
    case Kind::kLaunch: {
      absl::InlinedVector<KernelArgument, 16> arguments;
      size_t byte = item.first_byte;
      for (size_t k = 0; k < item.size_count; ++k) {
        const size_t size_bytes = sizes_[item.first_size + k];
        arguments.push_back({bytes_.data() + byte, size_bytes});
        byte += size_bytes;
      }
      return stream->Launch(item.kernel, item.shape, arguments);
    }
    case Kind::kCopy:
      return stream->Copy(item.from, item.to, item.size_bytes);
    case Kind::kFill:
      return stream->Fill(item.to, item.byte, item.size_bytes);
    case Kind::kLibraryCall:
      return item.call(stream->handle());
  }
  return absl::InternalError("no such kind of work");
}

bool WorkList::HaveSameBytes(const Item& item, const WorkList& other,
                             const Item& other_item) const {
  return item.byte_count == other_item.byte_count &&
         std::memcmp(bytes_.data() + item.first_byte,
                     other.bytes_.data() + other_item.first_byte,
                     item.byte_count) == 0;
}

bool WorkList::IsLike(size_t i, const WorkList& other) const {
  if (i >= size_ || i >= other.size_) return false;
  const Item& a = items_[i];
  const Item& b = other.items_[i];
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kLaunch:
      return a.kernel.handle() == b.kernel.handle() && a.shape == b.shape &&
             a.byte_count == b.byte_count;
    case Kind::kCopy:
      return a.size_bytes == b.size_bytes && a.from_memory == b.from_memory &&
             a.to_memory == b.to_memory;
    case Kind::kFill:
    case Kind::kLibraryCall:
      return IsSame(i, other);
  }
  return false;
}

bool WorkList::IsSame(size_t i, const WorkList& other) const {
  const Item& a = items_[i];
  const Item& b = other.items_[i];
  switch (a.kind) {
    case Kind::kLaunch:
    case Kind::kLibraryCall:
      return HaveSameBytes(a, other, b);
    case Kind::kCopy:
      return a.from == b.from && a.to == b.to;
    case Kind::kFill:
      return a.to == b.to && a.byte == b.byte && a.size_bytes == b.size_bytes;
  }
  return false;
}

driver::KernelNodeParameters WorkList::NodeParameters(
    size_t i, std::vector<void*>* addresses) const {
  const Item& item = items_[i];
  MUSTER_CHECK(item.kind == Kind::kLaunch);
  ListAddresses(item, addresses);
  driver::KernelNodeParameters parameters;
  std::copy(std::begin(item.shape.grid), std::end(item.shape.grid),
            parameters.grid);
  std::copy(std::begin(item.shape.block), std::end(item.shape.block),
            parameters.block);
  parameters.shared_bytes = item.shape.shared_bytes;
  parameters.arguments = addresses->data();
  parameters.kernel = item.kernel.handle();
  return parameters;
}

driver::Address WorkList::CopyFrom(size_t i) const {
  return reinterpret_cast<driver::Address>(items_[i].from);
}

driver::Address WorkList::CopyTo(size_t i) const {
  return reinterpret_cast<driver::Address>(items_[i].to);
}

}  // namespace muster
