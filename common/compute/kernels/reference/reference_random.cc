#include <algorithm>
#include <array>
#include <cmath>

#include "common/compute/kernels/random_position.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/core/base/random.h"

namespace muster::internal {
namespace {

// 5% of normal numbers lie outside of two standard deviations, so the
// probability that all attempts fail is 1e-43.
constexpr int kTruncationAttemptsMax = 32;

uint64_t KeyOf(const Tensor& seed) {
  const auto words = seed.flat<int64_t>();
  return FoldIn(static_cast<uint64_t>(words[0]),
                static_cast<uint64_t>(words[1]));
}

// Uses no more bits than T has, so that the result stays in [0, 1) after
// rounding.
template <typename T>
T ToUniform(uint32_t bits) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    return Narrow<T>((bits >> 24) * 0x1p-8f);
  } else if constexpr (std::is_same_v<T, float16>) {
    return Narrow<T>((bits >> 21) * 0x1p-11f);
  } else {
    return Narrow<T>(UnitFloat(bits));
  }
}

// Calls fill(words, four elements). Each position of the generator yields four
// numbers; the output may begin between two positions.
template <typename T, typename Fill>
absl::Status FillByFour(const KernelArguments& arguments, Fill fill) {
  const uint64_t key = KeyOf(*arguments.inputs[0]);
  const auto out = arguments.outputs[0]->mutable_flat<T>();
  const uint64_t first = FirstRandomElement(arguments);
  for (uint64_t next = first; next < first + out.size();) {
    std::array<T, 4> drawn;
    fill(Philox(key, next / 4), drawn);
    const uint64_t skipped = next % 4;
    const uint64_t count =
        std::min<uint64_t>(4 - skipped, first + out.size() - next);
    std::copy_n(drawn.begin() + skipped, count, out.begin() + (next - first));
    next += count;
  }
  return absl::OkStatus();
}

KernelOr MakeUniform(const KernelSpec& spec) {
  const auto make = [&]<typename T>() {
    return MakeKernel([](const KernelArguments& arguments) {
      return FillByFour<T>(arguments, [](const auto& words, auto& drawn) {
        for (int i = 0; i < 4; ++i) drawn[i] = ToUniform<T>(words[i]);
      });
    });
  };
  return VisitSupported<Supported::kFloating>(spec.outputs[0].dtype, spec,
                                              make);
}

KernelOr MakeNormal(const KernelSpec& spec) {
  const auto make = [&]<typename T>() {
    return MakeKernel([](const KernelArguments& arguments) {
      return FillByFour<T>(arguments, [](const auto& words, auto& drawn) {
        for (int i = 0; i < 4; i += 2) {
          const auto pair = UnitNormals(words[i], words[i + 1]);
          drawn[i] = Narrow<T>(pair[0]);
          drawn[i + 1] = Narrow<T>(pair[1]);
        }
      });
    });
  };
  return VisitSupported<Supported::kFloating>(spec.outputs[0].dtype, spec,
                                              make);
}

// Each element draws repeatedly from its own position until the number is in
// range.
float TruncatedNormalAt(uint64_t key, uint64_t position) {
  for (int attempt = 0; attempt < kTruncationAttemptsMax; ++attempt) {
    const auto words = Philox(key, position, attempt);
    for (int i = 0; i < 4; i += 2) {
      for (const float normal : UnitNormals(words[i], words[i + 1])) {
        if (std::abs(normal) < 2) return normal;
      }
    }
  }
  return 0;
}

KernelOr MakeTruncatedNormal(const KernelSpec& spec) {
  const auto make = [&]<typename T>() {
    return MakeKernel([](const KernelArguments& arguments) {
      const uint64_t key = KeyOf(*arguments.inputs[0]);
      const auto out = arguments.outputs[0]->mutable_flat<T>();
      const uint64_t first = FirstRandomElement(arguments);
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] = Narrow<T>(TruncatedNormalAt(key, first + i));
      }
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.outputs[0].dtype, spec,
                                              make);
}

KernelOr MakeStepSeed(const KernelSpec&) {
  return MakeKernel([](const KernelArguments& arguments) {
    const auto seed = arguments.outputs[0]->mutable_flat<int64_t>();
    seed[0] = static_cast<int64_t>(arguments.step_seed);
    seed[1] = 0;
    return absl::OkStatus();
  });
}

KernelOr MakeFoldInSeed(const KernelSpec& spec) {
  const auto data =
      static_cast<uint64_t>(spec.attributes.GetOr<int64_t>("data", 0));
  return MakeKernel(
      [data](const KernelArguments& arguments) {
        const auto seed = arguments.inputs[0]->flat<int64_t>();
        const auto out = arguments.outputs[0]->mutable_flat<int64_t>();
        const int64_t second = seed[1];
        out[0] =
            static_cast<int64_t>(FoldIn(static_cast<uint64_t>(seed[0]), data));
        out[1] = second;
        return absl::OkStatus();
      },
      ElementwiseSharing(spec));
}

}  // namespace

void RegisterRandomKernels(KernelRegistry* registry) {
  RegisterReference(registry, "StepSeed", MakeStepSeed);
  RegisterReference(registry, "FoldInSeed", MakeFoldInSeed);
  RegisterReference(registry, "RandomUniform", MakeUniform);
  RegisterReference(registry, "RandomNormal", MakeNormal);
  RegisterReference(registry, "TruncatedNormal", MakeTruncatedNormal);
}

}  // namespace muster::internal
