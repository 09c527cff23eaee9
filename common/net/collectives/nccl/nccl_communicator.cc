#include "common/net/collectives/nccl/nccl_communicator.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/core/base/check.h"
#include "common/core/base/status_macros.h"
#include "common/core/base/status_message.h"
#include "common/core/device/stream.h"
#include "common/core/system/clock.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/message/frame.h"
#include "common/net/collectives/nccl/agreement.h"
#include "common/net/collectives/nccl/nccl_thread.h"
#include "common/net/collectives/reduce_kernels.h"
#include "common/net/rpc/fault_point.h"

namespace muster {
namespace {

nccl::DataType DataTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return nccl::DataType::kFloat32;
    case DType::kFloat64:
      return nccl::DataType::kFloat64;
    case DType::kFloat16:
      return nccl::DataType::kFloat16;
    case DType::kBfloat16:
      return nccl::DataType::kBfloat16;
    case DType::kInt32:
      return nccl::DataType::kInt32;
    case DType::kInt64:
      return nccl::DataType::kInt64;
    default:
      // bool and uint8 are transferred but never reduced.
      return nccl::DataType::kUint8;
  }
}

nccl::ReductionKind ReductionOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return nccl::ReductionKind::kSum;
    case ReduceOp::kMean:
      return nccl::ReductionKind::kAvg;
    case ReduceOp::kMin:
      return nccl::ReductionKind::kMin;
    case ReduceOp::kMax:
      return nccl::ReductionKind::kMax;
    case ReduceOp::kProd:
      return nccl::ReductionKind::kProd;
  }
  return nccl::ReductionKind::kSum;
}

// Calls `launch` for each part, within one group operation of NCCL.
nccl::Result LaunchGroup(const nccl::Api& api, int count,
                         absl::FunctionRef<nccl::Result(int part)> launch) {
  nccl::Result result = api.ncclGroupStart();
  for (int part = 0; part < count && result == nccl::kSuccess; ++part) {
    result = launch(part);
  }
  // The group must be ended even after an error.
  const nccl::Result ended = api.ncclGroupEnd();
  return result == nccl::kSuccess ? ended : result;
}

