// OpenMP's threads wait for each other by spinning, which takes the cores away from whoever would
// end the waiting: on a busy machine a step takes several times as long as with one thread.
// Sleeping costs little on quiet cores.
#pragma once

namespace antisd::inline cli {

// Makes them sleep. The run time reads OMP_WAIT_POLICY before main begins, so the program sets it
// and restarts itself, once, where a command works with tensors on several threads and the user
// has not said how to wait. Returns otherwise, and in the program that was started so; what that
// starts inherits nothing of it.
void wait_passively(int argc, char** argv);

}  // namespace antisd::inline cli
