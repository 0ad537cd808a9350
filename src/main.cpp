#include "cli/command.h"

int main(int argc, char** argv) {
  return antisd::run_command_line(argc, argv);
}
