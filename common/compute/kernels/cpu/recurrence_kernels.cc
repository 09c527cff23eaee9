#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/cpu/onednn.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/cpu/vector_math.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/recurrence.h"
#include "common/compute/kernels/recurrence_arguments.h"
#include "common/compute/kernels/recurrence_operands.h"
#include "common/compute/kernels/row_activation.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/recurrence_options.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "dnnl.hpp"

// Recurrence and RecurrenceGrad of float32: products by oneDNN whose kernel is
// packed once for all steps, and vector loops. Each thread runs all steps for
// some rows of the batch.
namespace muster {
namespace {

using recurrence::Activations;
using recurrence::Extents;
using recurrence::Rows;

struct VectorLoops {
  template <typename Body, typename... Arguments>
  static void Run(int64_t count, Arguments... arguments) {
    RunVectorized<recurrence::EachElement<Body>>(count, arguments...);
  }
};

struct SigmoidRow {
  MUSTER_INLINE static void Run(int64_t count, const float* x, float* y) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) y[i] = VectorSigmoid(x[i]);
  }
};
struct SigmoidGradRow {
  MUSTER_INLINE static void Run(int64_t count, const float* y, const float* dy,
                                float* dx) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * y[i] * (1 - y[i]);
  }
};
struct TanhRow {
  MUSTER_INLINE static void Run(int64_t count, const float* x, float* y) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) y[i] = VectorTanh(x[i]);
  }
};
struct TanhGradRow {
  MUSTER_INLINE static void Run(int64_t count, const float* y, const float* dy,
                                float* dx) {
    MUSTER_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
  }
};

template <typename ForwardRow, typename BackwardRow>
RowActivation<float> Vectorized() {
  return {[](int64_t count, const float* x, float* y) {
            RunVectorized<ForwardRow>(count, x, y);
          },
          [](int64_t count, const float*, const float* y, const float* dy,
             float* dx) { RunVectorized<BackwardRow>(count, y, dy, dx); }};
}

RowActivation<float> FindVectorizedActivation(absl::string_view name) {
  if (name == "sigmoid") return Vectorized<SigmoidRow, SigmoidGradRow>();
  if (name == "tanh") return Vectorized<TanhRow, TanhGradRow>();
  return FindRowActivation<float>(name);
}

// The product of a block of rows [rows, depth] with a matrix [depth, columns],
// which is packed once and used many times.
class PackedProduct {
 public:
  // `strides` and `offset` place the matrix in the recurrent kernel.
  PackedProduct(int64_t rows, int64_t depth, int64_t columns,
                const dnnl::memory::dims& strides, int64_t offset)
      : offset_(offset) {
    using Tag = dnnl::memory::format_tag;
    constexpr auto kF32 = dnnl::memory::data_type::f32;
    const dnnl::engine& engine = internal::OneDnnEngine();
    const dnnl::memory::desc a({rows, depth}, kF32, Tag::ab);
    const dnnl::memory::desc b({depth, columns}, kF32, Tag::any);
    const dnnl::memory::desc out({rows, columns}, kF32, Tag::ab);
    const dnnl::memory::desc plain({depth, columns}, kF32, strides);
    const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a, b, out),
                                            internal::UserScratchpad(), engine);
    packed_ = dnnl::memory(desc.weights_desc(), engine);
    scratchpad_ = dnnl::memory(desc.scratchpad_desc(), engine);
    const dnnl::reorder::primitive_desc reorder(
        engine, plain, engine, desc.weights_desc(), internal::UserScratchpad());
    reorder_scratchpad_ = dnnl::memory(reorder.scratchpad_desc(), engine);

    pack_ = internal::OneDnnCall(dnnl::reorder(reorder));
    pack_.AddOperand(DNNL_ARG_FROM, plain);
    Bind(&pack_, DNNL_ARG_TO, packed_);
    Bind(&pack_, DNNL_ARG_SCRATCHPAD, reorder_scratchpad_);
    multiply_ = internal::OneDnnCall(dnnl::matmul(desc));
    multiply_.AddOperand(DNNL_ARG_SRC, a);
    multiply_.AddOperand(DNNL_ARG_DST, out);
    Bind(&multiply_, DNNL_ARG_WEIGHTS, packed_);
    Bind(&multiply_, DNNL_ARG_SCRATCHPAD, scratchpad_);
  }

  absl::Status Pack(const float* kernel) {
    pack_.SetData(0, kernel + offset_);
    status_ = pack_.Run();
    return status_;
  }

  void Multiply(const float* rows, float* out) {
    multiply_.SetData(0, rows);
    multiply_.SetData(1, out);
    if (status_.ok()) status_ = multiply_.Run();
  }

  // The first error since Pack().
  const absl::Status& status() const { return status_; }

 private:
  static void Bind(internal::OneDnnCall* call, int argument,
                   const dnnl::memory& memory) {
    const int operand = call->AddOperand(argument, memory.get_desc());
    call->SetData(operand, memory.get_data_handle());
  }

  const int64_t offset_;
  dnnl::memory packed_;
  dnnl::memory scratchpad_;
  dnnl::memory reorder_scratchpad_;
  internal::OneDnnCall pack_;
  internal::OneDnnCall multiply_;
  absl::Status status_;
};

