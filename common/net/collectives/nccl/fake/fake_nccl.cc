#include "common/net/collectives/nccl/fake/fake_nccl.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/core/base/check.h"
#include "common/core/device/simulated/simulated_driver.h"
#include "common/core/tensor/dtype.h"
#include "common/net/collectives/communicator.h"
#include "common/net/collectives/nccl/fake/rendezvous.h"
#include "common/net/collectives/shm/group_options.h"
#include "common/net/collectives/shm/shared_memory_group.h"
#include "common/net/rpc/local_endpoint.h"

namespace muster {

using nccl::Result;

namespace {

// NCCL itself has no timeout.
constexpr CollectiveCall kEndless = {"", absl::Hours(24)};
constexpr absl::Duration kRendezvousTimeout = absl::Seconds(60);
// How many polls return kInProgress after a call.
constexpr int kPollsInProgress = 2;

// A launched collective.
struct Operation {
  enum class Kind {
    kAllReduce,
    kReduce,
    kReduceScatter,
    kAllGather,
    kBroadcast
  };
  Kind kind = Kind::kAllReduce;
  const void* from = nullptr;
  void* to = nullptr;
  size_t element_count = 0;
  nccl::DataType type = nccl::DataType::kUint8;
  nccl::ReductionKind reduction = nccl::ReductionKind::kSum;
  int root = 0;
  // Set by FailCollective().
  bool is_stuck = false;
  Result error = nccl::kSuccess;
};

DType DTypeOf(nccl::DataType type) {
  switch (type) {
    case nccl::DataType::kUint8:
      return DType::kUint8;
    case nccl::DataType::kInt32:
      return DType::kInt32;
    case nccl::DataType::kInt64:
      return DType::kInt64;
    case nccl::DataType::kFloat16:
      return DType::kFloat16;
    case nccl::DataType::kFloat32:
      return DType::kFloat32;
    case nccl::DataType::kFloat64:
      return DType::kFloat64;
    case nccl::DataType::kBfloat16:
      return DType::kBfloat16;
  }
  return DType::kInvalid;
}

ReduceOp ReduceOpOf(nccl::ReductionKind reduction) {
  switch (reduction) {
    case nccl::ReductionKind::kSum:
      return ReduceOp::kSum;
    case nccl::ReductionKind::kProd:
      return ReduceOp::kProd;
    case nccl::ReductionKind::kMax:
      return ReduceOp::kMax;
    case nccl::ReductionKind::kMin:
      return ReduceOp::kMin;
    case nccl::ReductionKind::kAvg:
      return ReduceOp::kMean;
  }
  return ReduceOp::kSum;
}

}  // namespace

// One rank of a communicator. Shared with the work on streams.
class FakeComm {
 public:
  FakeComm(int rank, int size, const nccl::UniqueId& id,
           bool reports_lost_ranks)
      : rank_(rank),
        size_(size),
        id_(id),
        reports_lost_ranks_(reports_lost_ranks) {}
  ~FakeComm() {
    if (thread_.joinable()) thread_.join();
  }

  void Connect(bool is_stalled) {
    thread_ = std::thread([this, is_stalled] {
      if (!is_stalled) Meet();
    });
  }

  bool is_of_this_thread() const {
    return owner_ == std::this_thread::get_id();
  }

  // Returns kInProgress a few times after each call, then the actual result.
  Result Poll() {
    const absl::MutexLock lock(&mutex_);
    if (polls_left_ > 0) {
      --polls_left_;
      return nccl::kInProgress;
    }
    return result_;
  }
  void NoteCall() {
    const absl::MutexLock lock(&mutex_);
    polls_left_ = kPollsInProgress;
  }
  bool is_in_progress() const {
    const absl::MutexLock lock(&mutex_);
    return polls_left_ > 0 || result_ == nccl::kInProgress;
  }
  std::string last_error() const {
    const absl::MutexLock lock(&mutex_);
    return last_error_;
  }

