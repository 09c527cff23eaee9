#ifndef COMMON_OPS_OPS_H_
#define COMMON_OPS_OPS_H_

// Everything that traced code is written with.
#include "common/graph/graph_builder.h"
#include "common/ops/activation.h"
#include "common/ops/arithmetic.h"
#include "common/ops/builtin_ops.h"
#include "common/ops/comparison.h"
#include "common/ops/control.h"
#include "common/ops/image_ops.h"
#include "common/ops/conv_ops.h"
#include "common/ops/index_ops.h"
#include "common/ops/loss_ops.h"
#include "common/ops/math_ops.h"
#include "common/ops/matmul.h"
#include "common/ops/normalization_ops.h"
#include "common/ops/pool_ops.h"
#include "common/ops/random_ops.h"
#include "common/ops/reduction.h"
#include "common/ops/replica_ops.h"
#include "common/ops/shape_ops.h"
#include "common/ops/slice_ops.h"
#include "common/ops/variable_ops.h"
#include "common/ops/window_options.h"

#endif  // COMMON_OPS_OPS_H_