class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(const nccl::Api* api, Device* device,
                   std::unique_ptr<Communicator> control,
                   std::unique_ptr<NcclThread> thread)
      : api_(*api),
        device_(*device),
        control_(std::move(control)),
        agreement_(control_.get()),
        thread_(std::move(thread)) {}

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  uint64_t generation() const override { return control_->generation(); }
  std::string transport() const override {
    return absl::StrCat("NCCL ", nccl::VersionString(api_.version));
  }
  Device& device() const override { return device_; }

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(
      size_t size_bytes, const CollectiveCall& call) override;

  absl::Status AllReduce(ReduceOp op, TensorSpan buffer,
                         const CollectiveCall& call) override;
  absl::Status ReduceScatter(ReduceOp op, TensorSpan buffer,
                             const CollectiveCall& call) override;
  absl::Status AllGather(TensorSpan input,
                         absl::Span<const int64_t> element_counts,
                         TensorSpan output,
                         const CollectiveCall& call) override;
  absl::Status Broadcast(TensorSpan buffer, int root,
                         const CollectiveCall& call) override;
  absl::Status Barrier(const CollectiveCall& call) override;

  absl::Status StartAllReduce(ReduceOp op, TensorSpan buffer,
                              const Event& ready, Event* done,
                              const CollectiveCall& call) override {
    RETURN_IF_ERROR(CheckReducible(buffer.dtype));
    return Start(AllReduceOf(op, buffer), call, &ready, done);
  }
  absl::Status StartReduceScatter(ReduceOp op, TensorSpan buffer,
                                  const Event& ready, Event* done,
                                  const CollectiveCall& call) override {
    RETURN_IF_ERROR(CheckReducible(buffer.dtype));
    return Start(ReduceScatterOf(op, buffer), call, &ready, done);
  }
  absl::Status StartAllGather(absl::Span<const int64_t> element_counts,
                              TensorSpan buffer, const Event& ready,
                              Event* done,
                              const CollectiveCall& call) override {
    return Start(AllGatherOf(element_counts, buffer), call, &ready, done);
  }
  absl::Status StartBroadcast(TensorSpan buffer, int root, const Event& ready,
                              Event* done,
                              const CollectiveCall& call) override {
    return Start(BroadcastOf(buffer, root), call, &ready, done);
  }
  void UseEndWord(std::shared_ptr<Buffer> word) override {
    thread_->UseEndWord(std::move(word));
  }
  absl::Status Await() override;

  void Abort(absl::Status status) override;
  CollectiveProgress Progress() const override;

 private:
  // A collective on memory of the device.
  struct Collective {
    CallSignature signature;
    const char* function = "";  // The NCCL function, for errors.
    NcclThread::Launch launch;
  };

  Collective AllReduceOf(ReduceOp op, TensorSpan buffer) const;
  Collective ReduceScatterOf(ReduceOp op, TensorSpan buffer) const;
  Collective AllGatherOf(absl::Span<const int64_t> element_counts,
                         TensorSpan buffer) const;
  Collective BroadcastOf(TensorSpan buffer, int root) const;

  // Begin() and End() enclose each call and update Progress(). End() also adds
  // context to an error and makes it final.
  absl::Status Begin(CollectiveOperation operation, const CollectiveCall& call);
  absl::Status End(const absl::Status& status);

  absl::Status Start(const Collective& collective, const CollectiveCall& call,
                     const Event* ready, Event* done);
  // Copies `upload` from the host to its place in the stage, runs the
  // collective that `make` returns on the stage, and copies `download` back.
  absl::Status OnStage(TensorSpan whole, TensorSpan upload, TensorSpan download,
                       absl::FunctionRef<Collective(TensorSpan stage)> make,
                       const CollectiveCall& call);
  absl::Status RunOnStage(TensorSpan whole, TensorSpan upload,
                          TensorSpan download,
                          absl::FunctionRef<Collective(TensorSpan stage)> make,
                          const CollectiveCall& call);
  // Returns the time at which the call expires.
  absl::StatusOr<absl::Time> AgreeAndLaunch(const Collective& collective,
                                            const CollectiveCall& call,
                                            const Event* ready, Event* done);
  absl::StatusOr<absl::Time> Agree(const CallSignature& signature,
                                   const CollectiveCall& call);
  absl::Status EndStatus() const;
  absl::Status GrowStage(size_t size_bytes);

  const nccl::Api& api_;
  Device& device_;
  const std::unique_ptr<Communicator> control_;
  CallAgreement agreement_;
  const std::unique_ptr<NcclThread> thread_;
  // Device memory for collectives on memory of the host.
  std::shared_ptr<Buffer> stage_;

  // The content of Progress(), except for the missing ranks.
  struct Current {
    bool is_running = false;
    bool is_agreeing = false;
    CollectiveOperation operation = CollectiveOperation::kBarrier;
    std::string name;
    uint64_t sequence = 0;
    absl::Time start_time;
  };
  mutable absl::Mutex mutex_;
  Current current_ ABSL_GUARDED_BY(mutex_);
  absl::Status end_status_ ABSL_GUARDED_BY(mutex_);  // The final error.
};

NcclCommunicator::Collective NcclCommunicator::AllReduceOf(
    ReduceOp op, TensorSpan buffer) const {
  Collective all_reduce;
  all_reduce.signature = {.operation = CollectiveOperation::kAllReduce,
                          .reduce_op = op,
                          .dtype = buffer.dtype,
                          .element_count = buffer.element_count};
  all_reduce.function = "ncclAllReduce";
  all_reduce.launch = [api = &api_, op, buffer](nccl::Comm* comm,
                                                driver::StreamHandle* stream) {
    return api->ncclAllReduce(buffer.data, buffer.data, buffer.element_count,
                              DataTypeOf(buffer.dtype), ReductionOf(op), comm,
                              stream);
  };
  return all_reduce;
}

