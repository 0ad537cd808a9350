#include "reward/code/run.h"

#include <cerrno>
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "core/error.h"
#include "core/utf8.h"
#include "io/process/pipes.h"
#include "io/system_error.h"

namespace antisd::inline reward {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kCountSeconds =
    5;  // for the tests to finish counting after the program's time is up
constexpr double kTestsFactor = 3;    // limit of a run with the tests' own work, times timeout_s
constexpr double kDeathSeconds = 10;  // for a killed process to end
constexpr std::size_t kKeptErrors = 4096;
constexpr std::size_t kMaxResults = 100'000;
constexpr std::size_t kMaxVerdictBytes = 64 << 20;

// Text as an immutable file.
UniqueFd memory_file(std::string_view text) {
  UniqueFd file(memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) throw_failed("cannot make a memory file", errno);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(file.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_failed("cannot fill a memory file", n < 0 ? errno : ENOSPC);
    done += static_cast<std::size_t>(n);
  }
  lseek(file.get(), 0, SEEK_SET);
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  return file;
}

// A pipe with a non-blocking reader.
Pipe make_polled_pipe() {
  Pipe pipe = make_pipe();
  fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 1000));
}

// Appends what can be read now; false at the end of the stream.
bool drain(UniqueFd& stream, std::string& text, std::size_t most) {
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = read(stream.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return true;
    if (n == 0) {
      stream.reset();
      return false;
    }
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > most) return true;
  }
}

// The children of one run: tracks which are alive and makes sure that they end.
class Children {
 public:
  Children(Zygote& zygote, std::vector<int> pids)
      : zygote_(zygote), pids_(pids), ends_(pids.size()) {}

  void collect(int milliseconds) {
    while (const auto ended = zygote_.wait_ended(milliseconds)) {
      for (std::size_t i = 0; i < pids_.size(); ++i)
        if (pids_[i] == ended->pid) ends_[i] = *ended;
      milliseconds = 0;
    }
  }
  bool lives(std::size_t i) const { return !ends_[i]; }
  int pid(std::size_t i) const { return pids_[i]; }
  void kill(std::size_t i) {
    if (lives(i)) zygote_.kill(pids_[i]);
  }
  void finish() {
    for (std::size_t i = 0; i < pids_.size(); ++i)
      kill(i);
    const auto deadline = after(kDeathSeconds);
    while (std::any_of(ends_.begin(), ends_.end(), [](const auto& end) { return !end; })) {
      if (Clock::now() > deadline) {
        throw RunError("a killed program does not end",
                       {.remedy = "see what the machine waits for (ps -eo stat,wchan,cmd)"});
      }
      collect(milliseconds_until(deadline));
    }
  }
  const Zygote::Ended& end(std::size_t i) const { return *ends_[i]; }

 private:
  Zygote& zygote_;
  std::vector<int> pids_;
  std::vector<std::optional<Zygote::Ended>> ends_;
};

void wait_for(const Zygote& zygote, std::initializer_list<int> streams,
              Clock::time_point deadline) {
  pollfd waits[4];
  nfds_t count = 0;
  waits[count++] = {zygote.control(), POLLIN, 0};
  for (const int stream : streams)
    if (stream >= 0) waits[count++] = {stream, POLLIN, 0};
  poll(waits, count, milliseconds_until(deadline));
}

// A text from the tests' process. It may be invalid Unicode (half of a surrogate pair): the program
// chose the words of its errors, and they must not affect the verdict.
std::string reason_of(std::string_view json) {
  try {
    const Json value = parse_json(json, "tests");
    if (value.is_string()) return value.get<std::string>();
  } catch (const InputError&) {
  }
  return replace_invalid_utf8(json);
}

}  // namespace

