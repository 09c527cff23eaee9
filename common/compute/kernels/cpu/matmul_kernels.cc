#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/compute/kernels/cpu/fused_relu.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/cpu/onednn.h"
#include "common/compute/kernels/cpu/register_cpu_kernels.h"
#include "common/compute/kernels/kernel.h"
#include "common/compute/kernels/vectorized.h"
#include "common/core/base/status_macros.h"
#include "common/core/tensor/attributes.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/float16.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "dnnl.hpp"

// Matrix products by oneDNN: MatMul, and FusedMatMulBias, which the runtime's
// rewrites create.
namespace muster {
namespace {

using internal::FusedRelu;

// One operand for oneDNN: broadcast to the rank of the product, with the last
// two dimensions in the order of the multiplication.
struct Operand {
  Operand(const TensorType& type, bool is_transposed, int rank)
      : dims(rank, 1), strides(rank, 1) {
    const int missing = rank - type.shape.rank();
    int64_t stride = 1;
    for (int axis = type.shape.rank() - 1; axis >= 0; --axis) {
      dims[axis + missing] = type.shape.dim(axis);
      strides[axis + missing] = stride;
      stride *= type.shape.dim(axis);
    }
    for (int axis = 0; axis < missing; ++axis) strides[axis] = stride;
    if (is_transposed) {
      std::swap(dims[rank - 1], dims[rank - 2]);
      std::swap(strides[rank - 1], strides[rank - 2]);
    }
  }

  // Restricts the operand to [begin, end) of an axis. No effect on a broadcast
  // axis.
  void Slice(int axis, int64_t begin, int64_t end) {
    if (dims[axis] == 1) return;
    dims[axis] = end - begin;
    offset += begin * strides[axis];
  }

  dnnl::memory::desc Desc(dnnl::memory::data_type type) const {
    return {dims, type, strides};
  }

  dnnl::memory::dims dims;
  dnnl::memory::dims strides;
  int64_t offset = 0;  // In elements.
};

// a * b + bias
struct Product {
  Operand a;
  Operand b;
  std::optional<Operand> bias;
  Operand out;

  int rank() const { return static_cast<int>(out.dims.size()); }
  int64_t rows() const { return out.dims[rank() - 2]; }
  int64_t columns() const { return out.dims[rank() - 1]; }
  int64_t depth() const { return a.dims[rank() - 1]; }

  double operations() const {
    double count = 2.0 * static_cast<double>(depth());
    for (const int64_t extent : out.dims) count *= static_cast<double>(extent);
    return count;
  }

  // Returns the part of the product for [begin, end) of one of the axes of the
  // result.
  Product Part(int axis, int64_t begin, int64_t end) const {
    Product part = *this;
    const bool is_row = axis == rank() - 2;
    const bool is_column = axis == rank() - 1;
    if (!is_column) part.a.Slice(axis, begin, end);
    if (!is_row) part.b.Slice(axis, begin, end);
    if (part.bias && is_column) part.bias->Slice(axis, begin, end);
    part.out.Slice(axis, begin, end);
    return part;
  }
};

// How a product is divided among threads: along an axis of the result.
struct Division {
  int axis = 0;
  int64_t unit = 1;  // Parts begin at multiples of this.
};

// Divides a batch into products, and a single product into rows or columns, so
// that not every thread reads the larger operand. Does not divide the columns
// of a transposed operand, because that is slow, or of bfloat16, because each
// part would convert all columns.
Division Divide(const Product& product, dnnl::memory::data_type type) {
  const int rank = product.rank();
  if (rank > 2 && product.out.dims[0] > 1) return {.axis = 0};
  const bool is_b_transposed = product.b.strides[rank - 1] != 1;
  const bool by_columns = type == dnnl::memory::data_type::f32 &&
                          !is_b_transposed &&
                          product.rows() < product.columns();
  // Columns are divided at multiples of a vector.
  if (by_columns) return {.axis = rank - 1, .unit = 16};
  return {.axis = rank - 2};
}

// Flattens all axes but the last into rows.
TensorType AsMatrix(const TensorType& type) {
  const int last = type.shape.rank() - 1;
  return {type.dtype,
          {type.shape.ElementCountInRange(0, last), type.shape.dim(last)}};
}

// The activation after the bias. A separate loop or oneDNN computes it.
struct ProductActivation {
  FusedRelu relu = FusedRelu::kNone;
  std::optional<dnnl::algorithm> post_op;
};

absl::StatusOr<ProductActivation> FindProductActivation(
    absl::string_view name) {
  const auto post_op = [](dnnl::algorithm algorithm) {
    return ProductActivation{.post_op = algorithm};
  };
  if (name == "Tanh") return post_op(dnnl::algorithm::eltwise_tanh);
  if (name == "Sigmoid") return post_op(dnnl::algorithm::eltwise_logistic);
  if (name == "Gelu") return post_op(dnnl::algorithm::eltwise_gelu_erf);
  if (name == "GeluTanh") return post_op(dnnl::algorithm::eltwise_gelu_tanh);
  ASSIGN_OR_RETURN(const FusedRelu relu, internal::FindFusedRelu(name));
  return ProductActivation{.relu = relu};
}

struct Bfloat16ReluInPlace {
  MUSTER_INLINE static void Run(int64_t count, bfloat16* x) {
    for (int64_t i = 0; i < count; ++i) {
      // Selects negative values up to minus infinity; larger bit patterns are
      // NaN.
      const uint16_t bits = x[i].bits;
      x[i].bits = bits >= 0x8000 && bits <= 0xff80 ? 0 : bits;
    }
  }
};
class OneDnnMatMul : public Kernel {
 public:
  explicit OneDnnMatMul(int thread_count) : thread_count_(thread_count) {}

