#include "common/dataset/files/record_files.h"

#include <utility>

#include "absl/status/statusor.h"
#include "common/dataset/dataset_node.h"
#include "common/dataset/files/example_function.h"
#include "common/dataset/files/file_table.h"
#include "common/dataset/files/npy.h"
#include "common/dataset/files/text_lines.h"
#include "common/dataset/files/tf_records.h"
#include "common/dataset/map_stages.h"

namespace muster {

Dataset TfRecordDataset(const std::vector<std::string>& patterns,
                        const TfRecordOptions& options) {
  auto paths = ExpandFilePatterns(patterns);
  return Dataset(paths.ok() ? MakeTfRecords(*std::move(paths), options)
                            : paths.status());
}

Dataset ParseExample(const Dataset& dataset,
                     const std::vector<FeatureSpec>& features,
                     const ParseExampleOptions& options) {
  if (!dataset.status().ok()) return dataset;
  auto function = MakeExampleFunction(dataset.element_types(), features);
  if (!function.ok()) return Dataset(function.status());
  return Dataset(MakeMap(dataset.node(), *std::move(function),
                         {.thread_count = options.thread_count},
                         options.corrupt_input));
}

Dataset TextLineDataset(const std::vector<std::string>& patterns,
                        const TextLineOptions& options) {
  auto paths = ExpandFilePatterns(patterns);
  return Dataset(paths.ok() ? MakeTextLines(*std::move(paths), options)
                            : paths.status());
}

Dataset NpyDataset(const std::vector<std::string>& patterns,
                   const NpyOptions& options) {
  auto paths = ExpandFilePatterns(patterns);
  return Dataset(paths.ok() ? MakeNpy(*std::move(paths), options)
                            : paths.status());
}

}  // namespace muster
