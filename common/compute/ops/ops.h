#ifndef COMMON_COMPUTE_OPS_OPS_H_
#define COMMON_COMPUTE_OPS_OPS_H_

// Includes all functions for traced code.
#include "common/compute/graph/graph_builder.h"
#include "common/compute/ops/activation.h"
#include "common/compute/ops/arithmetic.h"
#include "common/compute/ops/builtin_ops.h"
#include "common/compute/ops/check_ops.h"
#include "common/compute/ops/comparison.h"
#include "common/compute/ops/control.h"
#include "common/compute/ops/control_flow.h"
#include "common/compute/ops/conv_ops.h"
#include "common/compute/ops/cumulative_ops.h"
#include "common/compute/ops/einsum.h"
#include "common/compute/ops/image_ops.h"
#include "common/compute/ops/index_ops.h"
#include "common/compute/ops/loss_ops.h"
#include "common/compute/ops/math_ops.h"
#include "common/compute/ops/matmul.h"
#include "common/compute/ops/normalization_ops.h"
#include "common/compute/ops/pool_ops.h"
#include "common/compute/ops/random_ops.h"
#include "common/compute/ops/recurrence_ops.h"
#include "common/compute/ops/reduction.h"
#include "common/compute/ops/replica_ops.h"
#include "common/compute/ops/selection_ops.h"
#include "common/compute/ops/shape_ops.h"
#include "common/compute/ops/slice_ops.h"
#include "common/compute/ops/sort_ops.h"
#include "common/compute/ops/variable_ops.h"
#include "common/compute/ops/window_options.h"

#endif  // COMMON_COMPUTE_OPS_OPS_H_
