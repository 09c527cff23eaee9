// Prints docs/job_reference.md.

#include <iostream>

#include "common/learn/train/job/job_reference.h"

int main() {
  std::cout << muster::JobReferencePage();
  return 0;
}
