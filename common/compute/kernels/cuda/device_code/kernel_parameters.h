#ifndef COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_KERNEL_PARAMETERS_H_
#define COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_KERNEL_PARAMETERS_H_

#include "common/compute/kernels/cuda/device_code/device_elements.h"

// The parameter of each kernel, one struct by value, so that host and device
// code always agree about the number, order and types of parameters.
//
// A kernel computes `count` elements, one in each thread, unless its struct
// says otherwise. Addresses are those of the device.
namespace muster::internal {

// --- copy.cu ---

// to[to_layout(i)] = from[from_layout(i)], for words of word_bytes. One thread
// for each words_per_thread positions, which are adjacent or, if word_bytes is
// 16, as far apart as the block has threads.
struct CopyParameters {
  static constexpr int kGroup = 4;

  int64_t count;
  const void* from;
  void* to;
  int32_t word_bytes;            // 1, 2, 4, 8 or 16.
  int32_t words_per_thread = 1;  // Or kGroup.
  DeviceLayout from_layout;
  DeviceLayout to_layout;
};

// Transposes matrices: to[b][c][r] = from[b][r][c], for words of word_bytes.
// One block of (kTile, kLanes) threads for each tile of kTile x kTile words;
// blockIdx.x counts the tiles of all matrices.
struct TransposeParameters {
  static constexpr int kTile = 32;
  static constexpr int kLanes = 8;

  const void* from;
  void* to;
  int32_t word_bytes;  // 1, 2, 4 or 8.
  int64_t rows, columns;
  // In words; the other strides are 1.
  int64_t from_row_stride, to_column_stride;
  uint32_t tiles_per_row, tiles_per_matrix;
  DeviceLayout from_matrices, to_matrices;  // Layouts of index b.
};

// Viewed as [outer, index_count, inner] from [outer, bound, inner].
struct GatherParameters {
  int64_t count;
  const void* from;
  void* to;
  int32_t word_bytes;
  DeviceElements indices;
  int64_t index_count, bound, inner;
  FaultRecord* fault;
};

// The transpose of GatherParameters. If no earlier index equals that of i,
// thread (o, i, k) adds all elements with the index of i. `to` is zero before.
struct ScatterParameters {
  int64_t count;  // outer * index_count * inner.
  DeviceElements from;
  DeviceElements to;
  DeviceElements indices;
  int64_t index_count, bound, inner;
  FaultRecord* fault;
};

struct OneHotParameters {
  int64_t count;  // Number of indices times depth.
  DeviceElements indices;
  DeviceElements to;
  int64_t depth;
  double on_value, off_value;
  FaultRecord* fault;
};

struct InTopKParameters {
  int64_t count;  // Rows.
  DeviceElements predictions;
  DeviceElements targets;
  bool* out;
  int64_t classes, k;
};

// Reports the first element that is false. One block of kThreads.
struct CheckConditionParameters {
  static constexpr int kThreads = 256;

  int64_t count;
  const bool* condition;
  FaultRecord* fault;
};

// --- rows.cu ---

// Sorts positions in rows of `length` elements by the order of TopK, in runs of
// `run` positions. sort_row_runs makes runs of kFirstRun. merge_row_runs makes
// runs of twice the length of those in `from`. One thread for each element.
struct SortElementsParameters {
  static constexpr int64_t kFirstRun = 64;

  int64_t count;  // Number of rows times length.
  int64_t length;
  DeviceElements elements;
  bool smallest_first;
  int64_t run;          // Length of the runs in `from`.
  const int32_t* from;  // Unused by sort_row_runs.
  int32_t* to;
};

// Takes the first k elements of each sorted row.
struct TakeTopParameters {
  int64_t count;  // Number of rows times k.
  int64_t length, k;
  DeviceElements elements;
  const int32_t* sorted;
  DeviceElements values;
  int32_t* indices;
};

// One thread for each index; each row has `width` indices. take_along_rows:
// to[i] = from[row of i, indices[i]], where rows of `from` have `length`
// elements. add_along_rows: `to` has rows of `length` elements and is zero
// before. If no earlier index of its row equals that of i, thread i adds all
// elements of the row with the index of i.
struct AlongRowsParameters {
  int64_t count;
  int64_t width, length;
  DeviceElements from;
  DeviceElements indices;
  DeviceElements to;
  FaultRecord* fault;
};

// --- reduce.cu ---

enum class ReduceKind : uint8_t { kSum, kProd, kMax, kMin, kMean };

// Combines the elements of groups. Each thread is a lane of a result: lane i of
// n combines elements i, i + n, ... of its part of the group. Then the lanes
// are combined in pairs. If is_row, lanes are along x and results along y,
// otherwise the reverse. blockIdx.y is the part. The order does not depend on
// the device.
//
// If there is one part, `to` gets the results. If there are several, it gets
// [parts, count] partial results, which a second launch combines.
struct ReduceParameters {
  static constexpr int kThreadsMax = 512;

