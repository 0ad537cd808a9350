// The interpreter that runs graded programs, and its files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace antisd::inline reward {

struct Interpreter {
  std::filesystem::path executable;      // symbolic links resolved
  std::vector<std::string> import_path;  // sys.path
  std::vector<std::filesystem::path>
      readable;         // everything that a program may read: library, modules, shared libraries
  std::string version;  // "3.11.2"
  bool numpy = false;
};

// Queries the interpreter. An empty path means /usr/bin/python3, or else the first python3 on PATH.
// Throws InputError if there is none or it is older than 3.9.
Interpreter find_interpreter(const std::string& path);

}  // namespace antisd::inline reward
