// Prints docs/keras_symbols.md.

#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/status/statusor.h"
#include "common/core/system/small_file.h"
#include "common/learn/train/callbacks/keras_symbols.h"

int main() {
  const absl::StatusOr<std::string> symbols =
      muster::ReadSmallFile("docs/keras_symbols.txt");
  const absl::StatusOr<std::string> page =
      symbols.ok() ? muster::KerasSymbolsPage(*symbols) : symbols;
  if (!page.ok()) {
    std::cerr << page.status().message() << "\n";
    return EXIT_FAILURE;
  }
  std::cout << *page;
}
