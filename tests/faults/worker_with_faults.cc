#include "worker/worker_program.h"

int main(int argc, char** argv) { return muster::WorkerMain(argc, argv); }
