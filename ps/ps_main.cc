#include "ps/ps_program.h"

int main(int argc, char** argv) {
  return muster::ParameterServerMain(argc, argv);
}
