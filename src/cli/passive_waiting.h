// OpenMP threads wait for each other by spinning, which takes cores from the threads they wait for:
// on a busy machine a step takes several times as long as with one thread. Sleeping costs little on
// idle cores.
#pragma once

namespace antisd::inline cli {

// Makes them sleep. The runtime reads OMP_WAIT_POLICY before main starts, so the program sets it
// and restarts itself, once, if the command uses tensors on several threads and the user has not
// chosen how to wait. Otherwise, and in the restarted program, it returns. Child processes do not
// inherit the setting.
void wait_passively(int argc, char** argv);

}  // namespace antisd::inline cli
