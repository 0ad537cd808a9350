#include "reward/code/interpreter_pool.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/check.h"
#include "core/error.h"
#include "reward/code/harness_text.h"
#include "reward/code/sandbox_filter.h"

namespace antisd::inline reward {
namespace {

constexpr int kStartMilliseconds = 30'000;
constexpr int kAnswerMilliseconds = 10'000;
constexpr int kThreads = 32;  // per program, besides its processes
constexpr std::size_t kMaxMessage = 1 << 16;

std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes)
    fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned char>(byte));
  return text;
}

Json zygote_config(const Interpreter& interpreter, Confinement confinement,
                   const CodeGraderOptions& options, bool numpy) {
  Json config;
  config["numpy"] = numpy && interpreter.numpy;
  config["confine"] = to_string(confinement);
  config["path"] = interpreter.import_path;
  config["readable"] = Json::array();
  for (const auto& path : interpreter.readable)
    config["readable"].push_back(path.string());
  config["landlock"] = confinement == Confinement::kNone ? 0 : probe_sandbox().landlock_abi;
  config["filter"] = "";
  const bool namespaces = confinement == Confinement::kNamespaces;
  if (confinement != Confinement::kNone)
    config["filter"] = to_hex(build_syscall_filter({.fork = namespaces && options.processes > 1,
                                                    .signals = namespaces,
                                                    .file_changes = namespaces}));
  config["cpu"] = static_cast<std::int64_t>(std::max(1.0, options.cpu_s + 0.999));
  config["file_bytes"] = options.file_bytes;
  config["disk_bytes"] = options.file_bytes;
  config["processes"] =
      3 + std::max(0, options.processes - 1) + kThreads;  // including zygote, program and tests
  return config;
}

std::int64_t virtual_bytes(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/statm", pid));
  std::int64_t pages = 0;
  file >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

bool is_int(const Json& value) {
  return value.is_number_integer() && value.get<double>() >= -0x1p31 &&
         value.get<double>() < 0x1p31;
}

// Whether a message's value under this key has the expected type.
bool is_sound(const std::string& key, const Json& value) {
  if (key == "started") return value.is_array() && std::all_of(value.begin(), value.end(), is_int);
  if (key == "ended" || key == "status") return is_int(value);
  if (key == "time" || key == "cpu") return value.is_number();
  if (key == "failed") return value.is_string();
  return key == "ready";
}

Zygote::Ended ended_of(const Json& message) {
  if (!message.contains("ended"))
    throw RunError("the interpreter for graded programs sent an unexpected message");
  return {message["ended"], message["status"], message["cpu"]};
}

}  // namespace

Json read_zygote_message(std::string_view text) {
  Json message;
  try {
    message = parse_json(text, "interpreter");
  } catch (const InputError&) {
  }
  bool sound = message.is_object() && !message.empty();
  if (sound)
    for (const auto& [key, value] : message.items())
      sound = sound && is_sound(key, value);
  if (sound && message.contains("ended"))
    sound = message.contains("status") && message.contains("cpu");
  if (!sound) throw RunError("the interpreter for graded programs sent an invalid message");
  return message;
}

Zygote::Zygote(const Interpreter& interpreter, Confinement confinement,
               const CodeGraderOptions& options, bool numpy)
    : process_(launch_python(interpreter, std::string(harness_text()), confinement)),
      numpy_(numpy) {
  std::optional<Json> answer;
  try {
    send(zygote_config(interpreter, confinement, options, numpy));
    answer = receive(kStartMilliseconds);
  } catch (const RunError&) {
  }
  if (!answer || !answer->contains("ready"))
    throw RunError("the interpreter for graded programs does not start: " + process_.errors(),
                   {.where = interpreter.executable.string(),
                    .remedy = "use an interpreter that every user of this machine can read, or see "
                              "`antisd doctor`"});
  const std::int64_t base = virtual_bytes(process_.pid());
  send({{"do", "limit"}, {"memory", base + (static_cast<std::int64_t>(options.memory_mb) << 20)}});
}