void read_results(std::string& buffer, TestRun& run) {
  std::size_t start = 0;
  for (std::size_t end; (end = buffer.find('\n', start)) != std::string::npos; start = end + 1) {
    const std::string_view line = std::string_view(buffer).substr(start, end - start);
    if (line == "end") run.complete = true;
    const bool full = run.results.size() >= kMaxResults;
    if (line.empty() || line == "end" || (full && line[0] == 'p')) continue;
    std::string reason;
    if (line.size() > 2) reason = reason_of(line.substr(2));
    if (line[0] == 'x')
      run.broken = reason;
    else if (full)
      run.results.back() = {false, reason};  // above the limit only a failure is kept
    else
      run.results.push_back({line[0] == 'p', reason});
  }
  buffer.erase(0, start);
}

MainRun run_main(Zygote& zygote, std::string_view source, std::string_view input,
                 const CodeGraderOptions& options) {
  const UniqueFd program = memory_file(source), standard_in = memory_file(input);
  Pipe out = make_polled_pipe(), error = make_polled_pipe();
  Children children(zygote, zygote.start("main", {program.get(), standard_in.get(), out.write.get(),
                                                  error.write.get()}));
  out.write.reset();
  error.write.reset();

  MainRun run;
  const auto deadline = after(options.timeout_s);
  const auto most = static_cast<std::size_t>(options.output_bytes);
  std::size_t error_bytes = 0;
  while (children.lives(0)) {
    wait_for(zygote, {out.read.get(), error.read.get()}, deadline);
    if (out.read) drain(out.read, run.output, most);
    const std::size_t before = run.errors.size();
    if (error.read) drain(error.read, run.errors, most);
    error_bytes += run.errors.size() - before;
    if (run.errors.size() > kKeptErrors) run.errors.erase(0, run.errors.size() - kKeptErrors);
    children.collect(0);
    run.too_much_output = run.output.size() > most || error_bytes > most;
    run.timed_out = children.lives(0) && Clock::now() >= deadline;
    if (run.too_much_output || run.timed_out) break;
  }
  children.finish();
  if (out.read && !run.too_much_output) drain(out.read, run.output, most);
  if (error.read) drain(error.read, run.errors, 1 << 20);
  run.too_much_output = run.too_much_output || run.output.size() > most;
  run.output.resize(std::min(run.output.size(), most));
  run.status = children.end(0).status;
  run.cpu_s = children.end(0).cpu_s;
  return run;
}

TestRun run_tests(Zygote& zygote, std::string_view source, const Json& job,
                  const CodeGraderOptions& options) {
  const UniqueFd program = memory_file(source), tests = memory_file(to_json_line(job));
  Pipe verdict = make_polled_pipe();
  Children children(zygote,
                    zygote.start("pair", {program.get(), tests.get(), verdict.write.get()}));
  verdict.write.reset();
  constexpr std::size_t kProgram = 0, kTests = 1;

  TestRun run;
  std::string buffer;
  const auto start = Clock::now();
  auto deadline = after(options.timeout_s);
  const auto last = after(kTestsFactor * options.timeout_s);
  while (verdict.read) {
    wait_for(zygote, {verdict.read.get()}, deadline);
    drain(verdict.read, buffer, kMaxVerdictBytes);
    read_results(buffer, run);
    children.collect(0);
    if (Clock::now() < deadline && buffer.size() <= kMaxVerdictBytes) continue;
    if (run.timed_out) break;
    if (children.lives(kTests) && Clock::now() < last) {
      // The program is not charged for the tests' own processor time.
      const double own = zygote.processor_time(children.pid(kTests));
      deadline =
          std::min(last, start + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(options.timeout_s + own)));
      if (Clock::now() < deadline) continue;
    }
    // The tests continue without the program, so that all of them are counted.
    run.timed_out = true;
    children.kill(kProgram);
    deadline = after(kCountSeconds);
  }
  children.finish();
  run.program_status = children.end(kProgram).status;
  run.tests_status = children.end(kTests).status;
  run.cpu_s = children.end(kProgram).cpu_s + children.end(kTests).cpu_s;
  return run;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status)) return fmt::format("killed by signal {}", WTERMSIG(status));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace antisd::inline reward
