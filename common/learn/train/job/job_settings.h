#ifndef COMMON_LEARN_TRAIN_JOB_JOB_SETTINGS_H_
#define COMMON_LEARN_TRAIN_JOB_JOB_SETTINGS_H_

#include <map>
#include <string>

namespace muster {

// Values of a job's ${name}s, by name: `--set name=value`, and what the
// executable itself sets.
using JobSettings = std::map<std::string, std::string>;

}  // namespace muster

#endif  // COMMON_LEARN_TRAIN_JOB_JOB_SETTINGS_H_