// NCCL's reduce-scatter and all-gather require parts of equal size. For other
// parts, the collective is a group of one reduction to, or broadcast from, each
// rank.
NcclCommunicator::Collective NcclCommunicator::ReduceScatterOf(
    ReduceOp op, TensorSpan buffer) const {
  Collective scatter;
  scatter.signature = {.operation = CollectiveOperation::kReduceScatter,
                       .reduce_op = op,
                       .dtype = buffer.dtype,
                       .element_count = buffer.element_count};
  scatter.function = "ncclReduceScatter";
  scatter.launch = [api = &api_, op, buffer, rank = rank(), size = size()](
                       nccl::Comm* comm, driver::StreamHandle* stream) {
    const auto part = [&](int r) {
      const Range range = PartOf(buffer.element_count, r, size);
      return buffer.Part(range.begin, range.end);
    };
    const nccl::DataType type = DataTypeOf(buffer.dtype);
    if (buffer.element_count % size == 0) {
      const TensorSpan own = part(rank);
      return api->ncclReduceScatter(buffer.data, own.data, own.element_count,
                                    type, ReductionOf(op), comm, stream);
    }
    return LaunchGroup(*api, size, [&](int root) {
      const TensorSpan to = part(root);
      return api->ncclReduce(to.data, to.data, to.element_count, type,
                             ReductionOf(op), root, comm, stream);
    });
  };
  return scatter;
}

NcclCommunicator::Collective NcclCommunicator::AllGatherOf(
    absl::Span<const int64_t> element_counts, TensorSpan buffer) const {
  MUSTER_CHECK(static_cast<int>(element_counts.size()) == size());
  Collective gather;
  gather.signature = {.operation = CollectiveOperation::kAllGather,
                      .dtype = buffer.dtype,
                      .element_count = buffer.element_count,
                      .layout = LayoutOf(element_counts)};
  gather.function = "ncclAllGather";
  gather.launch = [api = &api_, buffer, rank = rank(),
                   counts = std::vector<int64_t>(element_counts.begin(),
                                                 element_counts.end())](
                      nccl::Comm* comm, driver::StreamHandle* stream) {
    const nccl::DataType type = DataTypeOf(buffer.dtype);
    const bool is_even =
        std::all_of(counts.begin(), counts.end(),
                    [&](int64_t count) { return count == counts[0]; });
    if (is_even) {
      const TensorSpan own =
          buffer.Part(rank * counts[0], (rank + 1) * counts[0]);
      return api->ncclAllGather(own.data, buffer.data, own.element_count, type,
                                comm, stream);
    }
    int64_t begin = 0;
    return LaunchGroup(*api, static_cast<int>(counts.size()), [&](int root) {
      const TensorSpan part = buffer.Part(begin, begin + counts[root]);
      begin += counts[root];
      return api->ncclBroadcast(part.data, part.data, part.element_count, type,
                                root, comm, stream);
    });
  };
  return gather;
}

NcclCommunicator::Collective NcclCommunicator::BroadcastOf(TensorSpan buffer,
                                                           int root) const {
  Collective broadcast;
  broadcast.signature = {.operation = CollectiveOperation::kBroadcast,
                         .dtype = buffer.dtype,
                         .root = root,
                         .element_count = buffer.element_count};
  broadcast.function = "ncclBroadcast";
  broadcast.launch = [api = &api_, buffer, root](nccl::Comm* comm,
                                                 driver::StreamHandle* stream) {
    return api->ncclBroadcast(buffer.data, buffer.data, buffer.element_count,
                              DataTypeOf(buffer.dtype), root, comm, stream);
  };
  return broadcast;
}

absl::StatusOr<std::shared_ptr<Buffer>> NcclCommunicator::Allocate(
    size_t size_bytes, const CollectiveCall&) {
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer,
                   device_.pinned_memory().Allocate(size_bytes));
  std::memset(buffer->data(), 0, size_bytes);
  return buffer;
}

absl::Status NcclCommunicator::AllReduce(ReduceOp op, TensorSpan buffer,
                                         const CollectiveCall& call) {
  RETURN_IF_ERROR(CheckReducible(buffer.dtype));
  return OnStage(
      buffer, buffer, buffer,
      [&](TensorSpan stage) { return AllReduceOf(op, stage); }, call);
}

absl::Status NcclCommunicator::ReduceScatter(ReduceOp op, TensorSpan buffer,
                                             const CollectiveCall& call) {
  RETURN_IF_ERROR(CheckReducible(buffer.dtype));
  const Range own = PartOf(buffer.element_count, rank(), size());
  return OnStage(
      buffer, buffer, buffer.Part(own.begin, own.end),
      [&](TensorSpan stage) { return ReduceScatterOf(op, stage); }, call);
}

