#ifndef COMMON_LEARN_TRAIN_JOB_JOB_CSV_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_CSV_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/core/tensor/dtype.h"
#include "common/dataset/dataset.h"

namespace muster {

namespace proto {
class JobData_Csv;
}  // namespace proto

// An input of a model that may be a column of a table.
struct ColumnInput {
  std::string name;
  DType dtype = DType::kFloat32;
  // It has one number for each example.
  bool is_single_number = false;
};

// A job's CSV files, as a model with certain inputs reads them.
struct JobCsv {
  // {feature..., label}, or without labels {feature..., id}.
  Dataset dataset;
  // The inputs that take a column each; empty: the features are one vector.
  std::vector<std::string> input_names;
  // Columns of the first file that are neither feature nor label nor id.
  std::vector<std::string> unused_columns;
};

// Each input takes the column of its name if there are several, if there is one
// of strings, or if there is one of a single number and the file has a column
// of its name. Otherwise all columns but label and id are one vector.
// `csv.columns` names the columns in either case; the only one goes to the only
// input, whatever its name.
//   kInvalidArgument  a field is missing or contradicts another, or the file
//                     does not have the columns or the values that are
//                     expected; names the field or the column
//   others            from opening files
absl::StatusOr<JobCsv> OpenJobCsv(const proto::JobData_Csv& csv,
                                  DType label_type,
                                  const std::vector<ColumnInput>& inputs);

// The same for predictions. The column of labels is not read, and need not be
// there. If `csv.id` names a column, its text is the last component.
absl::StatusOr<JobCsv> OpenJobCsvInputs(const proto::JobData_Csv& csv,
                                        const std::vector<ColumnInput>& inputs);

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_CSV_H_
