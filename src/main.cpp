#include "cli/command.h"
#ifdef ANTISD_TORCH
#include "cli/passive_waiting.h"
#include "ops/device.h"
#endif

int main(int argc, char** argv) {
#ifdef ANTISD_TORCH
  antisd::wait_passively(argc, argv);
  antisd::keep_freed_memory();
#endif
  return antisd::run_command_line(argc, argv);
}