  absl::Status Init(const KernelSpec& spec) {
    ASSIGN_OR_RETURN(type_, internal::OneDnnType(spec.outputs[0].dtype));
    element_bytes_ = static_cast<int64_t>(SizeOf(spec.outputs[0].dtype));
    RETURN_IF_ERROR(InitAttributes(spec));
    const Product product = ProductOf(spec);
    UseOpenMpThreads(1);
    if (InitParts(product)) return absl::OkStatus();
    parts_.clear();
    scratch_ = {};
    open_mp_thread_count_ = thread_count_;
    UseOpenMpThreads(open_mp_thread_count_);
    AddPart(product);
    return absl::OkStatus();
  }

  size_t scratch_bytes() const override { return scratch_.size_bytes(); }

  absl::Status Run(const KernelArguments& arguments) override {
    UseOpenMpThreads(open_mp_thread_count_);
    RunParts(static_cast<int>(parts_.size()), [&](int i) {
      Part& part = parts_[i];
      for (size_t operand = 0; operand < part.offsets.size(); ++operand) {
        const Tensor& tensor = operand < arguments.inputs.size()
                                   ? *arguments.inputs[operand]
                                   : *arguments.outputs[0];
        part.call.SetData(static_cast<int>(operand),
                          tensor.raw_data() + part.offsets[operand]);
      }
      if (part.a_columns) {
        uint8_t* const copy =
            arguments.scratch.data() + part.a_columns->copy_offset;
        CopyColumns(*part.a_columns,
                    arguments.inputs[0]->raw_data() + part.offsets[0], copy);
        part.call.SetData(0, copy);
      }
      part.status = part.call.Run();
    });
    for (Part& part : parts_) {
      if (!part.status.ok()) return std::exchange(part.status, {});
    }
    Activate(arguments.outputs[0]);
    return absl::OkStatus();
  }

 private:
  // Columns of a matrix that are copied before use.
  struct Columns {
    int64_t count = 0;
    int64_t row_count = 0;
    int64_t stride = 0;      // Between rows, in elements.
    size_t copy_offset = 0;  // In scratch memory.
  };

  // The work of one thread. Its operands are the inputs and the result.
  struct Part {
    std::optional<Columns> a_columns;
    internal::OneDnnCall call;
    dnnl::memory scratchpad;
    std::vector<int64_t> offsets;  // The offsets of the operands in bytes.
    absl::Status status;
  };

  absl::Status InitAttributes(const KernelSpec& spec) {
    ASSIGN_OR_RETURN(const ProductActivation activation,
                     FindProductActivation(
                         spec.attributes.GetOr<std::string>("activation", "")));
    if (spec.outputs[0].dtype != DType::kFloat32 &&
        activation.relu == FusedRelu::kRelu6) {
      return absl::UnimplementedError("this activation in float32 only");
    }
    relu_ = activation.relu;
    if (activation.post_op) {
      dnnl::post_ops post_ops;
      post_ops.append_eltwise(1.0f, *activation.post_op, 0.0f, 0.0f);
      attributes_.set_post_ops(post_ops);
    }
    return absl::OkStatus();
  }

  static Product ProductOf(const KernelSpec& spec) {
    const bool transpose_a = spec.attributes.GetOr("transpose_a", false);
    const bool transpose_b = spec.attributes.GetOr("transpose_b", false);
    TensorType a = spec.inputs[0];
    const TensorType& b = spec.inputs[1];
    TensorType out = spec.outputs[0];
    // A batch multiplied by one matrix is a single product.
    if (b.shape.rank() == 2 && !transpose_a) {
      a = AsMatrix(a);
      out = AsMatrix(out);
    }
    const int rank = out.shape.rank();
    Product product = {.a = Operand(a, transpose_a, rank),
                       .b = Operand(b, transpose_b, rank),
                       .bias = {},
                       .out = Operand(out, false, rank)};
    if (spec.inputs.size() == 3) {
      product.bias = Operand({out.dtype, {1, out.shape.dim(1)}}, false, rank);
    }
    return product;
  }