absl::Status NcclCommunicator::AllGather(
    TensorSpan input, absl::Span<const int64_t> element_counts,
    TensorSpan output, const CollectiveCall& call) {
  MUSTER_CHECK(static_cast<int>(element_counts.size()) == size());
  int64_t begin = 0;
  for (int r = 0; r < rank(); ++r) begin += element_counts[r];
  const TensorSpan own = output.Part(begin, begin + element_counts[rank()]);
  MUSTER_CHECK(input.dtype == output.dtype &&
               input.element_count == own.element_count);
  if (own.size_bytes() > 0 && own.data != input.data) {
    std::memmove(own.data, input.data, own.size_bytes());
  }
  return OnStage(
      output, own, output,
      [&](TensorSpan stage) { return AllGatherOf(element_counts, stage); },
      call);
}

absl::Status NcclCommunicator::Broadcast(TensorSpan buffer, int root,
                                         const CollectiveCall& call) {
  const TensorSpan nothing = buffer.Part(0, 0);
  return OnStage(
      buffer, rank() == root ? buffer : nothing,
      rank() == root ? nothing : buffer,
      [&](TensorSpan stage) { return BroadcastOf(stage, root); }, call);
}

absl::Status NcclCommunicator::Barrier(const CollectiveCall& call) {
  RETURN_IF_ERROR(Begin(CollectiveOperation::kBarrier, call));
  return End(
      Agree({.operation = CollectiveOperation::kBarrier}, call).status());
}

absl::Status NcclCommunicator::Await() {
  RETURN_IF_ERROR(EndStatus());
  return End(thread_->Await());
}

absl::Status NcclCommunicator::EndStatus() const {
  absl::Status status;
  {
    const absl::MutexLock lock(&mutex_);
    status = end_status_;
  }
  // The next call of `control_` after an abort sends the abort to the other
  // ranks, and returns at once.
  if (!status.ok()) (void)control_->Barrier({.name = "the end"});
  return status;
}

absl::Status NcclCommunicator::Begin(CollectiveOperation operation,
                                     const CollectiveCall& call) {
  RETURN_IF_ERROR(EndStatus());
  const absl::MutexLock lock(&mutex_);
  current_ = {.is_running = true,
              .operation = operation,
              .name = std::string(call.name),
              .sequence = current_.sequence + 1,
              .start_time = Clock::Real()->Now()};
  return absl::OkStatus();
}

absl::Status NcclCommunicator::End(const absl::Status& status) {
  std::string attempted;
  bool is_ended = false;
  {
    const absl::MutexLock lock(&mutex_);
    current_.is_running = false;
    if (status.ok()) return status;
    attempted = absl::StrCat(
        CollectiveOperationName(current_.operation),
        current_.name.empty() ? "" : absl::StrCat(" of ", current_.name),
        " (collective ", current_.sequence, " of generation ", generation(),
        ") on rank ", rank());
    is_ended = !end_status_.ok();
  }
  absl::Status cause = status;
  // Errors of `control_` already name the ranks. Those of NCCL do not.
  if (!is_ended && !thread_->state().ok()) {
    cause = WithMissingRanks(*control_, status, attempted);
  }
  {
    const absl::MutexLock lock(&mutex_);
    if (end_status_.ok()) {
      end_status_ =
          WithMessage(cause, absl::StrCat(attempted, ": ", cause.message()));
    }
    cause = end_status_;
  }
  thread_->Abort(cause);
  control_->Abort(cause);
  return cause;
}

absl::Status NcclCommunicator::Start(const Collective& collective,
                                     const CollectiveCall& call,
                                     const Event* ready, Event* done) {
  RETURN_IF_ERROR(Begin(collective.signature.operation, call));
  return End(AgreeAndLaunch(collective, call, ready, done).status());
}

absl::Status NcclCommunicator::OnStage(
    TensorSpan whole, TensorSpan upload, TensorSpan download,
    absl::FunctionRef<Collective(TensorSpan stage)> make,
    const CollectiveCall& call) {
  RETURN_IF_ERROR(Begin(make(whole).signature.operation, call));
  return End(RunOnStage(whole, upload, download, make, call));
}