  int64_t count;        // Results.
  int64_t group_count;  // Elements of each group.
  int64_t part_count;   // Elements of a part; the last one may have fewer.
  int64_t divisor;      // For kMean.
  DeviceElements from;
  DeviceElements to;
  ReduceKind reduction;
  bool is_row;
  double initial_float;
  int64_t initial_integer;
  DeviceLayout kept;
  DeviceLayout reduced;
};

struct ArgParameters {
  int64_t count;
  int64_t group_count;
  DeviceElements from;
  int64_t* to;
  bool is_max;
  DeviceLayout kept;
  DeviceLayout reduced;
};

// A thread for each group.
struct ProdOfOthersParameters {
  int64_t count;  // Groups.
  int64_t group_count;
  DeviceElements from;
  DeviceElements to;
  DeviceLayout kept;
  DeviceLayout reduced;
};

// A thread for each group.
struct CumSumParameters {
  int64_t count;  // Groups.
  int64_t group_count;
  DeviceElements from;
  DeviceElements to;
  bool is_exclusive;
  bool is_reversed;
  DeviceLayout kept;
  DeviceLayout reduced;
};

// --- softmax.cu ---

enum class RowFunction : uint8_t {
  kSoftmax,
  kLogSoftmax,
  kCrossEntropy,  // `to` has one element for each row.
  kCrossEntropyGrad,
  kSparseCrossEntropy,  // As kCrossEntropy; labels are integers.
  kSparseCrossEntropyGrad,
  kSoftmaxGrad,  // `logits` is the gradient of the softmax, `labels` the
                 // softmax.
};

// Blocks of (lanes, rows) threads, kThreads in total; the lanes share a row.
// There are at most 32 lanes, or only one row. Lanes and rows are powers of 2.
struct RowParameters {
  static constexpr int kThreads = 256;

  int64_t rows, classes;
  RowFunction function;
  DeviceElements logits;
  DeviceElements labels;    // For cross-entropies.
  DeviceElements gradient;  // For their gradients: one element for each row.
  DeviceElements to;
  FaultRecord* fault;
};

// --- matmul.cu ---

// y = activation(a b + bias) for each matrix of a batch. Blocks of kThreads
// compute tiles of kTile x kTile; blockIdx.y is the matrix.
struct MatMulParameters {
  static constexpr int kTile = 64;
  static constexpr int kThreads = 256;

  enum class Activation : uint8_t {
    kNone,
    kRelu,
    kRelu6,
    kTanh,
    kSigmoid,
    kGelu,
    kGeluTanh
  };

  int64_t rows, columns, inner;
  int64_t tile_columns;  // Tiles along a row: blockIdx.x counts tiles.
  DeviceElements a, b, y;
  int64_t a_row_stride, a_column_stride, b_row_stride, b_column_stride;
  DeviceLayout a_batch, b_batch;  // Offsets in matrices.
  DeviceElements bias;            // Null data: no bias.
  Activation activation;
};

// --- random.cu ---

enum class Distribution : uint8_t { kUniform, kNormal, kTruncatedNormal };

struct RandomParameters {
  int64_t count;
  DeviceElements to;
  const int64_t* seed;  // Two words.
  uint64_t first;       // Position of element 0 in the stream.
  Distribution distribution;
};

// to = {FoldIn(from[0], data), from[1]}, or {data, 0} if `from` is null.
struct SeedParameters {
  const int64_t* from;
  int64_t* to;
  uint64_t data;
};

// --- convolution.cu, pool.cu ---

struct DeviceWindow {
  int64_t input_extent, output_extent, window_extent;
  int64_t stride, dilation, padding_before;
};

// As ConvGeometry. In x * kernel = y, one of the three is the result.
struct ConvParameters {
  int64_t count;  // Elements of the result.
  int64_t batch, input_channels, output_channels, group_inputs, group_outputs;
  DeviceWindow height, width;
  DeviceElements x, kernel, y;
};

enum class PoolKind : uint8_t { kMax, kAverage };

// Forward: one thread for each window. It takes the element of `values` at the
// position of the maximum of x, or the mean of x. Gradient: one thread for each
// element of x. It adds `values`, the gradient of y, of the windows that the
// element determines.
struct PoolParameters {
  int64_t count;
  int64_t channels;
  DeviceWindow height, width;
  PoolKind pooling;
  DeviceElements x;
  DeviceElements values;
  DeviceElements to;
};

// --- batch_norm.cu ---

// The activation after the normalization.
enum class BatchNormActivation : uint8_t { kNone, kRelu, kRelu6 };

// Rows of channels, divided among blocks: block (i, j) processes a range of
// channels in up to part_rows rows from j * part_rows on. Each thread processes
// `vector` adjacent channels. Blocks have at most kThreads threads.
//
// The kernels of moments and of sums write two numbers for each channel of each
// part to `part_values`, [2, part_count, channels]. The kernels that combine
// them have blocks of (kCombineChannels, kCombineLanes): the lanes of a channel
// share its parts. They write `factors`, [kFactors, channels], which the
// kernels over elements read.
struct BatchNormParameters {
  static constexpr int kThreads = 256;
  static constexpr int kCombineChannels = 32;
  static constexpr int kCombineLanes = 32;
  static constexpr int kCombineThreads = kCombineChannels * kCombineLanes;
  static constexpr int kFactors = 6;

  int64_t rows, channels;
  double epsilon;
  int64_t part_rows, part_count;
  // 4, or 2 for float64; 1 if the channels are not a multiple of that.
  int32_t vector;
  // True if x, gradient and `to` are aligned for loads of vectors.
  bool is_aligned;
  BatchNormActivation activation;
  DeviceElements x, gradient;                    // `gradient` is dy.
  DeviceElements scale, offset, mean, variance;  // One for each channel.
  DeviceElements to;                             // y or dx.
  DeviceElements scale_gradient, offset_gradient;
  double* part_values;
  void* factors;  // double for float64, otherwise float.
};

}  // namespace muster::internal

#endif  // COMMON_COMPUTE_KERNELS_CUDA_DEVICE_CODE_KERNEL_PARAMETERS_H_
