// Compares nccl_api.h with NCCL's own header at compile time, if the CUDA
// toolkit contains it.
#include <cstddef>

#include "common/core/device/testing/same_shape.h"
#include "common/net/collectives/nccl/nccl_api.h"
#include "gtest/gtest.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace muster::nccl {
namespace {

#define MUSTER_COMPARE(name, type)                      \
  static_assert(kHaveSameShape<type, decltype(::name)>, \
                "nccl_api.h declares " #name " otherwise than nccl.h");
MUSTER_NCCL_FUNCTIONS(MUSTER_COMPARE)
#undef MUSTER_COMPARE

static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));

static_assert(kSuccess == ncclSuccess);
static_assert(kUnhandledCudaError == ncclUnhandledCudaError);
static_assert(kSystemError == ncclSystemError);
static_assert(kInternalError == ncclInternalError);
static_assert(kInvalidArgument == ncclInvalidArgument);
static_assert(kInvalidUsage == ncclInvalidUsage);
static_assert(kRemoteError == ncclRemoteError);
static_assert(kInProgress == ncclInProgress);

static_assert(static_cast<int>(DataType::kUint8) == ncclUint8);
static_assert(static_cast<int>(DataType::kInt32) == ncclInt32);
static_assert(static_cast<int>(DataType::kInt64) == ncclInt64);
static_assert(static_cast<int>(DataType::kFloat16) == ncclFloat16);
static_assert(static_cast<int>(DataType::kFloat32) == ncclFloat32);
static_assert(static_cast<int>(DataType::kFloat64) == ncclFloat64);
static_assert(static_cast<int>(DataType::kBfloat16) == ncclBfloat16);

static_assert(static_cast<int>(ReductionKind::kSum) == ncclSum);
static_assert(static_cast<int>(ReductionKind::kProd) == ncclProd);
static_assert(static_cast<int>(ReductionKind::kMax) == ncclMax);
static_assert(static_cast<int>(ReductionKind::kMin) == ncclMin);
static_assert(static_cast<int>(ReductionKind::kAvg) == ncclAvg);

// Our Config is a prefix of ncclConfig_t.
static_assert(sizeof(Config) <= sizeof(ncclConfig_t));
static_assert(offsetof(Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(Config, cga_cluster_size) ==
              offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(Config, ctas_min) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(Config, ctas_max) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(Config, net_name) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(Config, split_share) ==
              offsetof(ncclConfig_t, splitShare));

TEST(NcclHeaderTest, TheConfigIsInitializedAsNcclDoes) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(ours.cga_cluster_size, theirs.cgaClusterSize);
  EXPECT_EQ(ours.ctas_min, theirs.minCTAs);
  EXPECT_EQ(ours.ctas_max, theirs.maxCTAs);
  EXPECT_EQ(ours.net_name, theirs.netName);
  EXPECT_EQ(ours.split_share, theirs.splitShare);
  EXPECT_LE(ours.version, theirs.version);
}

}  // namespace
}  // namespace muster::nccl

#else

TEST(NcclHeaderTest, TheConfigIsInitializedAsNcclDoes) {
  GTEST_SKIP() << "the CUDA toolkit has no nccl.h";
}

#endif
