#include "deploy/launch/launch_program.h"

int main(int argc, char** argv) { return muster::LaunchMain(argc, argv); }
