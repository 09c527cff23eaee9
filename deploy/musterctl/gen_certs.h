#ifndef DEPLOY_MUSTERCTL_GEN_CERTS_H_
#define DEPLOY_MUSTERCTL_GEN_CERTS_H_

#include "absl/status/status.h"

namespace muster {

// Runs `musterctl gen-certs`: writes the certificates of a job's tasks and
// operators, according to the flags.
//   kInvalidArgument  a flag is out of range, or the folder cannot be created
//   others            a file cannot be written
absl::Status GenerateCertificates();

}  // namespace muster

#endif  // DEPLOY_MUSTERCTL_GEN_CERTS_H_
