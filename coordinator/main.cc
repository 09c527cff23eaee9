#include "coordinator/coordinator_main.h"

int main(int argc, char** argv) { return muster::CoordinatorMain(argc, argv); }
