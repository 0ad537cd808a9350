// For tests that run commands as a user does: the real binary, its exit status and both output
// streams, in a temporary folder.
//
//   class Report : public testing::CommandTest {};
//   TEST_F(Report, NeedsARun) { EXPECT_EQ(run("report nowhere").status, 2); }
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace antisd::testing {

struct Outcome {
  int status = -1;  // the exit status; -N: killed by signal N
  std::string out, err;
};

// The JSON values of a text, one per line.
inline std::vector<Json> parse_rows(const std::string& text) {
  std::vector<Json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    rows.push_back(Json::parse(line));
  return rows;
}

class CommandTest : public ::testing::Test {
 protected:
  // Runs `antisd arguments` in the folder, with `input` as standard input. A shell parses the
  // arguments: quote what may contain a space.
  Outcome run(const std::string& arguments, const std::string& input = "") const {
    write("in", input);
    const int status = shell("antisd " + arguments + " <in >out 2>err");
    return {status, read_file(folder_ / "out"), read_file(folder_ / "err")};
  }

  // Starts `antisd arguments` in the background, with its streams in the files out and err; wait
  // for it with status_of().
  pid_t launch(const std::string& arguments) const {
    const std::string line = in_folder("exec antisd " + arguments + " </dev/null >out 2>err");
    const pid_t pid = fork();
    if (pid == 0) {
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
    return pid;
  }

  // Waits for a process that launch() started.
  static int status_of(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return exit_status(status);
  }

  // Runs a shell command line in the folder; `antisd` is the binary under test. Returns the exit
  // status.
  int shell(const std::string& line) const {
    return exit_status(std::system(in_folder(line).c_str()));
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Returns the path.
  std::string write(const std::string& name, const std::string& text) const {
    write_file_atomically(folder_ / name, text);
    return path(name);
  }

  TemporaryFolder folder_;

 private:
  std::string in_folder(const std::string& line) const {
    return fmt::format("cd '{}' && PATH='{}':\"$PATH\" && {}", folder_.path().string(),
                       ANTISD_BINARY_DIR, line);
  }
  static int exit_status(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
};

}  // namespace antisd::testing