// The rows of one thread.
struct Part {
  Rows rows;
  size_t memory_offset = 0;
  std::optional<PackedProduct> first;
  std::optional<PackedProduct> second;
  absl::Status status;
};

class Source {
 public:
  explicit Source(const KernelArguments& arguments) : arguments_(arguments) {}

  const float* input_data(int i) const {
    return arguments_.inputs[i]->flat<float>().data();
  }
  const bool* mask(int i) const {
    return arguments_.inputs[i]->flat<bool>().data();
  }
  float* output_data(int i) const {
    return arguments_.outputs[i]->mutable_flat<float>().data();
  }

 private:
  const KernelArguments& arguments_;
};

class RecurrenceKernel : public Kernel {
 public:
  explicit RecurrenceKernel(int thread_count) : thread_count_(thread_count) {}

  size_t scratch_bytes() const override { return scratch_.size_bytes(); }

 protected:
  absl::Status Init(const KernelSpec& spec, const Shape& outputs,
                    bool is_transposed) {
    if (spec.inputs[0].dtype != DType::kFloat32) {
      return absl::UnimplementedError("float32 only");
    }
    ASSIGN_OR_RETURN(options_, ReadRecurrenceOptions(spec.attributes));
    activations_ = {FindVectorizedActivation(options_.activation),
                    FindVectorizedActivation(options_.recurrent_activation)};
    extents_ = {outputs.dim(0), outputs.dim(1), outputs.dim(2)};
    UseOpenMpThreads(1);
    const int64_t count = PartCount();
    parts_.resize(count);
    for (int64_t i = 0; i < count; ++i) {
      InitPart(extents_.batch * i / count, extents_.batch * (i + 1) / count,
               is_transposed, &parts_[i]);
    }
    return absl::OkStatus();
  }

  // Runs the loops over time that `make_loops` returns for the rows of each
  // thread.
  template <typename MakeLoops>
  absl::Status RunLoops(const KernelArguments& arguments,
                        MakeLoops make_loops) {
    UseOpenMpThreads(1);
    const float* const kernel = arguments.inputs[1]->flat<float>().data();
    RunParts(static_cast<int>(parts_.size()), [&](int i) {
      Part& part = parts_[i];
      part.status = Pack(kernel, &part);
      if (!part.status.ok()) return;
      make_loops().Run(
          part.rows,
          reinterpret_cast<float*>(arguments.scratch.data() +
                                   part.memory_offset),
          [&](const float* x, float* y) { part.first->Multiply(x, y); },
          [&](const float* x, float* y) { part.second->Multiply(x, y); });
      part.status = part.first->status();
      if (part.second) part.status.Update(part.second->status());
    });
    for (Part& part : parts_) {
      if (!part.status.ok()) return std::exchange(part.status, {});
    }
    return absl::OkStatus();
  }

