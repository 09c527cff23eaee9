// The convolutions of MobileNetV2 at 224 x 224, forward and both backward ops.
// Compares Muster's kernels, with channels last, with oneDNN called directly in
// its preferred layouts, which in a graph would require conversions. The two
// are measured one after the other. A line has the medians and their ratio; the
// last line is the sum over the network.
//
//   bazel run //bench:convolution_benchmark [-- batch threads rounds]

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "bench/or_die.h"
#include "common/compute/kernels/cpu/cpu_kernels.h"
#include "common/compute/kernels/cpu/intra_op_threads.h"
#include "common/compute/kernels/kernel.h"
#include "common/core/tensor/buffer.h"
#include "common/core/tensor/dtype.h"
#include "common/core/tensor/shape.h"
#include "common/core/tensor/tensor.h"
#include "dnnl.hpp"

namespace muster {
namespace {

using dnnl::memory;

struct Layer {
  int64_t extent, inputs, outputs, window, stride;
  bool is_depthwise;
  int count = 1;

  int64_t output_extent() const { return (extent + stride - 1) / stride; }
  bool operator==(const Layer& other) const {
    return extent == other.extent && inputs == other.inputs &&
           outputs == other.outputs && window == other.window &&
           stride == other.stride;
  }
};

std::vector<Layer> MobileNetLayers() {
  std::vector<Layer> layers;
  const auto add = [&layers](const Layer& layer) {
    const auto found = std::find(layers.begin(), layers.end(), layer);
    if (found != layers.end()) {
      ++found->count;
    } else {
      layers.push_back(layer);
    }
  };
  constexpr int64_t kStages[][4] = {
      {1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
      {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  add({224, 3, 32, 3, 2, false});
  int64_t extent = 112;
  int64_t channels = 32;
  for (const auto& [expansion, filters, blocks, first_stride] : kStages) {
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t wide = channels * expansion;
      const int64_t stride = block == 0 ? first_stride : 1;
      if (expansion > 1) add({extent, channels, wide, 1, 1, false});
      add({extent, wide, wide, 3, stride, true});
      extent = (extent + stride - 1) / stride;
      add({extent, wide, filters, 1, 1, false});
      channels = filters;
    }
  }
  add({extent, channels, 1280, 1, 1, false});
  return layers;
}

constexpr int kPartCount = 3;
constexpr const char* kSuffixes[kPartCount] = {"", "BackpropInput",
                                               "BackpropKernel"};

// One of the three ops with Muster's kernels.
class Ours {
 public:
  Ours(const Layer& layer, int64_t batch, int part, int thread_count) {
    const TensorType x = {DType::kFloat32,
                          {batch, layer.extent, layer.extent, layer.inputs}};
    const TensorType y = {
        DType::kFloat32,
        {batch, layer.output_extent(), layer.output_extent(), layer.outputs}};
    const TensorType kernel = {DType::kFloat32,
                               {layer.window, layer.window, layer.inputs,
                                layer.is_depthwise ? 1 : layer.outputs}};
    const TensorType types[kPartCount][3] = {
        {x, kernel, y}, {y, kernel, x}, {x, y, kernel}};
    KernelSpec spec = {
        .op = std::string(layer.is_depthwise ? "DepthwiseConv2D" : "Conv2D") +
              kSuffixes[part],
        .attributes = {{"strides", std::vector<int64_t>(2, layer.stride)},
                       {"padding", std::string("SAME")}},
        .inputs = {types[part][0], types[part][1]},
        .outputs = {types[part][2]}};
    kernel_ = OrDie(CpuKernels().Create(spec, thread_count));
    for (const TensorType& type : types[part]) {
      tensors_.push_back(Tensor::Full(type.dtype, type.shape, 0.5));
    }
    scratch_ = Buffer::Allocate(kernel_->scratch_bytes());
  }

  void Run() {
    const Tensor* const inputs[] = {&tensors_[0], &tensors_[1]};
    Tensor* const outputs[] = {&tensors_[2]};
    const absl::Status status =
        kernel_->Run({.inputs = inputs,
                      .outputs = outputs,
                      .scratch = {scratch_->data(), scratch_->size_bytes()}});
    if (!status.ok()) std::exit(1);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::vector<Tensor> tensors_;
  std::shared_ptr<Buffer> scratch_;
};

// The same op with oneDNN, each operand in oneDNN's preferred layout.
class Direct {
 public:
  Direct(const Layer& layer, int64_t batch, int part) {
    const int64_t out = layer.output_extent();
    const int64_t padding = std::max<int64_t>(
        (out - 1) * layer.stride + layer.window - layer.extent, 0);
    const memory::dims before = {padding / 2, padding / 2};
    const memory::dims after = {padding - padding / 2, padding - padding / 2};
    const memory::dims strides = {layer.stride, layer.stride};
    const auto any = [](const memory::dims& dims) {
      return memory::desc(dims, memory::data_type::f32,
                          memory::format_tag::any);
    };
    const memory::desc y = any({batch, layer.outputs, out, out});
    // Images from a dataset have this layout, for which oneDNN has a separate
    // kernel.
    const memory::desc x(
        {batch, layer.inputs, layer.extent, layer.extent},
        memory::data_type::f32,
        layer.inputs == 3 ? memory::format_tag::nchw : memory::format_tag::any);
    const memory::desc kernel =
        layer.is_depthwise
            ? any({layer.inputs, 1, 1, layer.window, layer.window})
            : any({layer.outputs, layer.inputs, layer.window, layer.window});
    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, kDirect, x, kernel, y, strides,
         before, after},
        engine_);
    if (part == 0) {
      primitive_ = dnnl::convolution_forward(forward);
      Add(DNNL_ARG_SRC, forward.src_desc());
      Add(DNNL_ARG_WEIGHTS, forward.weights_desc());
      Add(DNNL_ARG_DST, forward.dst_desc());
    } else if (part == 1) {
      const dnnl::convolution_backward_data::primitive_desc desc(
          {kDirect, x, kernel, y, strides, before, after}, engine_, forward);
      primitive_ = dnnl::convolution_backward_data(desc);
      Add(DNNL_ARG_DIFF_DST, desc.diff_dst_desc());
      Add(DNNL_ARG_WEIGHTS, desc.weights_desc());
      Add(DNNL_ARG_DIFF_SRC, desc.diff_src_desc());
    } else {
      const dnnl::convolution_backward_weights::primitive_desc desc(
          {kDirect, x, kernel, y, strides, before, after}, engine_, forward);
      primitive_ = dnnl::convolution_backward_weights(desc);
      Add(DNNL_ARG_SRC, desc.src_desc());
      Add(DNNL_ARG_DIFF_DST, desc.diff_dst_desc());
      Add(DNNL_ARG_DIFF_WEIGHTS, desc.diff_weights_desc());
    }
  }

  void Run() { primitive_.execute(stream_, arguments_); }

 private:
  void Add(int argument, const memory::desc& desc) {
    memory operand(desc, engine_);
    auto* const data = static_cast<float*>(operand.get_data_handle());
    std::fill_n(data, desc.get_size() / sizeof(float), 0.5f);
    arguments_[argument] = operand;
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
};

int Main(int64_t batch, int thread_count, int rounds) {
  std::printf("batch %lld, %d thread(s), ms\n", static_cast<long long>(batch),
              thread_count);
  const std::vector<Layer> layers = MobileNetLayers();
  const auto median_ms = [&](auto* convolution) {
    convolution->Run();
    std::vector<double> micros;
    for (int round = 0; round < rounds; ++round) {
      micros.push_back(MicrosecondsOf([&] { convolution->Run(); }));
    }
    return Median(micros) / 1000;
  };
  // Measures one variant after the other, because OpenMP threads spin for a
  // while after their work, on the cores that Muster's threads need.
  std::vector<double> ours_ms, direct_ms;
  for (const Layer& layer : layers) {
    for (int part = 0; part < kPartCount; ++part) {
      Ours ours(layer, batch, part, thread_count);
      ours_ms.push_back(median_ms(&ours));
    }
  }
  UseOpenMpThreads(thread_count);
  for (const Layer& layer : layers) {
    for (int part = 0; part < kPartCount; ++part) {
      Direct direct(layer, batch, part);
      direct_ms.push_back(median_ms(&direct));
    }
  }
  double ours_total = 0;
  double direct_total = 0;
  size_t measured = 0;
  for (const Layer& layer : layers) {
    std::printf("%3lld x %4lld -> %4lld window %lld stride %lld x%d",
                static_cast<long long>(layer.extent),
                static_cast<long long>(layer.inputs),
                static_cast<long long>(layer.outputs),
                static_cast<long long>(layer.window),
                static_cast<long long>(layer.stride), layer.count);
    for (int part = 0; part < kPartCount; ++part, ++measured) {
      // The gradient of the images is not needed.
      if (part == 1 && layer.inputs == 3) continue;
      const double ours = ours_ms[measured];
      const double direct = direct_ms[measured];
      std::printf("  | %7.2f %7.2f %5.2f", ours, direct, ours / direct);
      ours_total += ours * layer.count;
      direct_total += direct * layer.count;
    }
    std::printf("\n");
  }
  std::printf("all of a step: %.1f, oneDNN alone %.1f, ratio %.2f\n",
              ours_total, direct_total, ours_total / direct_total);
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  const auto argument = [&](int i, int fallback) {
    return argc > i ? std::atoi(argv[i]) : fallback;
  };
  return muster::Main(argument(1, 32), argument(2, 2), argument(3, 9));
}
