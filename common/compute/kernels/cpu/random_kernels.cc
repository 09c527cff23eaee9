#include <cstdint>
#include <memory>

#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/cpu/vectorized.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/random_position.h"
#include "common/core/base/random.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/tensor.h"

// Philox, bit-identical to common/core/base/random.h, arranged so that the
// rounds of many positions are vectorized.
namespace muster {
namespace {

constexpr int64_t kBlock = 64;  // In positions.

struct Rounds {
  uint32_t words[4][kBlock];

  MUSTER_INLINE void Run(uint64_t key, uint64_t position) {
    for (int64_t i = 0; i < kBlock; ++i) {
      words[0][i] = static_cast<uint32_t>(position + i);
      words[1][i] = static_cast<uint32_t>((position + i) >> 32);
      words[2][i] = 0;
      words[3][i] = 0;
    }
    uint32_t key0 = static_cast<uint32_t>(key);
    uint32_t key1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int64_t i = 0; i < kBlock; ++i) {
        const uint64_t product0 = uint64_t{0xD2511F53} * words[0][i];
        const uint64_t product1 = uint64_t{0xCD9E8D57} * words[2][i];
        words[0][i] =
            static_cast<uint32_t>(product1 >> 32) ^ words[1][i] ^ key0;
        words[1][i] = static_cast<uint32_t>(product1);
        words[2][i] =
            static_cast<uint32_t>(product0 >> 32) ^ words[3][i] ^ key1;
        words[3][i] = static_cast<uint32_t>(product0);
      }
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
  }
};

struct FillUniform {
  // Draws the numbers `first` to first + count - 1 of the stream.
  MUSTER_INLINE static void Run(uint64_t key, uint64_t first, int64_t count,
                                float* out) {
    int64_t done = 0;
    if (first % 4 != 0) {
      const auto words = Philox(key, first / 4);
      for (; done < count && (first + done) % 4 != 0; ++done) {
        out[done] = UnitFloat(words[(first + done) % 4]);
      }
    }
    Rounds rounds;
    for (; done + kBlock * 4 <= count; done += kBlock * 4) {
      rounds.Run(key, (first + done) / 4);
      float* const block = out + done;
      for (int64_t i = 0; i < kBlock; ++i) {
        for (int word = 0; word < 4; ++word) {
          // Small enough for a signed conversion, which all machines vectorize.
          const auto bits = static_cast<int32_t>(rounds.words[word][i] >> 8);
          block[i * 4 + word] = static_cast<float>(bits) * 0x1.0p-24f;
        }
      }
    }
    if (done == count) return;
    rounds.Run(key, (first + done) / 4);
    for (int64_t i = 0; i < count - done; ++i) {
      out[done + i] = UnitFloat(rounds.words[i % 4][i / 4]);
    }
  }
};

class UniformKernel : public Kernel {
 public:
  absl::Status Run(const KernelArguments& arguments) override {
    const auto seed = arguments.inputs[0]->flat<int64_t>();
    const auto out = arguments.outputs[0]->mutable_flat<float>();
    RunVectorized<FillUniform>(
        FoldIn(static_cast<uint64_t>(seed[0]), static_cast<uint64_t>(seed[1])),
        internal::FirstRandomElement(arguments),
        static_cast<int64_t>(out.size()), out.data());
    return absl::OkStatus();
  }
};

}  // namespace

namespace internal {

void RegisterCpuRandomKernels(KernelRegistry* registry) {
  registry->Register("RandomUniform",
                     [](const KernelSpec& spec,
                        int) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                       if (spec.outputs[0].dtype != DType::kFloat32) {
                         return absl::UnimplementedError("float32 only");
                       }
                       return std::make_unique<UniformKernel>();
                     });
}

}  // namespace internal
}  // namespace muster
