#include "worker/worker_main.h"

int main(int argc, char** argv) { return muster::WorkerMain(argc, argv); }
