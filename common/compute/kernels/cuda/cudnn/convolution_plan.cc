#include "common/compute/kernels/cuda/cudnn/convolution_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/compute/kernels/cuda/cudnn/convolution_graph.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/window.h"

namespace muster {

std::string Describe(const ConvolutionProblem& problem) {
  const internal::ConvGeometry& geometry = problem.geometry;
  std::string text = absl::StrCat(
      problem.tensor_float_32 ? "tf32 " : "", DTypeString(problem.dtype),
      " part ", static_cast<int>(geometry.part), " batch ", geometry.batch,
      " groups ", geometry.groups, " channels ", geometry.input_channels, " ",
      geometry.output_channels);
  for (const WindowAxis& axis : {geometry.height, geometry.width}) {
    absl::StrAppend(&text, " axis ", axis.input_extent, " ", axis.output_extent,
                    " window ", axis.window_extent, " stride ", axis.stride,
                    " dilation ", axis.dilation, " padding ",
                    axis.padding_before, " ", axis.padding_after);
  }
  return text;
}

absl::StatusOr<CudnnPlan> MakeCudnnPlan(const CudnnTarget& target,
                                        const ConvolutionProblem& problem) {
  ASSIGN_OR_RETURN(CudnnGraph graph,
                   internal::MakeConvolutionGraph(target, problem));
  // Tensor cores round float32 to TF32.
  return CudnnPlan::Create(
      target, std::move(graph),
      {.what = "a convolution",
       .allows_tensor_cores =
           problem.dtype != DType::kFloat32 || problem.tensor_float_32});
}

}  // namespace muster
