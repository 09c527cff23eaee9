#include <cmath>
#include <cstdint>
#include <vector>

#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"

namespace muster::internal {
namespace {

// Images as rows of channels.
struct ChannelRows {
  explicit ChannelRows(const KernelSpec& spec) {
    const Shape& x = spec.inputs[0].shape;
    channels = x.dim(x.rank() - 1);
    count = x.ElementCountInRange(0, x.rank() - 1);
  }
  int64_t count;
  int64_t channels;
};

// Calls visitor.operator()<T, U>() for images of T with channels of U.
template <typename Visitor>
KernelOr VisitTypes(const KernelSpec& spec, int channel_input,
                    Visitor&& visitor) {
  const DType channel_dtype = spec.inputs[channel_input].dtype;
  const auto visit = [&]<typename T>() -> KernelOr {
    if (channel_dtype == DTypeOf<T>()) {
      return visitor.template operator()<T, T>();
    }
    if (channel_dtype == DType::kFloat32) {
      return visitor.template operator()<T, float>();
    }
    return UnsupportedTypes(spec);
  };
  return VisitSupported<Supported::kFloating>(spec.inputs[0].dtype, spec,
                                              visit);
}

double EpsilonOf(const KernelSpec& spec) {
  return spec.attributes.GetOr("epsilon", 0.0);
}

KernelOr MakeTraining(const KernelSpec& spec) {
  const auto make = [&]<typename T, typename U>() {
    return MakeKernel([rows = ChannelRows(spec), epsilon = EpsilonOf(spec)](
                          const KernelArguments& arguments) {
      const auto x = arguments.inputs[0]->flat<T>();
      const auto scale = arguments.inputs[1]->flat<U>();
      const auto offset = arguments.inputs[2]->flat<U>();
      const auto y = arguments.outputs[0]->mutable_flat<T>();
      const auto mean = arguments.outputs[1]->mutable_flat<U>();
      const auto variance = arguments.outputs[2]->mutable_flat<U>();
      const double count = static_cast<double>(rows.count);
      for (int64_t c = 0; c < rows.channels; ++c) {
        const auto at = [&](int64_t row) { return row * rows.channels + c; };
        double sum = 0;
        for (int64_t r = 0; r < rows.count; ++r) sum += Widen(x[at(r)]);
        const double center = sum / count;
        double squares = 0;
        for (int64_t r = 0; r < rows.count; ++r) {
          const double distance = Widen(x[at(r)]) - center;
          squares += distance * distance;
        }
        const double spread = squares / count;
        const double factor = Widen(scale[c]) / std::sqrt(spread + epsilon);
        for (int64_t r = 0; r < rows.count; ++r) {
          y[at(r)] =
              Narrow<T>((Widen(x[at(r)]) - center) * factor + Widen(offset[c]));
        }
        mean[c] = Narrow<U>(center);
        variance[c] = Narrow<U>(spread);
      }
      return absl::OkStatus();
    });
  };
  return VisitTypes(spec, 1, make);
}

KernelOr MakeTrainingGrad(const KernelSpec& spec) {
  const auto make = [&]<typename T, typename U>() {
    return MakeKernel([rows = ChannelRows(spec), epsilon = EpsilonOf(spec)](
                          const KernelArguments& arguments) {
      const auto dy = arguments.inputs[0]->flat<T>();
      const auto x = arguments.inputs[1]->flat<T>();
      const auto scale = arguments.inputs[2]->flat<U>();
      const auto mean = arguments.inputs[3]->flat<U>();
      const auto variance = arguments.inputs[4]->flat<U>();
      const auto dx = arguments.outputs[0]->mutable_flat<T>();
      const auto dscale = arguments.outputs[1]->mutable_flat<U>();
      const auto doffset = arguments.outputs[2]->mutable_flat<U>();
      const double count = static_cast<double>(rows.count);
      for (int64_t c = 0; c < rows.channels; ++c) {
        const auto at = [&](int64_t row) { return row * rows.channels + c; };
        const double inverse = 1 / std::sqrt(Widen(variance[c]) + epsilon);
        const auto normalized = [&](int64_t row) {
          return (Widen(x[at(row)]) - Widen(mean[c])) * inverse;
        };
        double sum = 0;
        double weighted_sum = 0;
        for (int64_t r = 0; r < rows.count; ++r) {
          sum += Widen(dy[at(r)]);
          weighted_sum += Widen(dy[at(r)]) * normalized(r);
        }
        for (int64_t r = 0; r < rows.count; ++r) {
          const double along = (sum + normalized(r) * weighted_sum) / count;
          dx[at(r)] = Narrow<T>((Widen(dy[at(r)]) - along) *
                                (Widen(scale[c]) * inverse));
        }
        dscale[c] = Narrow<U>(weighted_sum);
        doffset[c] = Narrow<U>(sum);
      }
      return absl::OkStatus();
    });
  };
  return VisitTypes(spec, 2, make);
}

KernelOr MakeInference(const KernelSpec& spec) {
  const auto make = [&]<typename T, typename U>() {
    return MakeKernel([rows = ChannelRows(spec), epsilon = EpsilonOf(spec)](
                          const KernelArguments& arguments) {
      const auto x = arguments.inputs[0]->flat<T>();
      const auto scale = arguments.inputs[1]->flat<U>();
      const auto offset = arguments.inputs[2]->flat<U>();
      const auto mean = arguments.inputs[3]->flat<U>();
      const auto variance = arguments.inputs[4]->flat<U>();
      const auto y = arguments.outputs[0]->mutable_flat<T>();
      for (size_t i = 0; i < y.size(); ++i) {
        const int64_t c = static_cast<int64_t>(i) % rows.channels;
        const double factor =
            Widen(scale[c]) / std::sqrt(Widen(variance[c]) + epsilon);
        const double distance =
            static_cast<double>(Widen(x[i])) - Widen(mean[c]);
        y[i] = Narrow<T>(distance * factor + Widen(offset[c]));
      }
      return absl::OkStatus();
    });
  };
  return VisitTypes(spec, 1, make);
}

// The normalized tensor as rows of features.
struct FeatureRows {
  FeatureRows(const KernelSpec& spec, int scale_input) {
    const Shape& x = spec.inputs[0].shape;
    features = spec.inputs[scale_input].shape.element_count();
    count = x.ElementCountInRange(
        0, x.rank() - spec.inputs[scale_input].shape.rank());
  }
  int64_t count;
  int64_t features;
};

KernelOr MakeLayerNorm(const KernelSpec& spec) {
  const auto make = [&]<typename T, typename U>() {
    return MakeKernel([rows = FeatureRows(spec, 1), epsilon = EpsilonOf(spec)](
                          const KernelArguments& arguments) {
      const auto x = arguments.inputs[0]->flat<T>();
      const auto scale = arguments.inputs[1]->flat<U>();
      const auto offset = arguments.inputs[2]->flat<U>();
      const auto y = arguments.outputs[0]->mutable_flat<T>();
      const auto mean = arguments.outputs[1]->mutable_flat<U>();
      const auto inverse = arguments.outputs[2]->mutable_flat<U>();
      const double count = static_cast<double>(rows.features);
      for (int64_t r = 0; r < rows.count; ++r) {
        const int64_t first = r * rows.features;
        double sum = 0;
        for (int64_t i = 0; i < rows.features; ++i) sum += Widen(x[first + i]);
        const double center = sum / count;
        double squares = 0;
        for (int64_t i = 0; i < rows.features; ++i) {
          const double distance = Widen(x[first + i]) - center;
          squares += distance * distance;
        }
        const double factor = 1 / std::sqrt(squares / count + epsilon);
        for (int64_t i = 0; i < rows.features; ++i) {
          y[first + i] = Narrow<T>((Widen(x[first + i]) - center) * factor *
                                       Widen(scale[i]) +
                                   Widen(offset[i]));
        }
        mean[r] = Narrow<U>(center);
        inverse[r] = Narrow<U>(factor);
      }
      return absl::OkStatus();
    });
  };
  return VisitTypes(spec, 1, make);
}

KernelOr MakeLayerNormGrad(const KernelSpec& spec) {
  const auto make = [&]<typename T, typename U>() {
    return MakeKernel([rows = FeatureRows(spec, 2)](
                          const KernelArguments& arguments) {
      const auto dy = arguments.inputs[0]->flat<T>();
      const auto x = arguments.inputs[1]->flat<T>();
      const auto scale = arguments.inputs[2]->flat<U>();
      const auto mean = arguments.inputs[3]->flat<U>();
      const auto inverse = arguments.inputs[4]->flat<U>();
      const auto dx = arguments.outputs[0]->mutable_flat<T>();
      const auto dscale = arguments.outputs[1]->mutable_flat<U>();
      const auto doffset = arguments.outputs[2]->mutable_flat<U>();
      const double count = static_cast<double>(rows.features);
      std::vector<double> sums(rows.features);
      std::vector<double> weighted_sums(rows.features);
      for (int64_t r = 0; r < rows.count; ++r) {
        const int64_t first = r * rows.features;
        const auto normalized = [&](int64_t i) {
          return (static_cast<double>(Widen(x[first + i])) - Widen(mean[r])) *
                 Widen(inverse[r]);
        };
        const auto scaled = [&](int64_t i) {
          return static_cast<double>(Widen(dy[first + i])) * Widen(scale[i]);
        };
        double sum = 0;
        double weighted_sum = 0;
        for (int64_t i = 0; i < rows.features; ++i) {
          sum += scaled(i);
          weighted_sum += scaled(i) * normalized(i);
          sums[i] += Widen(dy[first + i]);
          weighted_sums[i] += Widen(dy[first + i]) * normalized(i);
        }
        for (int64_t i = 0; i < rows.features; ++i) {
          const double along = (sum + normalized(i) * weighted_sum) / count;
          dx[first + i] = Narrow<T>((scaled(i) - along) * Widen(inverse[r]));
        }
      }
      for (int64_t i = 0; i < rows.features; ++i) {
        dscale[i] = Narrow<U>(weighted_sums[i]);
        doffset[i] = Narrow<U>(sums[i]);
      }
      return absl::OkStatus();
    });
  };
  return VisitTypes(spec, 2, make);
}

}  // namespace

void RegisterNormalizationKernels(KernelRegistry* registry) {
  RegisterReference(registry, "BatchNormTraining", MakeTraining);
  RegisterReference(registry, "BatchNormTrainingGrad", MakeTrainingGrad);
  RegisterReference(registry, "BatchNormInference", MakeInference);
  RegisterReference(registry, "LayerNorm", MakeLayerNorm);
  RegisterReference(registry, "LayerNormGrad", MakeLayerNormGrad);
}

}  // namespace muster::internal