  RecurrenceOptions options_;
  Extents extents_;
  Activations<RowActivation<float>> activations_;

 private:
  // Below this, another thread costs more than it saves.
  static constexpr double kPartOperationsMin = 2e6;

  int64_t PartCount() const {
    const double operations =
        2.0 * static_cast<double>(extents_.batch * extents_.time) *
        static_cast<double>(options_.gate_count() * extents_.units *
                            extents_.units);
    const auto wanted =
        static_cast<int64_t>(std::min(operations / kPartOperationsMin, 1e6));
    return std::clamp<int64_t>(
        wanted, 1, std::min<int64_t>(thread_count_, extents_.batch));
  }

  void InitPart(int64_t begin, int64_t end, bool is_transposed, Part* part) {
    part->rows = {begin, end};
    part->memory_offset = scratch_.Reserve(
        recurrence::WorkspaceSize(end - begin, extents_.units) * sizeof(float));
    const int64_t units = extents_.units;
    const int64_t width = options_.gate_count() * units;
    const bool has_second = options_.cell == RecurrentCell::kGruResetBefore;
    const int64_t first = has_second ? 2 * units : width;
    const auto make = [&](int64_t columns, int64_t offset) {
      return is_transposed ? PackedProduct(end - begin, columns, units,
                                           {1, width}, offset)
                           : PackedProduct(end - begin, units, columns,
                                           {width, 1}, offset);
    };
    part->first.emplace(make(first, 0));
    if (has_second) part->second.emplace(make(units, first));
  }

  static absl::Status Pack(const float* kernel, Part* part) {
    RETURN_IF_ERROR(part->first->Pack(kernel));
    return part->second ? part->second->Pack(kernel) : absl::OkStatus();
  }

  const int thread_count_;
  std::vector<Part> parts_;
  internal::ScratchLayout scratch_;
};

class RecurrenceForwardKernel : public RecurrenceKernel {
 public:
  using RecurrenceKernel::RecurrenceKernel;

  absl::Status Init(const KernelSpec& spec) {
    return RecurrenceKernel::Init(spec, spec.outputs[0].shape,
                                  /*is_transposed=*/false);
  }

  absl::Status Run(const KernelArguments& arguments) override {
    Source source(arguments);
    const auto operands =
        recurrence::MakeForwardOperands<float>(options_, source);
    return RunLoops(arguments, [&] {
      return recurrence::Forward<float, VectorLoops, RowActivation<float>>(
          options_, extents_, activations_, operands);
    });
  }
};

class RecurrenceBackwardKernel : public RecurrenceKernel {
 public:
  using RecurrenceKernel::RecurrenceKernel;

  absl::Status Init(const KernelSpec& spec) {
    return RecurrenceKernel::Init(spec, spec.inputs[0].shape,
                                  /*is_transposed=*/true);
  }

  absl::Status Run(const KernelArguments& arguments) override {
    Source source(arguments);
    const auto operands =
        recurrence::MakeBackwardOperands<float>(options_, source);
    return RunLoops(arguments, [&] {
      return recurrence::Backward<float, VectorLoops, RowActivation<float>>(
          options_, extents_, activations_, operands);
    });
  }
};

}  // namespace

namespace internal {

void RegisterCpuRecurrenceKernels(KernelRegistry* registry) {
  registry->Register("Recurrence", CreateOneDnnKernel<RecurrenceForwardKernel>);
  registry->Register("RecurrenceGrad",
                     CreateOneDnnKernel<RecurrenceBackwardKernel>);
}

}  // namespace internal
}  // namespace muster