  // Runs a collective as work of a stream.
  void Run(const Operation& operation) {
    {
      const absl::MutexLock lock(&mutex_);
      if (is_aborted_) return;
      ++running_count_;
    }
    absl::Status status = operation.is_stuck
                              ? absl::UnavailableError("an injected fault")
                              : Perform(operation);
    const absl::MutexLock lock(&mutex_);
    if (!status.ok()) {
      const bool is_reported = operation.is_stuck
                                   ? operation.error != nccl::kSuccess
                                   : reports_lost_ranks_;
      if (is_reported && !is_aborted_) {
        result_ = operation.is_stuck ? operation.error : nccl::kRemoteError;
        last_error_ = std::string(status.message());
      }
      mutex_.Await(absl::Condition(&is_aborted_));
    }
    --running_count_;
  }

  // Ends collectives that have begun. Those that have not begun will do
  // nothing.
  void Abort() {
    Communicator* communicator = nullptr;
    {
      const absl::MutexLock lock(&mutex_);
      is_aborted_ = true;
      communicator = communicator_.get();
    }
    if (communicator != nullptr) {
      communicator->Abort(absl::CancelledError("ncclCommAbort"));
    }
    const absl::MutexLock lock(&mutex_);
    const auto is_idle = [this] {
      mutex_.AssertReaderHeld();
      return running_count_ == 0;
    };
    mutex_.Await(absl::Condition(&is_idle));
  }

 private:
  void Meet() {
    absl::StatusOr<std::unique_ptr<Communicator>> met = Join();
    const absl::MutexLock lock(&mutex_);
    if (met.ok()) {
      communicator_ = *std::move(met);
      result_ = nccl::kSuccess;
      if (is_aborted_) {
        communicator_->Abort(absl::CancelledError("ncclCommAbort"));
      }
    } else {
      result_ = nccl::kSystemError;
      last_error_ = std::string(met.status().message());
    }
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Join() {
    absl::StatusOr<std::unique_ptr<LocalEndpoint>> endpoint =
        LocalEndpoint::Listen();
    if (!endpoint.ok()) return endpoint.status();
    const auto is_aborted = [this] {
      const absl::MutexLock lock(&mutex_);
      return is_aborted_;
    };
    absl::StatusOr<std::vector<std::string>> addresses = Rendezvous::Attend(
        id_, rank_, size_, (*endpoint)->address(), is_aborted);
    if (!addresses.ok()) return addresses.status();
    return ConnectSharedMemoryGroup(*std::move(endpoint),
                                    {.rank = rank_,
                                     .size = size_,
                                     .generation = 1,
                                     .addresses = *std::move(addresses),
                                     .token = "fake NCCL",
                                     .timeout = kRendezvousTimeout});
  }

  absl::Status Perform(const Operation& operation);

  const int rank_;
  const int size_;
  const nccl::UniqueId id_;
  const bool reports_lost_ranks_;
  const std::thread::id owner_ = std::this_thread::get_id();
  std::thread thread_;
  mutable absl::Mutex mutex_;
  // Constant once result_ is kSuccess.
  std::unique_ptr<Communicator> communicator_;
  Result result_ ABSL_GUARDED_BY(mutex_) = nccl::kInProgress;
  int polls_left_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_aborted_ ABSL_GUARDED_BY(mutex_) = false;
  std::string last_error_ ABSL_GUARDED_BY(mutex_);
};

absl::Status FakeComm::Perform(const Operation& operation) {
  const DType dtype = DTypeOf(operation.type);
  const ReduceOp op = ReduceOpOf(operation.reduction);
  const auto count = static_cast<int64_t>(operation.element_count);
  const size_t size_bytes = operation.element_count * SizeOf(dtype);
  const auto move = [](const void* from, void* to, size_t bytes) {
    if (bytes > 0 && from != to) std::memmove(to, from, bytes);
  };
  const TensorSpan output{dtype, count, operation.to};
  switch (operation.kind) {
    case Operation::Kind::kAllReduce:
      move(operation.from, operation.to, size_bytes);
      return communicator_->AllReduce(op, output, kEndless);
    case Operation::Kind::kReduce: {
      std::vector<uint8_t> sum(size_bytes);
      move(operation.from, sum.data(), size_bytes);
      const absl::Status status =
          communicator_->AllReduce(op, {dtype, count, sum.data()}, kEndless);
      if (rank_ == operation.root) move(sum.data(), operation.to, size_bytes);
      return status;
    }
    case Operation::Kind::kReduceScatter: {
      std::vector<uint8_t> parts(size_bytes * size_);
      move(operation.from, parts.data(), parts.size());
      const absl::Status status = communicator_->ReduceScatter(
          op, {dtype, count * size_, parts.data()}, kEndless);
      move(parts.data() + rank_ * size_bytes, operation.to, size_bytes);
      return status;
    }
    case Operation::Kind::kAllGather:
      return communicator_->AllGather(
          {dtype, count, const_cast<void*>(operation.from)},
          std::vector<int64_t>(size_, count),
          {dtype, count * size_, operation.to}, kEndless);
    case Operation::Kind::kBroadcast:
      if (rank_ == operation.root) {
        move(operation.from, operation.to, size_bytes);
      }
      return communicator_->Broadcast(output, operation.root, kEndless);
  }
  return absl::InternalError("no such collective");
}

namespace nccl {
// The target of the library's handles.
struct Comm {
  std::shared_ptr<FakeComm> comm;
};
}  // namespace nccl

namespace {

std::atomic<FakeNccl::State*> the_library = nullptr;

// A collective that ncclGroupEnd() will launch.
struct Launched {
  std::shared_ptr<FakeComm> comm;
  driver::StreamHandle* stream;
  Operation operation;
};
thread_local int group_depth = 0;
thread_local std::vector<Launched> group;

Result EnqueueNow(const Launched& launched) {
  const driver::Result result = SimulatedMachine::Enqueue(
      launched.stream, [comm = launched.comm, operation = launched.operation] {
        comm->Run(operation);
        return driver::kSuccess;
      });
  return result == driver::kSuccess ? nccl::kSuccess
                                    : nccl::kUnhandledCudaError;
}

}  // namespace

class FakeNccl::State {
 public:
  explicit State(const Options& options) : options_(options) {}