  // Creates a part for each useful thread. Returns false if oneDNN should
  // divide the product itself.
  bool InitParts(const Product& product) {
    const Division division = Divide(product, type_);
    const int64_t extent = product.out.dims[division.axis];
    const int64_t unit_count = extent / division.unit;
    const int64_t wanted = std::clamp<int64_t>(
        static_cast<int64_t>(product.operations() / kPartOperationsMin), 1,
        thread_count_);
    const int64_t part_count = std::min(wanted, unit_count);
    if (part_count < 1 || (part_count == 1 && wanted > 1)) return false;
    for (int64_t i = 0; i < part_count; ++i) {
      const int64_t begin = unit_count * i / part_count * division.unit;
      const int64_t end = i + 1 == part_count ? extent
                                              : unit_count * (i + 1) /
                                                    part_count * division.unit;
      Product part = product.Part(division.axis, begin, end);
      std::optional<Columns> columns;
      if (type_ == dnnl::memory::data_type::bf16) columns = PackA(&part);
      if (!AddPart(part)) return false;
      parts_.back().a_columns = columns;
    }
    return true;
  }

  // Rows of a transposed matrix are columns of its memory, on which oneDNN is
  // slow for bfloat16, so the part copies them.
  std::optional<Columns> PackA(Product* part) {
    Operand& a = part->a;
    const int rank = part->rank();
    const int64_t rows = a.dims[rank - 2];
    const int64_t stride = a.strides[rank - 1];
    const bool is_transposed = a.strides[rank - 2] == 1 && rows < stride;
    if (rank != 2 || !is_transposed) return {};
    a.strides[rank - 1] = rows;
    return Columns{
        .count = rows,
        .row_count = part->depth(),
        .stride = stride,
        .copy_offset = scratch_.Reserve(rows * part->depth() * element_bytes_)};
  }

  // Returns false if oneDNN has only its reference implementation, which is a
  // hundred times slower.
  bool AddPart(const Product& product) {
    const dnnl::memory::desc a = product.a.Desc(type_);
    const dnnl::memory::desc b = product.b.Desc(type_);
    const dnnl::memory::desc out = product.out.Desc(type_);
    const dnnl::memory::desc bias =
        product.bias ? product.bias->Desc(type_) : dnnl::memory::desc();
    const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(a, b, bias, out),
                                            attributes_,
                                            internal::OneDnnEngine());
    Part& part = parts_.emplace_back();
    part.call = internal::OneDnnCall(dnnl::matmul(desc));
    const auto add = [&](int argument, const dnnl::memory::desc& operand,
                         int64_t offset) {
      part.call.AddOperand(argument, operand);
      part.offsets.push_back(offset * element_bytes_);
    };
    add(DNNL_ARG_SRC, a, product.a.offset);
    add(DNNL_ARG_WEIGHTS, b, product.b.offset);
    if (product.bias) add(DNNL_ARG_BIAS, bias, product.bias->offset);
    add(DNNL_ARG_DST, out, product.out.offset);
    part.scratchpad =
        dnnl::memory(desc.scratchpad_desc(), internal::OneDnnEngine());
    const int scratchpad =
        part.call.AddOperand(DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc());
    part.call.SetData(scratchpad, part.scratchpad.get_data_handle());
    return !absl::StrContains(desc.impl_info_str(), "ref");
  }

  void CopyColumns(const Columns& columns, const uint8_t* from,
                   uint8_t* to) const {
    const int64_t row_bytes = columns.count * element_bytes_;
    for (int64_t row = 0; row < columns.row_count; ++row) {
      std::memcpy(to, from, row_bytes);
      to += row_bytes;
      from += columns.stride * element_bytes_;
    }
  }

  void Activate(Tensor* product) const {
    const int64_t count = product->element_count();
    if (relu_ == FusedRelu::kRelu && product->dtype() == DType::kBfloat16) {
      RunVectorized<Bfloat16ReluInPlace>(
          count, product->mutable_flat<bfloat16>().data());
    } else if (relu_ != FusedRelu::kNone) {
      ApplyInPlace(relu_, count, product->mutable_flat<float>().data());
    }
  }

  // Work below about ten microseconds does not justify another thread.
  static constexpr double kPartOperationsMin = 2e6;

  const int thread_count_;
  int open_mp_thread_count_ = 1;
  dnnl::memory::data_type type_ = dnnl::memory::data_type::undef;
  int64_t element_bytes_ = 0;
  dnnl::primitive_attr attributes_ = internal::UserScratchpad();
  std::vector<Part> parts_;
  internal::ScratchLayout scratch_;
  FusedRelu relu_ = FusedRelu::kNone;
};

}  // namespace

namespace internal {

void RegisterCpuMatMulKernels(KernelRegistry* registry) {
  registry->Register("MatMul", CreateOneDnnKernel<OneDnnMatMul>);
  registry->Register("FusedMatMulBias", CreateOneDnnKernel<OneDnnMatMul>);
}

}  // namespace internal
}  // namespace muster
