#include "cli/command.h"

#ifdef __SANITIZE_ADDRESS__
// LeakSanitizer crashes now and then when it looks for the thread-local memory of libraries that
// were loaded later, as the tensor half is. The tests that are linked with that half look for
// leaks.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}
#endif

int main(int argc, char** argv) {
  return antisd::run_command_line(argc, argv);
}