  // Counts the call. Returns the injected error of the call, or kSuccess.
  Result Enter(const char* function) {
    const absl::MutexLock lock(&mutex_);
    ++counts_[function];
    const auto fault = faults_.find(function);
    if (fault == faults_.end() || fault->second.after-- > 0) {
      return nccl::kSuccess;
    }
    const Result result = fault->second.result;
    faults_.erase(fault);
    return result;
  }

  Result Init(nccl::Comm** comm, int size, const nccl::UniqueId& id, int rank,
              const nccl::Config& config) {
    if (config.magic != nccl::Config().magic || config.blocking != 0 ||
        rank < 0 || rank >= size) {
      return nccl::kInvalidArgument;
    }
    auto made =
        std::make_shared<FakeComm>(rank, size, id, options_.reports_lost_ranks);
    const absl::MutexLock lock(&mutex_);
    made->Connect(is_init_stalled_);
    *comm = new nccl::Comm{std::move(made)};
    comms_.insert(*comm);
    return nccl::kInProgress;
  }

  // Returns null if `comm` is not a communicator of the calling thread.
  std::shared_ptr<FakeComm> Find(nccl::Comm* comm) {
    const absl::MutexLock lock(&mutex_);
    if (comms_.count(comm) == 0 || !comm->comm->is_of_this_thread()) {
      return nullptr;
    }
    return comm->comm;
  }

  Result Launch(const char* function, nccl::Comm* handle,
                driver::StreamHandle* stream, Operation operation) {
    const std::shared_ptr<FakeComm> comm = Find(handle);
    if (comm == nullptr || comm->is_in_progress()) return nccl::kInvalidUsage;
    if (const Result result = Enter(function); result != nccl::kSuccess) {
      return result;
    }
    {
      const absl::MutexLock lock(&mutex_);
      if (collective_fault_.is_set && collective_fault_.after-- == 0) {
        operation.is_stuck = true;
        operation.error = collective_fault_.error;
        collective_fault_.is_set = false;
      }
    }
    group.push_back({comm, stream, operation});
    return group_depth > 0 ? nccl::kSuccess : LaunchGroup();
  }

  Result LaunchGroup() {
    const std::vector<Launched> all = std::exchange(group, {});
    for (const Launched& launched : all) {
      if (const Result result = EnqueueNow(launched);
          result != nccl::kSuccess) {
        return result;
      }
    }
    for (const Launched& launched : all) launched.comm->NoteCall();
    return all.empty() ? nccl::kSuccess : nccl::kInProgress;
  }

