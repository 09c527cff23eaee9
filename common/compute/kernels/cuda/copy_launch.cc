#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/compute/kernels/cuda/device_code/copy_image.h"
#include "common/compute/kernels/cuda/device_code/kernel_parameters.h"
#include "common/compute/kernels/cuda/launch.h"
#include "common/compute/kernels/cuda/register_cuda_kernels.h"
#include "common/compute/kernels/strided_index.h"
#include "common/compute/kernels/view_copies.h"
#include "common/core/base/status_macros.h"

namespace muster::internal {
namespace {

int32_t WordBytes(DType dtype) { return static_cast<int32_t>(SizeOf(dtype)); }

bool IsIndexType(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64;
}

CopyParameters ParametersOf(const StridedIndex& from, const StridedIndex& to,
                            DType dtype) {
  return {.count = to.element_count(),
          .from = nullptr,
          .to = nullptr,
          .word_bytes = WordBytes(dtype),
          .from_layout = DeviceLayoutOf(from),
          .to_layout = DeviceLayoutOf(to)};
}

// Appends an innermost axis.
void AddAxis(int64_t extent, int64_t stride, DeviceLayout* layout) {
  layout->extents[layout->rank] = extent;
  layout->strides[layout->rank] = stride;
  ++layout->rank;
}

// Returns the copy as a transposition of matrices if it writes words in order
// and reads in order along another axis than the innermost one. Both axes must
// be long enough that most of a tile is filled.
std::optional<TransposeParameters> AsTransposition(const CopyParameters& copy) {
  constexpr int64_t kExtentMin = TransposeParameters::kTile / 2;
  constexpr int64_t kTile = TransposeParameters::kTile;
  const DeviceLayout& from = copy.from_layout;
  if (copy.to_layout.rank != 1 || copy.to_layout.strides[0] != 1) {
    return std::nullopt;
  }
  const int last = from.rank - 1;
  int columns = 0;
  while (columns < last && from.strides[columns] != 1) ++columns;
  if (columns >= last || from.strides[last] == 1 ||
      from.extents[columns] < kExtentMin || from.extents[last] < kExtentMin) {
    return std::nullopt;
  }
  TransposeParameters transpose = {.from = copy.from,
                                   .to = copy.to,
                                   .word_bytes = copy.word_bytes,
                                   .rows = from.extents[last],
                                   .columns = from.extents[columns],
                                   .from_row_stride = from.strides[last]};
  transpose.from_matrices.offset = from.offset;
  transpose.to_matrices.offset = copy.to_layout.offset;
  int64_t to_stride = copy.count;
  for (int axis = 0; axis < last; ++axis) {
    to_stride /= from.extents[axis];
    if (axis == columns) {
      transpose.to_column_stride = to_stride;
      continue;
    }
    AddAxis(from.extents[axis], from.strides[axis], &transpose.from_matrices);
    AddAxis(from.extents[axis], to_stride, &transpose.to_matrices);
  }
  transpose.tiles_per_row =
      static_cast<uint32_t>((transpose.columns + kTile - 1) / kTile);
  transpose.tiles_per_matrix =
      transpose.tiles_per_row *
      static_cast<uint32_t>((transpose.rows + kTile - 1) / kTile);
  return transpose;
}

// True if each row of the layout's innermost axis consists of whole groups of
// `factor` adjacent words that are aligned as groups.
bool HasGroups(const DeviceLayout& layout, int64_t factor) {
  const int last = layout.rank - 1;
  if (last < 0 || layout.strides[last] != 1) return false;
  bool has_groups =
      layout.extents[last] % factor == 0 && layout.offset % factor == 0;
  for (int axis = 0; axis < last; ++axis) {
    has_groups &= layout.strides[axis] % factor == 0;
  }
  return has_groups;
}

void DivideWords(int64_t factor, DeviceLayout* layout) {
  const int last = layout->rank - 1;
  layout->extents[last] /= factor;
  layout->offset /= factor;
  for (int axis = 0; axis < last; ++axis) layout->strides[axis] /= factor;
}

// Makes the words as wide as both layouts and the addresses allow.
void WidenWords(CopyParameters* copy) {
  const auto addresses = reinterpret_cast<uintptr_t>(copy->from) |
                         reinterpret_cast<uintptr_t>(copy->to);
  for (int32_t bytes = 16; bytes > copy->word_bytes; bytes /= 2) {
    const int64_t factor = bytes / copy->word_bytes;
    if (addresses % static_cast<uintptr_t>(bytes) != 0 ||
        !HasGroups(copy->from_layout, factor) ||
        !HasGroups(copy->to_layout, factor)) {
      continue;
    }
    DivideWords(factor, &copy->from_layout);
    DivideWords(factor, &copy->to_layout);
    copy->count /= factor;
    copy->word_bytes = bytes;
    return;
  }
}

absl::Status LaunchTransposition(const DeviceRun& run,
                                 const DeviceFunction& function, int64_t count,
                                 const TransposeParameters& transpose) {
  const int64_t matrices = count / transpose.rows / transpose.columns;
  LaunchShape shape;
  shape.grid[0] = static_cast<uint32_t>(matrices * transpose.tiles_per_matrix);
  shape.block[0] = TransposeParameters::kTile;
  shape.block[1] = TransposeParameters::kLanes;
  return run.Launch(function, shape, transpose);
}

KernelOr MakeView(const KernelSpec& spec, const KernelTarget& target) {
  const DType dtype = spec.inputs[0].dtype;
  if (dtype == DType::kString) return Unsupported(spec);
  ASSIGN_OR_RETURN(const WordCopy copy_words, CopyingWords(target));
  struct Part {
    int input;
    int output;
    CopyParameters parameters;
  };
  std::vector<Part> parts;
  for (const ViewCopy& copy : ViewCopiesOf(spec)) {
    parts.push_back(
        {copy.input, copy.output, ParametersOf(copy.from, copy.to, dtype)});
  }
  return MakeDeviceKernel(target, [=](const DeviceRun& run) -> absl::Status {
    for (const Part& part : parts) {
      CopyParameters parameters = part.parameters;
      parameters.from = run.input(part.input).data;
      parameters.to = run.output(part.output).data;
      RETURN_IF_ERROR(copy_words(run, parameters));
    }
    return absl::OkStatus();
  });
}

using Run = std::function<absl::Status(const DeviceRun&)>;

// Copies input 0 to output 0 in order.
absl::StatusOr<Run> Copying(const KernelSpec& spec,
                            const KernelTarget& target) {
  ASSIGN_OR_RETURN(const WordCopy copy_words, CopyingWords(target));
  const StridedIndex dense = DenseIndex(spec.inputs[0].shape);
  const CopyParameters same = ParametersOf(dense, dense, spec.inputs[0].dtype);
  return [=](const DeviceRun& run) -> absl::Status {
    CopyParameters parameters = same;
    parameters.from = run.input(0).data;
    parameters.to = run.output(0).data;
    if (parameters.from == parameters.to) return absl::OkStatus();
    return copy_words(run, parameters);
  };
}

KernelOr MakeSame(const KernelSpec& spec, const KernelTarget& target) {
  if (spec.inputs[0].dtype == DType::kString) return Unsupported(spec);
  ASSIGN_OR_RETURN(Run copy, Copying(spec, target));
  return MakeDeviceKernel(target, std::move(copy), {.shared_inputs = 1});
}

KernelOr MakeAssert(const KernelSpec& spec, const KernelTarget& target) {
  ASSIGN_OR_RETURN(Run copy, Copying(spec, target));
  ASSIGN_OR_RETURN(const DeviceFunction check,
                   FindFunction(target, copy_image(), "check_condition"));
  const int64_t count = spec.inputs[1].shape.element_count();
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) -> absl::Status {
        const CheckConditionParameters parameters = {
            .count = count,
            .condition = static_cast<const bool*>(run.input(1).data),
            .fault = run.fault};
        LaunchShape shape;
        shape.block[0] = CheckConditionParameters::kThreads;
        RETURN_IF_ERROR(run.Launch(check, shape, parameters));
        return copy(run);
      },
      {.shared_inputs = 1,
       .has_data_errors = true,
       .condition_message = spec.attributes.GetOr<std::string>("message", "")});
}

