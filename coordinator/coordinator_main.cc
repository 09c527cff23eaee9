#include "coordinator/coordinator_program.h"

int main(int argc, char** argv) { return muster::CoordinatorMain(argc, argv); }
