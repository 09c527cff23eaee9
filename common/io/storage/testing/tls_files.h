#ifndef COMMON_IO_STORAGE_TESTING_TLS_FILES_H_
#define COMMON_IO_STORAGE_TESTING_TLS_FILES_H_

#include <string>

#include "absl/status/statusor.h"

namespace muster {

// The PEM files of a server at 127.0.0.1 and of its clients.
struct ServerTlsFiles {
  std::string server;  // The server's certificate and its key.
  std::string ca;      // The certificate of the CA that signed it.
};

// Generates a CA and a certificate for 127.0.0.1, valid for a day, and writes
// them to files whose paths begin with `prefix`.
//   kInternal  OpenSSL fails, or a file cannot be written
absl::StatusOr<ServerTlsFiles> WriteServerTlsFiles(const std::string& prefix);

}  // namespace muster

#endif  // COMMON_IO_STORAGE_TESTING_TLS_FILES_H_
