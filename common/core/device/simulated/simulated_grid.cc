#include "common/core/device/simulated/simulated_grid.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/base/const_init.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/core/device/simulated/fiber.h"
#include "common/core/device/simulated/simulated_language.h"

namespace muster {
namespace simulated {

constinit thread_local Coordinates coordinates{};

namespace {

constexpr uint32_t kWarpSize = 32;
// Limit for kernels without the function attribute that raises it.
constexpr uint32_t kDefaultSharedBytesMax = 48 << 10;

// Visits 0 ... count - 1, each once, in an order that `seed` selects.
class VisitingOrder {
 public:
  VisitingOrder(uint64_t count, uint64_t seed) : count_(count) {
    if (seed == 0 || count < 2) return;
    // The multiplier of Knuth's MMIX generator spreads neighbouring seeds.
    const uint64_t mixed = seed * 6364136223846793005u + 1442695040888963407u;
    next_ = (mixed >> 33) % count;
    stride_ = 1 + (mixed >> 17) % (count - 1);
    while (std::gcd(stride_, count) != 1) ++stride_;
  }

  uint64_t Next() {
    const uint64_t visited = next_;
    next_ = (next_ + stride_) % count_;
    return visited;
  }

 private:
  const uint64_t count_;
  uint64_t next_ = 0;
  uint64_t stride_ = 1;
};

// A thread of the block that runs.
struct DeviceThread {
  enum class State { kReady, kAtBarrier, kInWarp, kDone };

  Fiber fiber;
  State state = State::kDone;
  Site site = {};           // Where the thread waits.
  WarpOperation operation;  // For kInWarp.
  uint64_t result = 0;      // The result of `operation`.
};

// One launch of a kernel, block after block.
class Grid {
 public:
  Grid(const SimulatedKernel& kernel, const LaunchShape& shape,
       void** arguments, uint64_t seed);

  absl::Status Run();

  void AwaitBlock(Site site);
  uint64_t ExchangeInWarp(const WarpOperation& operation, Site site);

 private:
  absl::Status CheckShape() const;
  absl::Status RunBarrierBlock(uint64_t seed);
  void RunPlainBlock(uint64_t seed);
  bool RunReadyThreads(uint64_t seed);
  bool CompleteWarpOperations();
  bool ReleaseBarrier();
  absl::Status Deadlock() const;
  bool IsComplete(uint64_t first, uint32_t lane) const;

  Index3 ThreadAt(uint64_t index) const;
  DeviceThread& thread(uint64_t index) const { return *(*threads_)[index]; }
  void Fail(std::string message);

