// For tests only: a hub on loopback addresses (tools/loopback_hub.py) with repositories of the
// test's own. add() their files, then start() it; its arguments are those of the tool.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd::testing {

class LoopbackHub {
 public:
  void add(const std::string& path, const std::string& content) {
    const std::filesystem::path file = folder_ / ("root/" + path);
    std::filesystem::create_directories(file.parent_path());
    write_file_atomically(file, content);
  }

  // A model of 5 files, one of them large; a data set of one Parquet file.
  void add_usual() {
    add("models/Qwen/Tiny/config.json", "{\"model_type\": \"qwen3\"}\n");
    add("models/Qwen/Tiny/tokenizer/vocab.json", "{}");
    add("models/Qwen/Tiny/model.safetensors", weights());
    add("models/Qwen/Tiny/pytorch_model.bin", "a second copy");
    add("models/Qwen/Tiny/empty.txt", "");
    add("datasets/openai/gsm8k/main/train-00000-of-00001.parquet", "PAR1");
    add("datasets/openai/gsm8k/README.md", "# rows\n");
  }
  static std::string weights() {
    std::string text;
    for (int i = 0; i < 20000; ++i)
      text += static_cast<char>((i * i) >> 3);
    return text;
  }

  // Starts it, or starts it again with other faults.
  void start(const std::string& faults = "") {
    stop();
    int input[2], output[2];
    if (pipe(input) != 0 || pipe(output) != 0) throw RunError("no pipe");
    process_ = fork();
    if (process_ == 0) {
      dup2(input[0], 0);
      dup2(output[1], 1);
      for (const int fd : {input[0], input[1], output[0], output[1]})
        close(fd);
      const std::string line = fmt::format(
          "exec python3 '{}/tools/loopback_hub.py' '{}' --log '{}' {}", ANTISD_SOURCE_DIR,
          (folder_ / "root").string(), (folder_ / "log").string(), faults);
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
    close(input[0]);
    close(output[1]);
    input_ = input[1];
    FILE* answer = fdopen(output[0], "r");
    char line[100] = "";
    if (fgets(line, sizeof(line), answer) != nullptr) address_ = line;
    fclose(answer);
    while (!address_.empty() && address_.back() == '\n')
      address_.pop_back();
  }
  void stop() {
    if (process_ <= 0) return;
    close(input_);  // it ends with its standard input
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
  }
  ~LoopbackHub() { stop(); }

  const std::string& address() const { return address_; }
  // The requests so far, one a line.
  std::string log() const { return read_file(folder_ / "log"); }
  void clear_log() const { std::filesystem::resize_file(folder_ / "log", 0); }
  std::filesystem::path cache() const { return folder_ / "cache"; }

 private:
  TemporaryFolder folder_;
  pid_t process_ = -1;
  int input_ = -1;
  std::string address_;
};

}  // namespace antisd::testing