// Pad and PadLike.
KernelOr MakePad(const KernelSpec& spec, const KernelTarget& target) {
  const DType dtype = spec.inputs[0].dtype;
  if (dtype == DType::kString) return Unsupported(spec);
  ASSIGN_OR_RETURN(
      auto fill,
      Filling(target, spec, spec.attributes.GetOr<double>("value", 0)));
  ASSIGN_OR_RETURN(const WordCopy copy_words, CopyingWords(target));
  const Shape& input = spec.inputs[0].shape;
  const CopyParameters box = ParametersOf(
      DenseIndex(input), BoxIndex(input, spec.outputs[0].shape, PadBegin(spec)),
      dtype);
  return MakeDeviceKernel(target, [=](const DeviceRun& run) -> absl::Status {
    RETURN_IF_ERROR(fill(run));
    CopyParameters parameters = box;
    parameters.from = run.input(0).data;
    parameters.to = run.output(0).data;
    return copy_words(run, parameters);
  });
}

// A tensor as [outer, bound, inner] around the indexed axis.
struct IndexedAxis {
  IndexedAxis(const KernelSpec& spec, const Shape& shape) {
    const int64_t attribute = spec.attributes.GetOr<int64_t>("axis", 0);
    const int axis =
        static_cast<int>(attribute < 0 ? attribute + shape.rank() : attribute);
    outer = shape.ElementCountInRange(0, axis);
    bound = shape.dim(axis);
    inner = shape.ElementCountInRange(axis + 1, shape.rank());
    index_count = spec.inputs[1].shape.element_count();
  }

