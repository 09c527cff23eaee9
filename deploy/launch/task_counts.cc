#include "deploy/launch/task_counts.h"

#include "absl/flags/flag.h"

ABSL_FLAG(int, workers, 2, "How many workers.");
ABSL_FLAG(int, ps, 2,
          "How many parameter servers. With 0 the workers train "
          "synchronously, and with --workers=0 too one process trains alone.");
