#ifndef COMMON_LEARN_NN_IOU_METRICS_H_
#define COMMON_LEARN_NN_IOU_METRICS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/learn/nn/config_visitor.h"
#include "common/learn/nn/metric.h"

// Intersection over union of segmentations: for each class tp / (tp + fp + fn),
// and of these the mean over the classes that occur in a label or a prediction.
// Labels and predictions of any shape; a label or prediction outside of
// [0, num_classes) does not count. Sample weights are one for each label, or
// one for all; masks do not count, as in Keras. Source:
// https://keras.io/api/metrics/segmentation_metrics/
//
// Different from Keras, whose counts are integers unless it is given a dtype:
// fractional sample weights are not truncated to integers.
namespace muster {

// Options that the metrics share. `axis` has the classes of labels and
// predictions that are not sparse, which are one-hot or scores; only -1.
struct IoUOptions {
  int64_t num_classes = 0;                     // Required.
  std::vector<int64_t> target_class_ids = {};  // Required.
  // Labels of this class do not count.
  std::optional<int64_t> ignore_class = std::nullopt;
  bool sparse_y_true = true;  // Class numbers.
  bool sparse_y_pred = true;
  int64_t axis = -1;

  void VisitConfig(ConfigVisitor& visitor);
};
// The mean over `target_class_ids`.
//
// Reported to the builder, by all of these metrics: kInvalidArgument if
// num_classes is below 1, a target class does not exist, or axis is not -1.
Metric IoU(const IoUOptions& options);

struct MeanIoUOptions {
  int64_t num_classes = 0;  // Required.
  std::optional<int64_t> ignore_class = std::nullopt;
  bool sparse_y_true = true;
  bool sparse_y_pred = true;
  int64_t axis = -1;

  void VisitConfig(ConfigVisitor& visitor);
};
// The mean over all classes.
Metric MeanIoU(const MeanIoUOptions& options);

struct BinaryIoUOptions {
  std::vector<int64_t> target_class_ids = {0, 1};
  double threshold = 0.5;

  void VisitConfig(ConfigVisitor& visitor);
};
// Labels 0 and 1; predictions of at least `threshold` are class 1.
Metric BinaryIoU(const BinaryIoUOptions& options = {});

struct OneHotIoUOptions {
  int64_t num_classes = 0;                     // Required.
  std::vector<int64_t> target_class_ids = {};  // Required.
  std::optional<int64_t> ignore_class = std::nullopt;
  bool sparse_y_pred = false;
  int64_t axis = -1;

  void VisitConfig(ConfigVisitor& visitor);
};
// IoU() and MeanIoU() of one-hot labels.
Metric OneHotIoU(const OneHotIoUOptions& options);

struct OneHotMeanIoUOptions {
  int64_t num_classes = 0;  // Required.
  std::optional<int64_t> ignore_class = std::nullopt;
  bool sparse_y_pred = false;
  int64_t axis = -1;

  void VisitConfig(ConfigVisitor& visitor);
};
Metric OneHotMeanIoU(const OneHotMeanIoUOptions& options);

}  // namespace muster

#endif  // COMMON_LEARN_NN_IOU_METRICS_H_
