// Prints docs/keras_symbols.md.

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "absl/status/statusor.h"
#include "common/learn/train/keras/keras_symbols.h"

int main() {
  std::ifstream file("docs/keras_symbols.txt");
  std::ostringstream symbols;
  symbols << file.rdbuf();
  const absl::StatusOr<std::string> page =
      muster::KerasSymbolsPage(symbols.str());
  if (!page.ok()) {
    std::cerr << page.status().message() << "\n";
    return EXIT_FAILURE;
  }
  std::cout << *page;
}
