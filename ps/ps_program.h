#ifndef PS_PS_PROGRAM_H_
#define PS_PS_PROGRAM_H_

namespace muster {

// main() of `ps`: stores a part of the variables of a job and applies updates
// to them until the job ends. Returns the exit status (see
// common/net/process/exit_code.h).
int ParameterServerMain(int argc, char** argv);

}  // namespace muster

#endif  // PS_PS_PROGRAM_H_