  Result End(nccl::Comm* handle, bool is_abort) {
    const std::shared_ptr<FakeComm> comm = Find(handle);
    if (comm == nullptr) return nccl::kInvalidUsage;
    if (is_abort) {
      comm->Abort();
      const absl::MutexLock lock(&mutex_);
      const auto may_return = [this] {
        mutex_.AssertReaderHeld();
        return !are_aborts_stalled_;
      };
      mutex_.Await(absl::Condition(&may_return));
    }
    const absl::MutexLock lock(&mutex_);
    comms_.erase(handle);
    delete handle;
    return nccl::kSuccess;
  }

  Result MakeId(nccl::UniqueId* id) {
    absl::StatusOr<std::unique_ptr<Rendezvous>> rendezvous = Rendezvous::Open();
    if (!rendezvous.ok()) return nccl::kSystemError;
    *id = (*rendezvous)->id();
    const absl::MutexLock lock(&mutex_);
    rendezvous_.push_back(*std::move(rendezvous));
    return nccl::kSuccess;
  }

  struct CollectiveFault {
    bool is_set = false;
    Result error = nccl::kSuccess;
    int after = 0;
  };
  struct Fault {
    Result result;
    int after;
  };

  const Options options_;
  mutable absl::Mutex mutex_;
  std::map<std::string, int64_t> counts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Fault> faults_ ABSL_GUARDED_BY(mutex_);
  CollectiveFault collective_fault_ ABSL_GUARDED_BY(mutex_);
  bool is_init_stalled_ ABSL_GUARDED_BY(mutex_) = false;
  bool are_aborts_stalled_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<nccl::Comm*> comms_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Rendezvous>> rendezvous_ ABSL_GUARDED_BY(mutex_);
};

namespace {

// The first statement of a library function. Defines `library`, the fake NCCL.
#define MUSTER_ENTER(function)                         \
  FakeNccl::State* const library = the_library;        \
  if (library == nullptr) return nccl::kInternalError; \
  if (const Result entered = library->Enter(function); \
      entered != nccl::kSuccess) {                     \
    return entered;                                    \
  }

void SetCommFunctions(nccl::Api* api) {
  api->ncclGetVersion = [](int* version) -> Result {
    MUSTER_ENTER("ncclGetVersion");
    *version = library->options_.version;
    return nccl::kSuccess;
  };
  api->ncclGetUniqueId = [](nccl::UniqueId* id) -> Result {
    MUSTER_ENTER("ncclGetUniqueId");
    return library->MakeId(id);
  };
  api->ncclCommInitRankConfig = [](nccl::Comm** comm, int size,
                                   nccl::UniqueId id, int rank,
                                   void* config) -> Result {
    MUSTER_ENTER("ncclCommInitRankConfig");
    return library->Init(comm, size, id, rank,
                         *static_cast<const nccl::Config*>(config));
  };
  api->ncclCommGetAsyncError = [](nccl::Comm* handle,
                                  Result* result) -> Result {
    MUSTER_ENTER("ncclCommGetAsyncError");
    const std::shared_ptr<FakeComm> comm = library->Find(handle);
    if (comm == nullptr) return nccl::kInvalidUsage;
    *result = comm->Poll();
    return nccl::kSuccess;
  };
  api->ncclCommFinalize = [](nccl::Comm* handle) -> Result {
    MUSTER_ENTER("ncclCommFinalize");
    const std::shared_ptr<FakeComm> comm = library->Find(handle);
    if (comm == nullptr) return nccl::kInvalidUsage;
    comm->NoteCall();
    return nccl::kInProgress;
  };
  api->ncclCommDestroy = [](nccl::Comm* handle) -> Result {
    MUSTER_ENTER("ncclCommDestroy");
    return library->End(handle, /*is_abort=*/false);
  };
  api->ncclCommAbort = [](nccl::Comm* handle) -> Result {
    MUSTER_ENTER("ncclCommAbort");
    return library->End(handle, /*is_abort=*/true);
  };
  api->ncclGetErrorString = [](Result result) -> const char* {
    return result == nccl::kRemoteError ? "remote process exited"
                                        : "an error of the fake NCCL";
  };
  api->ncclGetLastError = [](nccl::Comm* handle) -> const char* {
    FakeNccl::State* const library = the_library;
    const std::shared_ptr<FakeComm> comm =
        library == nullptr ? nullptr : library->Find(handle);
    thread_local std::string text;
    text = comm == nullptr ? "" : comm->last_error();
    return text.c_str();
  };
}

void SetCollectiveFunctions(nccl::Api* api) {
  using Kind = Operation::Kind;
  api->ncclGroupStart = []() -> Result {
    MUSTER_ENTER("ncclGroupStart");
    ++group_depth;
    return nccl::kSuccess;
  };
  api->ncclGroupEnd = []() -> Result {
    MUSTER_ENTER("ncclGroupEnd");
    if (group_depth == 0) return nccl::kInvalidUsage;
    return --group_depth > 0 ? nccl::kSuccess : library->LaunchGroup();
  };
  api->ncclAllReduce = [](const void* from, void* to, size_t count,
                          nccl::DataType type, nccl::ReductionKind reduction,
                          nccl::Comm* comm,
                          driver::StreamHandle* stream) -> Result {
    return the_library.load()->Launch(
        "ncclAllReduce", comm, stream,
        {Kind::kAllReduce, from, to, count, type, reduction});
  };
  api->ncclReduce = [](const void* from, void* to, size_t count,
                       nccl::DataType type, nccl::ReductionKind reduction,
                       int root, nccl::Comm* comm,
                       driver::StreamHandle* stream) -> Result {
    return the_library.load()->Launch(
        "ncclReduce", comm, stream,
        {Kind::kReduce, from, to, count, type, reduction, root});
  };
  api->ncclReduceScatter = [](const void* from, void* to, size_t count,
                              nccl::DataType type,
                              nccl::ReductionKind reduction, nccl::Comm* comm,
                              driver::StreamHandle* stream) -> Result {
    return the_library.load()->Launch(
        "ncclReduceScatter", comm, stream,
        {Kind::kReduceScatter, from, to, count, type, reduction});
  };
  api->ncclAllGather = [](const void* from, void* to, size_t count,
                          nccl::DataType type, nccl::Comm* comm,
                          driver::StreamHandle* stream) -> Result {
    return the_library.load()->Launch(
        "ncclAllGather", comm, stream,
        {Kind::kAllGather, from, to, count, type});
  };
  api->ncclBroadcast = [](const void* from, void* to, size_t count,
                          nccl::DataType type, int root, nccl::Comm* comm,
                          driver::StreamHandle* stream) -> Result {
    return the_library.load()->Launch("ncclBroadcast", comm, stream,
                                      {Kind::kBroadcast, from, to, count, type,
                                       nccl::ReductionKind::kSum, root});
  };
}

#undef MUSTER_ENTER

}  // namespace

FakeNccl::FakeNccl(const Options& options)
    : state_(std::make_unique<State>(options)) {
  MUSTER_CHECK(the_library.exchange(state_.get()) == nullptr);
}

FakeNccl::~FakeNccl() { the_library = nullptr; }

const nccl::Api& FakeNccl::api() const {
  static nccl::Api api = [] {
    nccl::Api made;
    SetCommFunctions(&made);
    SetCollectiveFunctions(&made);
    made.is_simulated = true;
    return made;
  }();
  api.version = state_->options_.version;
  return api;
}

void FakeNccl::Fail(absl::string_view function, Result result, int after) {
  const absl::MutexLock lock(&state_->mutex_);
  state_->faults_[std::string(function)] = {result, after};
}

void FakeNccl::FailCollective(Result error, int after) {
  const absl::MutexLock lock(&state_->mutex_);
  state_->collective_fault_ = {true, error, after};
}

void FakeNccl::set_stalls_init(bool stalls) {
  const absl::MutexLock lock(&state_->mutex_);
  state_->is_init_stalled_ = stalls;
}

void FakeNccl::set_stalls_aborts(bool stalls) {
  const absl::MutexLock lock(&state_->mutex_);
  state_->are_aborts_stalled_ = stalls;
}

std::map<std::string, int64_t> FakeNccl::counts() const {
  const absl::MutexLock lock(&state_->mutex_);
  return state_->counts_;
}

}  // namespace muster
