#ifndef COMMON_NET_COLLECTIVES_NCCL_NCCL_API_H_
#define COMMON_NET_COLLECTIVES_NCCL_NCCL_API_H_

#include <climits>
#include <cstddef>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/core/device/driver/driver_api.h"

// Declares the part of NCCL that Muster calls, so that building, testing, and
// running without GPUs require neither NCCL's header nor its library. Names,
// types and meanings are NCCL's.
//
// Source: NCCL User Guide, 2.18 and later.
namespace muster::nccl {

// ncclResult_t.
using Result = int;
inline constexpr Result kSuccess = 0;
inline constexpr Result kUnhandledCudaError = 1;
inline constexpr Result kSystemError = 2;
inline constexpr Result kInternalError = 3;
inline constexpr Result kInvalidArgument = 4;
inline constexpr Result kInvalidUsage = 5;
inline constexpr Result kRemoteError = 6;
inline constexpr Result kInProgress = 7;

// ncclDataType_t.
enum class DataType : int {
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};

// ncclRedOp_t.
enum class ReductionKind : int {
  kSum = 0,
  kProd = 1,
  kMax = 2,
  kMin = 3,
  kAvg = 4
};

// ncclComm_t is a pointer to it.
struct Comm;

// ncclUniqueId: the rendezvous of the ranks of one communicator.
struct UniqueId {
  char bytes[128] = {};
};

// The oldest version that has all functions of the table.
inline constexpr int kVersionMin = 21800;

// ncclConfig_t as of kVersionMin. Later versions have longer ones but accept
// this one, which contains its size and version. The table of functions
// therefore declares it as void*.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = kVersionMin;
  int blocking = 0;
  int cga_cluster_size = INT_MIN;  // INT_MIN: NCCL chooses.
  int ctas_min = INT_MIN;
  int ctas_max = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};

// F(name, type) for each function.
#define MUSTER_NCCL_FUNCTIONS(F)                                               \
  F(ncclGetVersion, Result(int*))                                              \
  F(ncclGetUniqueId, Result(UniqueId*))                                        \
  F(ncclCommInitRankConfig, Result(Comm**, int, UniqueId, int, void*))         \
  F(ncclCommGetAsyncError, Result(Comm*, Result*))                             \
  F(ncclCommFinalize, Result(Comm*))                                           \
  F(ncclCommDestroy, Result(Comm*))                                            \
  F(ncclCommAbort, Result(Comm*))                                              \
  F(ncclGetErrorString, const char*(Result))                                   \
  F(ncclGetLastError, const char*(Comm*))                                      \
  F(ncclGroupStart, Result())                                                  \
  F(ncclGroupEnd, Result())                                                    \
  F(ncclAllReduce, Result(const void*, void*, size_t, DataType, ReductionKind, \
                          Comm*, driver::StreamHandle*))                       \
  F(ncclReduce, Result(const void*, void*, size_t, DataType, ReductionKind,    \
                       int, Comm*, driver::StreamHandle*))                     \
  F(ncclReduceScatter, Result(const void*, void*, size_t, DataType,            \
                              ReductionKind, Comm*, driver::StreamHandle*))    \
  F(ncclAllGather, Result(const void*, void*, size_t, DataType, Comm*,         \
                          driver::StreamHandle*))                              \
  F(ncclBroadcast, Result(const void*, void*, size_t, DataType, int, Comm*,    \
                          driver::StreamHandle*))

// The functions of a library: of libnccl.so.2 (RealNccl()), or of a fake NCCL
// on simulated GPUs (fake/fake_nccl.h).
struct Api {
#define MUSTER_NCCL_MEMBER(name, type) std::add_pointer_t<type> name = nullptr;
  MUSTER_NCCL_FUNCTIONS(MUSTER_NCCL_MEMBER)
#undef MUSTER_NCCL_MEMBER

  int version = 0;  // 22809 for 2.28.9.
  // True if the library supports simulated GPUs only.
  bool is_simulated = false;
};

// "2.28.9".
inline std::string VersionString(int version) {
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".",
                      version % 100);
}

}  // namespace muster::nccl

#endif  // COMMON_NET_COLLECTIVES_NCCL_NCCL_API_H_
