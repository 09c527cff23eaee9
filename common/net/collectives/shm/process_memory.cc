#include "common/net/collectives/shm/process_memory.h"

#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

absl::Status OfRank(int rank, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("rank ", rank, ": ", status.message()));
}

}  // namespace

ProcessMemory::ProcessMemory(int rank, const std::vector<PeerLink>* links)
    : rank_(rank), links_(links), interrupt_(MakeInterrupt()) {}

absl::StatusOr<std::shared_ptr<std::vector<MappedMemory>>>
ProcessMemory::ExchangeSegments(
    size_t size_bytes, const std::array<uint64_t, 2>& words,
    absl::Time deadline, std::vector<std::array<uint64_t, 2>>* words_of) {
  ASSIGN_OR_RETURN(const FileDescriptor own, CreateSegment(size_bytes));
  const int size = static_cast<int>(links_->size());
  for (int rank = 0; rank < size; ++rank) {
    if (rank == rank_) continue;
    const absl::Status sent = SendParcel((*links_)[rank], own, words);
    if (!sent.ok()) return OfRank(rank, sent);
  }
  auto segments = std::make_shared<std::vector<MappedMemory>>(size);
  if (words_of != nullptr) words_of->resize(size);
  for (int rank = 0; rank < size; ++rank) {
    if (rank == rank_) {
      ASSIGN_OR_RETURN((*segments)[rank],
                       MappedMemory::Shared(own, size_bytes));
      continue;
    }
    absl::StatusOr<Parcel> parcel =
        ReceiveParcel((*links_)[rank], interrupt_, deadline);
    if (!parcel.ok()) return OfRank(rank, parcel.status());
    absl::StatusOr<MappedMemory> mapped =
        MappedMemory::Shared(parcel->file, size_bytes);
    if (!mapped.ok()) return OfRank(rank, mapped.status());
    (*segments)[rank] = *std::move(mapped);
    if (words_of != nullptr) (*words_of)[rank] = parcel->words;
  }
  return segments;
}

Location ProcessMemory::Locate(const void* data, size_t size_bytes) const {
  const auto address = reinterpret_cast<uint64_t>(data);
  for (size_t i = 0; i < segments_.size(); ++i) {
    const MappedMemory& own = (*segments_[i])[rank_];
    const auto begin = reinterpret_cast<uint64_t>(own.data());
    if (address >= begin && address - begin <= own.size_bytes() &&
        size_bytes <= own.size_bytes() - (address - begin)) {
      return {.kind = Location::Kind::kShared,
              .segment = static_cast<uint32_t>(i),
              .offset = address - begin};
    }
  }
  return {.kind = Location::Kind::kPrivate, .offset = address};
}

uint8_t* ProcessMemory::Resolve(int rank, const Location& location,
                                size_t size_bytes) const {
  if (location.segment >= segments_.size()) return nullptr;
  const MappedMemory& segment = (*segments_[location.segment])[rank];
  if (location.offset > segment.size_bytes() ||
      size_bytes > segment.size_bytes() - location.offset) {
    return nullptr;
  }
  return segment.data() + location.offset;
}

absl::Status ProcessMemory::Read(int rank, uint64_t address, size_t size_bytes,
                                 void* to) const {
  auto* destination = static_cast<uint8_t*>(to);
  while (size_bytes > 0) {
    const iovec local = {destination, size_bytes};
    const iovec remote = {reinterpret_cast<void*>(address), size_bytes};
    const ssize_t copied =
        process_vm_readv((*links_)[rank].pid, &local, 1, &remote, 1, 0);
    if (copied <= 0) {
      return errno == ESRCH ? absl::UnavailableError("its process has ended")
                            : absl::InternalError(absl::StrCat(
                                  "process_vm_readv: ", strerror(errno)));
    }
    address += copied;
    destination += copied;
    size_bytes -= copied;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Buffer>> ProcessMemory::Allocate(
    size_t size_bytes, absl::Time deadline) {
  ASSIGN_OR_RETURN(std::shared_ptr<std::vector<MappedMemory>> segments,
                   ExchangeSegments(size_bytes, {}, deadline, nullptr));
  segments_.push_back(segments);
  uint8_t* const data = (*segments)[rank_].data();
  return Buffer::Wrap(data, size_bytes,
                      [segments]() mutable { segments.reset(); });
}

void ProcessMemory::Interrupt() { muster::internal::Interrupt(interrupt_); }

}  // namespace muster::internal