  int64_t outer, bound, inner, index_count;
};

KernelOr MakeGather(const KernelSpec& spec, const KernelTarget& target) {
  const DType dtype = spec.inputs[0].dtype;
  if (!IsIndexType(spec.inputs[1].dtype) || dtype == DType::kString) {
    return Unsupported(spec);
  }
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   FindFunction(target, copy_image(), "gather_words"));
  const IndexedAxis axis(spec, spec.inputs[0].shape);
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) {
        const GatherParameters parameters = {
            .count = axis.outer * axis.index_count * axis.inner,
            .from = run.input(0).data,
            .to = run.output(0).data,
            .word_bytes = WordBytes(dtype),
            .indices = run.input(1),
            .index_count = axis.index_count,
            .bound = axis.bound,
            .inner = axis.inner,
            .fault = run.fault};
        return run.Launch(function, ThreadForEach(parameters.count),
                          parameters);
      },
      {.has_data_errors = true});
}

KernelOr MakeScatterRowsLike(const KernelSpec& spec,
                             const KernelTarget& target) {
  const DType dtype = spec.inputs[0].dtype;
  if (!IsIndexType(spec.inputs[1].dtype) || dtype == DType::kString ||
      dtype == DType::kBool) {
    return Unsupported(spec);
  }
  ASSIGN_OR_RETURN(auto clear, Filling(target, spec, 0));
  ASSIGN_OR_RETURN(
      const DeviceFunction function,
      FindFunction(target, copy_image(),
                   IsFloating(dtype) ? "scatter_float" : "scatter_integer"));
  const IndexedAxis axis(spec, spec.outputs[0].shape);
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) -> absl::Status {
        RETURN_IF_ERROR(clear(run));
        const ScatterParameters parameters = {
            .count = axis.outer * axis.index_count * axis.inner,
            .from = run.input(0),
            .to = run.output(0),
            .indices = run.input(1),
            .index_count = axis.index_count,
            .bound = axis.bound,
            .inner = axis.inner,
            .fault = run.fault};
        return run.Launch(function, ThreadForEach(parameters.count),
                          parameters);
      },
      {.has_data_errors = true});
}