void Zygote::send(const Json& order, const std::vector<int>& descriptors) {
  const std::string text = order.dump();
  iovec part = {const_cast<char*>(text.data()), text.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char space[CMSG_SPACE(8 * sizeof(int))] = {};
  if (!descriptors.empty()) {
    ANTISD_CHECK_LE(descriptors.size(), 8u);
    message.msg_control = space;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }
  while (sendmsg(process_.control(), &message, MSG_NOSIGNAL) < 0)
    if (errno != EINTR) throw RunError("the interpreter for graded programs is gone");
}

std::optional<Json> Zygote::receive(int milliseconds) {
  pollfd wait = {process_.control(), POLLIN, 0};
  const int ready = poll(&wait, 1, milliseconds);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return std::nullopt;
  std::string text(kMaxMessage, '\0');
  const ssize_t size = recv(process_.control(), text.data(), text.size(), 0);
  if (size <= 0) throw RunError("the interpreter for graded programs is gone");
  return read_zygote_message(std::string_view(text).substr(0, static_cast<std::size_t>(size)));
}

Json Zygote::answer_to(const Json& order, const char* key, const std::vector<int>& descriptors) {
  send(order, descriptors);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(kAnswerMilliseconds);
  while (std::chrono::steady_clock::now() < deadline) {
    const auto answer = receive(100);
    if (!answer) continue;
    if (answer->contains(key)) return (*answer)[key];
    if (answer->contains("failed"))
      throw RunError("a program's process cannot be set up: " +
                     (*answer)["failed"].get<std::string>());
    ended_.push_back(ended_of(*answer));
  }
  throw RunError("the interpreter for graded programs does not answer");
}

std::vector<int> Zygote::start(const std::string& what, const std::vector<int>& descriptors) {
  return answer_to({{"do", what}}, "started", descriptors).get<std::vector<int>>();
}

double Zygote::processor_time(int pid) {
  return answer_to({{"do", "time"}, {"pid", pid}}, "time").get<double>();
}

void Zygote::kill(int pid) {
  send({{"do", "kill"}, {"pid", pid}});
}

std::optional<Zygote::Ended> Zygote::wait_ended(int milliseconds) {
  if (ended_.empty()) {
    const auto answer = receive(milliseconds);
    if (!answer) return std::nullopt;
    return ended_of(*answer);
  }
  const Ended first = ended_.front();
  ended_.erase(ended_.begin());
  return first;
}

InterpreterPool::InterpreterPool(const CodeGraderOptions& options)
    : options_(options),
      interpreter_(find_interpreter(options.python)),
      confinement_(choose_confinement(options.sandbox, probe_sandbox())) {
  if (!(options.timeout_s > 0) || !(options.cpu_s > 0) || options.memory_mb < 16 ||
      options.processes < 1 || options.output_bytes < 1 || options.file_bytes < 4096 ||
      options.workers < 0)
    throw InputError("a limit of the code grader is out of range",
                     {.where = "reward", .remedy = "`antisd config --defaults` lists the ranges"});
  if (options_.workers == 0)
    options_.workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  idle_[0].push_back(std::make_unique<Zygote>(interpreter_, confinement_, options_, false));
}

InterpreterPool::Lease InterpreterPool::acquire(bool numpy) {
  std::unique_lock lock(mutex_);
  free_.wait(lock, [&] { return out_ < options_.workers; });
  ++out_;
  if (auto& idle = idle_[numpy]; !idle.empty()) {
    std::unique_ptr<Zygote> zygote = std::move(idle.back());
    idle.pop_back();
    return Lease(*this, std::move(zygote));
  }
  lock.unlock();
  try {
    return Lease(*this, std::make_unique<Zygote>(interpreter_, confinement_, options_, numpy));
  } catch (...) {
    give_back(nullptr);
    throw;
  }
}

void InterpreterPool::give_back(std::unique_ptr<Zygote> zygote) {
  {
    const std::lock_guard lock(mutex_);
    --out_;
    if (zygote) idle_[zygote->has_numpy()].push_back(std::move(zygote));
  }
  free_.notify_one();
}

}  // namespace antisd::inline reward
