#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/compute/kernels/image_geometry.h"
#include "common/compute/kernels/reference/elements.h"
#include "common/compute/kernels/reference/register_reference_kernels.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

// The part of a window within the image.
struct Range {
  Range(const WindowAxis& axis, int64_t i)
      : begin(std::max<int64_t>(i * axis.stride - axis.padding_before, 0)),
        end(std::min(i * axis.stride - axis.padding_before + axis.window_extent,
                     axis.input_extent)) {}

  int64_t size() const { return end - begin; }

  int64_t begin;
  int64_t end;
};

// Calls visit(output position, rows, columns, position of (row, column)) for
// every window of every channel.
template <typename Visit>
void ForEachWindow(const PoolGeometry& g, Visit visit) {
  int64_t output = 0;
  for (int64_t n = 0; n < g.batch; ++n) {
    for (int64_t h = 0; h < g.height.output_extent; ++h) {
      for (int64_t w = 0; w < g.width.output_extent; ++w) {
        for (int64_t c = 0; c < g.channels; ++c, ++output) {
          const auto position = [&g, n, c](int64_t row, int64_t column) {
            return ((n * g.height.input_extent + row) * g.width.input_extent +
                    column) *
                       g.channels +
                   c;
          };
          visit(output, Range(g.height, h), Range(g.width, w), position);
        }
      }
    }
  }
}

// Returns the position of the first maximum of a window; of the first NaN if
// there is one.
template <typename T, typename Position>
int64_t PositionOfMax(absl::Span<const T> x, const Range& rows,
                      const Range& columns, Position position) {
  int64_t best = position(rows.begin, columns.begin);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t column = columns.begin; column < columns.end; ++column) {
      const int64_t at = position(row, column);
      if (std::isnan(Widen(x[best]))) return best;
      if (!(Widen(x[at]) <= Widen(x[best]))) best = at;
    }
  }
  return best;
}

// Selects elements of input 0 at the positions of the maxima of input
// `x_input`.
KernelOr MakeMaxSelect(const KernelSpec& spec, int x_input) {
  ASSIGN_OR_RETURN(const PoolGeometry geometry,
                   PoolGeometry::Of(spec, spec.inputs[x_input]));
  const auto make = [&]<typename T>() {
    return MakeKernel([geometry, x_input](const KernelArguments& arguments) {
      const auto values = arguments.inputs[0]->flat<T>();
      const auto x = arguments.inputs[x_input]->flat<T>();
      const auto y = arguments.outputs[0]->mutable_flat<T>();
      ForEachWindow(geometry, [&](int64_t output, const Range& rows,
                                  const Range& columns, auto position) {
        y[output] = values[PositionOfMax(x, rows, columns, position)];
      });
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.outputs[0].dtype, spec,
                                              make);
}

KernelOr MakeMaxPoolGrad(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const PoolGeometry geometry,
                   PoolGeometry::Of(spec, spec.inputs[1]));
  const auto make = [&]<typename T>() {
    return MakeKernel([geometry](const KernelArguments& arguments) {
      const auto gradient = arguments.inputs[0]->flat<T>();
      const auto x = arguments.inputs[1]->flat<T>();
      const auto dx = arguments.outputs[0]->mutable_flat<T>();
      std::fill(dx.begin(), dx.end(), T(0));
      ForEachWindow(geometry, [&](int64_t output, const Range& rows,
                                  const Range& columns, auto position) {
        T& sum = dx[PositionOfMax<T>(x, rows, columns, position)];
        sum = Narrow<T>(Widen(sum) + Widen(gradient[output]));
      });
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.outputs[0].dtype, spec,
                                              make);
}

KernelOr MakeAveragePool(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const PoolGeometry geometry,
                   PoolGeometry::Of(spec, spec.inputs[0]));
  const auto make = [&]<typename T>() {
    return MakeKernel([geometry](const KernelArguments& arguments) {
      const auto x = arguments.inputs[0]->flat<T>();
      const auto y = arguments.outputs[0]->mutable_flat<T>();
      ForEachWindow(geometry, [&](int64_t output, const Range& rows,
                                  const Range& columns, auto position) {
        Accumulated<T> sum = 0;
        for (int64_t row = rows.begin; row < rows.end; ++row) {
          for (int64_t column = columns.begin; column < columns.end; ++column) {
            sum += Widen(x[position(row, column)]);
          }
        }
        y[output] = Narrow<T>(sum / (rows.size() * columns.size()));
      });
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.outputs[0].dtype, spec,
                                              make);
}

KernelOr MakeAveragePoolGrad(const KernelSpec& spec) {
  ASSIGN_OR_RETURN(const PoolGeometry geometry,
                   PoolGeometry::Of(spec, spec.outputs[0]));
  const auto make = [&]<typename T>() {
    return MakeKernel([geometry](const KernelArguments& arguments) {
      const auto gradient = arguments.inputs[0]->flat<T>();
      const auto dx = arguments.outputs[0]->mutable_flat<T>();
      std::fill(dx.begin(), dx.end(), T(0));
      ForEachWindow(geometry, [&](int64_t output, const Range& rows,
                                  const Range& columns, auto position) {
        const Computed<T> part =
            Widen(gradient[output]) /
            static_cast<Computed<T>>(rows.size() * columns.size());
        for (int64_t row = rows.begin; row < rows.end; ++row) {
          for (int64_t column = columns.begin; column < columns.end; ++column) {
            T& sum = dx[position(row, column)];
            sum = Narrow<T>(Widen(sum) + part);
          }
        }
      });
      return absl::OkStatus();
    });
  };
  return VisitSupported<Supported::kFloating>(spec.outputs[0].dtype, spec,
                                              make);
}

}  // namespace

void RegisterPoolKernels(KernelRegistry* registry) {
  RegisterReference(registry, "MaxPool2D", [](const KernelSpec& spec) {
    return MakeMaxSelect(spec, /*x_input=*/0);
  });
  RegisterReference(registry, "MaxPool2DSelect", [](const KernelSpec& spec) {
    return MakeMaxSelect(spec, /*x_input=*/1);
  });
  RegisterReference(registry, "MaxPool2DGrad", MakeMaxPoolGrad);
  RegisterReference(registry, "AveragePool2D", MakeAveragePool);
  RegisterReference(registry, "AveragePool2DGrad", MakeAveragePoolGrad);
}

}  // namespace muster::internal