KernelOr MakeOneHot(const KernelSpec& spec, const KernelTarget& target) {
  if (!IsIndexType(spec.inputs[0].dtype) ||
      spec.outputs[0].dtype == DType::kString) {
    return Unsupported(spec);
  }
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   FindFunction(target, copy_image(), "one_hot"));
  const Attributes& attributes = spec.attributes;
  const int64_t depth = attributes.GetOr<int64_t>("depth", 0);
  const double on_value = attributes.GetOr<double>("on_value", 1);
  const double off_value = attributes.GetOr<double>("off_value", 0);
  const int64_t count = spec.outputs[0].shape.element_count();
  return MakeDeviceKernel(
      target,
      [=](const DeviceRun& run) {
        const OneHotParameters parameters = {.count = count,
                                             .indices = run.input(0),
                                             .to = run.output(0),
                                             .depth = depth,
                                             .on_value = on_value,
                                             .off_value = off_value,
                                             .fault = run.fault};
        return run.Launch(function, ThreadForEach(count), parameters);
      },
      {.has_data_errors = true});
}

KernelOr MakeInTopK(const KernelSpec& spec, const KernelTarget& target) {
  if (!IsIndexType(spec.inputs[1].dtype) || !IsFloating(spec.inputs[0].dtype)) {
    return Unsupported(spec);
  }
  ASSIGN_OR_RETURN(const DeviceFunction function,
                   FindFunction(target, copy_image(), "in_top_k"));
  const int64_t k = spec.attributes.GetOr<int64_t>("k", 1);
  const Shape& shape = spec.inputs[0].shape;
  return MakeDeviceKernel(
      target,
      [=, rows = shape.dim(0), classes = shape.dim(1)](const DeviceRun& run) {
        const InTopKParameters parameters = {
            .count = rows,
            .predictions = run.input(0),
            .targets = run.input(1),
            .out = static_cast<bool*>(run.output(0).data),
            .classes = classes,
            .k = k};
        return run.Launch(function, ThreadForEach(rows), parameters);
      });
}

}  // namespace

absl::StatusOr<WordCopy> CopyingWords(const KernelTarget& target) {
  ASSIGN_OR_RETURN(const DeviceFunction copy_words,
                   FindFunction(target, copy_image(), "copy_words"));
  ASSIGN_OR_RETURN(const DeviceFunction transpose_words,
                   FindFunction(target, copy_image(), "transpose_words"));
  return [=](const DeviceRun& run, const CopyParameters& what) {
    CopyParameters copy = what;
    WidenWords(&copy);
    copy.words_per_thread =
        ElementsPerThread(copy_words, copy.count, CopyParameters::kGroup);
    if (copy.words_per_thread > 1) {
      const auto transpose = AsTransposition(copy);
      if (transpose.has_value()) {
        return LaunchTransposition(run, transpose_words, copy.count,
                                   *transpose);
      }
    }
    const int64_t per_thread = copy.words_per_thread;
    return run.Launch(copy_words,
                      ThreadForEach((copy.count + per_thread - 1) / per_thread),
                      copy);
  };
}

void RegisterCopyKernels(KernelRegistry* registry, const KernelTarget& target) {
  for (const ViewOp& op : ViewOps()) {
    RegisterDevice(registry, target, op.name, MakeView);
  }
  for (const char* op : {"Identity", "StopGradient", "Reshape", "ReshapeLike",
                         "ExpandDims", "Squeeze",
                         // The ops between replicas, for a step with a single
                         // replica.
                         "AllReduce", "AllGather", "ReplicaPart"}) {
    RegisterDevice(registry, target, op, MakeSame);
  }
  RegisterDevice(registry, target, "Pad", MakePad);
  RegisterDevice(registry, target, "PadLike", MakePad);
  RegisterDevice(registry, target, "Gather", MakeGather);
  RegisterDevice(registry, target, "ScatterRowsLike", MakeScatterRowsLike);
  RegisterDevice(registry, target, "OneHot", MakeOneHot);
  RegisterDevice(registry, target, "InTopK", MakeInTopK);
  RegisterDevice(registry, target, "Assert", MakeAssert);
}

}  // namespace muster::internal
