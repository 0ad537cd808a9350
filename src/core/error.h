// Errors that a user can fix: what is wrong, where, and the likely remedy. They are caught once, in
// main, which prints message() and exits with exit_status().
//
//   throw InputError("the header is 9 GB long but the file has 3 KB",
//                    {.where = path.string(), .remedy = "fetch the file again"});
//
// Programming errors are ANTISD_CHECK's (core/check.h).
#pragma once

#include <stdexcept>
#include <string>

namespace antisd::inline core {

struct ErrorContext {
  std::string where;   // file, file:line, key or tensor name
  std::string remedy;  // what the user can do about it, without a full stop
};

class Error : public std::runtime_error {
 public:
  // "where: what; remedy"
  std::string message() const;
  const std::string& problem() const { return problem_; }
  const ErrorContext& context() const { return context_; }
  int exit_status() const { return exit_status_; }

 protected:
  Error(std::string problem, ErrorContext context, int exit_status);

 private:
  std::string problem_;
  ErrorContext context_;
  int exit_status_;
};

// Bad usage, configuration or input: exit status 2.
class InputError : public Error {
 public:
  explicit InputError(std::string problem, ErrorContext context = {})
      : Error(std::move(problem), std::move(context), 2) {}
};

// Something failed while running (disk full, device lost, a file that vanished): exit status 1.
class RunError : public Error {
 public:
  explicit RunError(std::string problem, ErrorContext context = {})
      : Error(std::move(problem), std::move(context), 1) {}
};

}  // namespace antisd::inline core
