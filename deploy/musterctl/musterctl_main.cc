#include "deploy/musterctl/musterctl_program.h"

int main(int argc, char** argv) { return muster::MusterctlMain(argc, argv); }