absl::Status NcclCommunicator::RunOnStage(
    TensorSpan whole, TensorSpan upload, TensorSpan download,
    absl::FunctionRef<Collective(TensorSpan stage)> make,
    const CollectiveCall& call) {
  RETURN_IF_ERROR(GrowStage(whole.size_bytes()));
  const TensorSpan stage{whole.dtype, whole.element_count, stage_->data()};
  const auto on_stage = [&](const TensorSpan& part) {
    return stage.bytes() + (part.bytes() - whole.bytes());
  };
  DeviceStream& stream = *thread_->stream();
  RETURN_IF_ERROR(
      stream.Copy(upload.data, on_stage(upload), upload.size_bytes()));
  ASSIGN_OR_RETURN(const absl::Time deadline,
                   AgreeAndLaunch(make(stage), call, nullptr, nullptr));
  // A copy into pageable memory blocks until the stream has executed it, so it
  // is enqueued after the collective has finished.
  RETURN_IF_ERROR(thread_->Await());
  if (download.size_bytes() == 0) return absl::OkStatus();
  RETURN_IF_ERROR(
      stream.Copy(on_stage(download), download.data, download.size_bytes()));
  return stream.Drain(deadline, "the copy of a collective's result");
}

absl::StatusOr<absl::Time> NcclCommunicator::AgreeAndLaunch(
    const Collective& collective, const CollectiveCall& call,
    const Event* ready, Event* done) {
  RETURN_IF_ERROR(FaultPoint("nccl.begin"));
  ASSIGN_OR_RETURN(const absl::Time deadline,
                   Agree(collective.signature, call));
  RETURN_IF_ERROR(FaultPoint("nccl.agreed"));
  // Ranks time out together, and then determine which ranks are missing.
  RETURN_IF_ERROR(thread_->Run(collective.function, collective.launch, ready,
                               done, deadline));
  RETURN_IF_ERROR(FaultPoint("nccl.launched"));
  return deadline;
}

absl::StatusOr<absl::Time> NcclCommunicator::Agree(
    const CallSignature& signature, const CollectiveCall& call) {
  {
    const absl::MutexLock lock(&mutex_);
    current_.is_agreeing = true;
  }
  const absl::StatusOr<absl::Time> deadline = agreement_.Agree(signature, call);
  const absl::MutexLock lock(&mutex_);
  current_.is_agreeing = false;
  return deadline;
}

absl::Status NcclCommunicator::GrowStage(size_t size_bytes) {
  if (stage_ != nullptr && stage_->size_bytes() >= size_bytes) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(stage_,
                   device_.memory().Allocate(
                       std::max(size_bytes, DeviceMemory::kAlignmentBytes),
                       {.what = "stage of collectives", .name = "NCCL"}));
  thread_->Keep(stage_);
  return absl::OkStatus();
}

void NcclCommunicator::Abort(absl::Status status) {
  {
    const absl::MutexLock lock(&mutex_);
    if (!end_status_.ok()) return;
    end_status_ = status;
  }
  thread_->Abort(status);
  control_->Abort(std::move(status));
}

CollectiveProgress NcclCommunicator::Progress() const {
  CollectiveProgress progress;
  const absl::MutexLock lock(&mutex_);
  progress.is_running = current_.is_running;
  if (!current_.is_running) return progress;
  progress.operation = std::string(CollectiveOperationName(current_.operation));
  progress.name = current_.name;
  progress.sequence = current_.sequence;
  progress.elapsed = Clock::Real()->Now() - current_.start_time;
  if (current_.is_agreeing) {
    progress.missing_ranks = control_->Progress().missing_ranks;
  }
  return progress;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceCommunicator>> ConnectNccl(
    const nccl::Api* api, NcclGroup group, absl::Time deadline) {
  constexpr absl::string_view kConnecting = "the connection of NCCL";
  Communicator& control = *group.control;
  const auto call = [&] {
    return CollectiveCall{kConnecting, deadline - Clock::Real()->Now()};
  };
  RETURN_IF_ERROR(AgreeAboutId(control, group.id, call()));
  absl::StatusOr<std::unique_ptr<NcclThread>> thread =
      NcclThread::Connect({.api = api,
                           .device = group.device,
                           .rank = control.rank(),
                           .size = control.size(),
                           .id = group.id,
                           .ctas_max = group.ctas_max},
                          deadline);
  if (!thread.ok()) {
    const absl::Status status =
        WithMissingRanks(control, thread.status(), kConnecting);
    control.Abort(status);
    return status;
  }
  RETURN_IF_ERROR(control.Barrier(call()));
  return std::make_unique<NcclCommunicator>(
      api, group.device, std::move(group.control), *std::move(thread));
}

}  // namespace muster
