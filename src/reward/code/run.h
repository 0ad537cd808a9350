// One run of a program, observed from outside: its output, how it ended, and the tests' results.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reward/code/interpreter_pool.h"

namespace antisd::inline reward {

// `python program.py < input`
struct MainRun {
  bool timed_out = false, too_much_output = false;
  int status = 0;      // as from waitpid
  std::string output;  // at most output_bytes
  std::string errors;  // the last part of standard error
  double cpu_s = 0;
};

// A program and the tests that call it.
struct TestRun {
  struct Result {
    bool passed = false;
    std::string reason;
  };
  std::vector<Result> results;  // in the order the tests were reached
  bool complete = false;        // all tests were reached
  bool timed_out = false;
  std::string broken;  // what is wrong with the test code itself
  int program_status = 0, tests_status = 0;
  double cpu_s = 0;
};

// Both throw RunError if the interpreter failed, not the program; the lease must then be discarded.
// When they return, no process of the program is left.
MainRun run_main(Zygote& zygote, std::string_view source, std::string_view input,
                 const CodeGraderOptions& options);
TestRun run_tests(Zygote& zygote, std::string_view source, const Json& job,
                  const CodeGraderOptions& options);

// Removes complete lines of the tests' process from `buffer`: "p", "f REASON" or "x REASON" (the
// test code itself is wrong), where REASON is a JSON string, and "end".
void read_results(std::string& buffer, TestRun& run);

// "exit status 1", "killed by signal 9"
std::string describe_status(int status);

}  // namespace antisd::inline reward