  const SimulatedKernel& kernel_;
  const LaunchShape& shape_;
  void** const arguments_;
  const uint64_t seed_;
  const uint64_t thread_count_;
  std::vector<std::unique_ptr<DeviceThread>>* threads_ = nullptr;
  uint64_t running_ = 0;
  absl::Status status_;
};

// The grid that this thread runs.
constinit thread_local Grid* grid = nullptr;

uint64_t Product(const uint32_t extents[3]) {
  return uint64_t{extents[0]} * extents[1] * extents[2];
}

Index3 IndexIn(uint64_t index, const uint32_t extents[3]) {
  return {static_cast<uint32_t>(index % extents[0]),
          static_cast<uint32_t>(index / extents[0] % extents[1]),
          static_cast<uint32_t>(index / extents[0] / extents[1])};
}

std::string Describe(Site site) {
  return absl::StrCat(site.file, ":", site.line);
}

Grid::Grid(const SimulatedKernel& kernel, const LaunchShape& shape,
           void** arguments, uint64_t seed)
    : kernel_(kernel),
      shape_(shape),
      arguments_(arguments),
      seed_(seed),
      thread_count_(Product(shape.block)) {}

Index3 Grid::ThreadAt(uint64_t index) const {
  return IndexIn(index, shape_.block);
}

void Grid::Fail(std::string message) {
  if (status_.ok()) status_ = absl::FailedPreconditionError(message);
}

absl::Status Grid::CheckShape() const {
  const auto invalid = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", kernel_.name, ": ", what));
  };
  if (Product(shape_.grid) == 0 || thread_count_ == 0) {
    return invalid("an extent of the launch shape is 0");
  }
  if (thread_count_ > kThreadsPerBlockMax) {
    return invalid(absl::StrCat("a block of ", thread_count_,
                                " threads; at most ", kThreadsPerBlockMax));
  }
  if (shape_.grid[1] > 65535 || shape_.grid[2] > 65535 ||
      shape_.grid[0] > 0x7fffffff) {
    return invalid("a grid has at most 2^31 - 1 by 65535 by 65535 blocks");
  }
  if (shape_.shared_bytes > kDefaultSharedBytesMax) {
    return invalid(absl::StrCat(shape_.shared_bytes,
                                " bytes of shared memory; at most ",
                                kDefaultSharedBytesMax));
  }
  return absl::OkStatus();
}

void Grid::RunPlainBlock(uint64_t seed) {
  VisitingOrder order(thread_count_, seed);
  for (uint64_t i = 0; i < thread_count_; ++i) {
    coordinates.thread = ThreadAt(order.Next());
    kernel_.invoke(arguments_);
  }
}

bool Grid::RunReadyThreads(uint64_t seed) {
  bool has_run = false;
  VisitingOrder order(thread_count_, seed);
  for (uint64_t i = 0; i < thread_count_; ++i) {
    running_ = order.Next();
    DeviceThread& next = thread(running_);
    if (next.state != DeviceThread::State::kReady) continue;
    coordinates.thread = ThreadAt(running_);
    next.fiber.Resume();
    if (next.fiber.is_done()) next.state = DeviceThread::State::kDone;
    has_run = true;
  }
  return has_run;
}

// True if all lanes in the mask of lane `lane` have called its operation. Lanes
// that have returned and lanes beyond the block do not count.
bool Grid::IsComplete(uint64_t first, uint32_t lane) const {
  const WarpOperation& wanted = thread(first + lane).operation;
  for (uint32_t other = 0; other < kWarpSize; ++other) {
    if ((wanted.mask >> other & 1) == 0) continue;
    if (first + other >= thread_count_) continue;
    const DeviceThread& partner = thread(first + other);
    if (partner.state == DeviceThread::State::kDone) continue;
    if (partner.state != DeviceThread::State::kInWarp ||
        partner.operation.mask != wanted.mask ||
        partner.operation.kind != wanted.kind) {
      return false;
    }
  }
  return true;
}

bool Grid::CompleteWarpOperations() {
  bool has_completed = false;
  for (uint64_t first = 0; first < thread_count_; first += kWarpSize) {
    const auto lane_count = static_cast<uint32_t>(
        std::min<uint64_t>(kWarpSize, thread_count_ - first));
    for (uint32_t leader = 0; leader < lane_count; ++leader) {
      if (thread(first + leader).state != DeviceThread::State::kInWarp ||
          !IsComplete(first, leader)) {
        continue;
      }
      const WarpOperation operation = thread(first + leader).operation;
      const auto takes_part = [&](uint32_t lane) {
        return lane < lane_count && (operation.mask >> lane & 1) != 0 &&
               thread(first + lane).state == DeviceThread::State::kInWarp;
      };
      uint64_t ballot = 0;
      for (uint32_t lane = 0; lane < lane_count; ++lane) {
        if (takes_part(lane) && thread(first + lane).operation.bits != 0) {
          ballot |= uint64_t{1} << lane;
        }
      }
      for (uint32_t lane = 0; lane < lane_count; ++lane) {
        if (!takes_part(lane)) continue;
        DeviceThread& reader = thread(first + lane);
        const uint32_t from = reader.operation.from_lane;
        // The value of a lane outside of the operation is undefined. Here all
        // its bits are set, which is NaN as a float.
        reader.result = operation.kind == WarpOperation::Kind::kBallot ? ballot
                        : takes_part(from) ? thread(first + from).operation.bits
                                           : ~uint64_t{0};
      }
      for (uint32_t lane = 0; lane < lane_count; ++lane) {
        if (takes_part(lane)) {
          thread(first + lane).state = DeviceThread::State::kReady;
        }
      }
      has_completed = true;
    }
  }
  return has_completed;
}

bool Grid::ReleaseBarrier() {
  for (uint64_t i = 0; i < thread_count_; ++i) {
    if (thread(i).state != DeviceThread::State::kAtBarrier) return false;
    const Site here = thread(i).site;
    const Site there = thread(0).site;
    if (here.line != there.line || here.file != there.file) {
      Fail(absl::StrCat("kernel ", kernel_.name,
                        ": threads of a block wait at different barriers, at ",
                        Describe(there), " and at ", Describe(here)));
      return false;
    }
  }
  for (uint64_t i = 0; i < thread_count_; ++i) {
    thread(i).state = DeviceThread::State::kReady;
  }
  return true;
}

absl::Status Grid::Deadlock() const {
  uint64_t at_barrier = 0;
  uint64_t in_warp = 0;
  std::string sites;
  for (uint64_t i = 0; i < thread_count_; ++i) {
    const DeviceThread& waiting = thread(i);
    if (waiting.state == DeviceThread::State::kDone) continue;
    uint64_t& count =
        waiting.state == DeviceThread::State::kAtBarrier ? at_barrier : in_warp;
    if (count++ == 0) {
      absl::StrAppend(&sites, sites.empty() ? "" : ", ",
                      Describe(waiting.site));
    }
  }
  std::string counts;
  if (at_barrier > 0) {
    counts = absl::StrCat(at_barrier, " of ", thread_count_,
                          " threads at a barrier");
  }
  if (in_warp > 0) {
    absl::StrAppend(&counts, counts.empty() ? "" : ", ", in_warp, " of ",
                    thread_count_, " threads in a warp operation");
  }
  const Index3& block = coordinates.block;
  return absl::DeadlineExceededError(absl::StrCat(
      "deadlock: ", counts, " (", sites, "); the others have returned or wait ",
      "elsewhere: kernel ", kernel_.name, ", block (", block.x, ", ", block.y,
      ", ", block.z, ")"));
}

absl::Status Grid::RunBarrierBlock(uint64_t seed) {
  const auto body = [](void* self) {
    const Grid& running = *static_cast<Grid*>(self);
    running.kernel_.invoke(running.arguments_);
  };
  for (uint64_t i = 0; i < thread_count_; ++i) {
    thread(i).fiber.Start(body, this);
    thread(i).state = DeviceThread::State::kReady;
  }
  while (true) {
    // Each round uses a different order.
    const bool has_run = RunReadyThreads(seed);
    if (seed != 0) ++seed;
    const bool has_completed = CompleteWarpOperations();
    const bool has_released = ReleaseBarrier();
    if (!status_.ok()) return status_;
    if (has_run || has_completed || has_released) continue;
    const bool are_done = std::all_of(
        threads_->begin(), threads_->begin() + thread_count_,
        [](auto& one) { return one->state == DeviceThread::State::kDone; });
    return are_done ? absl::OkStatus() : Deadlock();
  }
}

absl::Status Grid::Run() {
  // Keeps the stacks: mapping them costs more than running a small block.
  thread_local std::vector<std::unique_ptr<DeviceThread>> threads;
  absl::Status status = CheckShape();
  if (!status.ok()) return status;
  if (kernel_.has_barriers) {
    while (threads.size() < thread_count_) {
      threads.push_back(std::make_unique<DeviceThread>());
    }
  }
  threads_ = &threads;
  const auto shared = std::make_unique<uint64_t[]>(
      (shape_.shared_bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  const auto extents = [](const uint32_t e[3]) {
    return Index3{e[0], e[1], e[2]};
  };
  coordinates = {.thread = {},
                 .block = {},
                 .block_size = extents(shape_.block),
                 .grid_size = extents(shape_.grid),
                 .shared_memory = shared.get()};
  const uint64_t block_count = Product(shape_.grid);
  VisitingOrder blocks(block_count, seed_);
  for (uint64_t i = 0; i < block_count && status.ok(); ++i) {
    const uint64_t block = blocks.Next();
    coordinates.block = IndexIn(block, shape_.grid);
    const uint64_t seed = seed_ == 0 ? 0 : seed_ + block + 1;
    if (kernel_.has_barriers) {
      status = RunBarrierBlock(seed);
    } else {
      RunPlainBlock(seed);
      status = status_;
    }
  }
  return status;
}

void Grid::AwaitBlock(Site site) {
  if (!kernel_.has_barriers) {
    return Fail(absl::StrCat("kernel ", kernel_.name, " waits at ",
                             Describe(site),
                             " but is listed as MUSTER_PLAIN_KERNEL"));
  }
  DeviceThread& self = thread(running_);
  self.state = DeviceThread::State::kAtBarrier;
  self.site = site;
  Fiber::Suspend();
}

uint64_t Grid::ExchangeInWarp(const WarpOperation& operation, Site site) {
  if (!kernel_.has_barriers) {
    AwaitBlock(site);
    return 0;
  }
  DeviceThread& self = thread(running_);
  self.state = DeviceThread::State::kInWarp;
  self.operation = operation;
  self.site = site;
  Fiber::Suspend();
  return self.result;
}

}  // namespace

void AwaitBlock(Site site) { grid->AwaitBlock(site); }

uint64_t ExchangeInWarp(const WarpOperation& operation, Site site) {
  return grid->ExchangeInWarp(operation, site);
}

}  // namespace simulated

absl::Status RunSimulatedGrid(const SimulatedKernel& kernel,
                              const LaunchShape& shape, void** arguments,
                              uint64_t seed) {
  // Grids share the __shared__ variables of kernels.
  ABSL_CONST_INIT static absl::Mutex one_grid_at_a_time(absl::kConstInit);
  absl::MutexLock lock(&one_grid_at_a_time);
  simulated::Grid grid(kernel, shape, arguments, seed);
  simulated::grid = &grid;
  absl::Status status = grid.Run();
  simulated::grid = nullptr;
  return status;
}

}  // namespace muster
