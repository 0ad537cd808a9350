#include "core/faults/fault_injection.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace antisd::inline core::faults {
namespace {

struct State {
  std::recursive_mutex mutex;
  std::string folder, log, last;
  Fault fault;
  std::int64_t calls = 0, failed = 0;
};

State& state() {
  static State* const only = new State;  // never destroyed: libraries write while the program ends
  return *only;
}

std::atomic<bool> watching = false;
thread_local bool inside = false;  // our own calls do not count

struct Inside {
  Inside() { inside = true; }
  ~Inside() { inside = false; }
};

std::string path_of(int descriptor) {
  char link[64], target[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, target, sizeof target);
  return size > 0 ? std::string(target, static_cast<std::size_t>(size)) : "";
}

std::string path_of(int folder, const char* path) {
  if (path == nullptr) return "";
  if (path[0] == '/') return path;
  std::array<char, 4096> here;
  if (folder != AT_FDCWD) return path_of(folder) + "/" + path;
  return getcwd(here.data(), here.size()) != nullptr ? std::string(here.data()) + "/" + path : path;
}

bool is_below(const std::string& path, const std::string& folder) {
  return !folder.empty() && path.starts_with(folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

enum class Verdict { kPass, kFail, kShorten };

// Counts the call and decides whether it fails; then it sets errno.
Verdict judge(const char* name, const std::string& path, bool is_write) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!is_below(path, s.folder)) return Verdict::kPass;
  ++s.calls;
  if (!s.log.empty()) {
    const std::string line = std::to_string(s.calls) + " " + name + " " + path + "\n";
    const long file = syscall(SYS_openat, AT_FDCWD, s.log.c_str(),
                              O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    syscall(SYS_write, file, line.data(), line.size());
    syscall(SYS_close, file);
  }
  const bool due =
      s.fault.call > 0 && (s.calls == s.fault.call || (s.fault.on && s.calls > s.fault.call));
  if (!due || (s.fault.is_short && !is_write)) return Verdict::kPass;
  ++s.failed;
  s.last = std::string(name) + " " + path;
  if (s.fault.is_short) return Verdict::kShorten;
  errno = s.fault.error;
  return Verdict::kFail;
}

template <typename Path>
Verdict judged(const char* name, Path path, bool is_write = false) {
  if (!watching || inside) return Verdict::kPass;
  const Inside guard;
  const int before = errno;
  const Verdict verdict = judge(name, path(), is_write);
  if (verdict != Verdict::kFail) errno = before;
  return verdict;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// Reads the environment's settings before main().
__attribute__((constructor)) void read_environment() {
  const char* const folder = std::getenv("ANTISD_FAULT_FOLDER");
  if (folder == nullptr) return;
  State& s = state();
  if (const char* const log = std::getenv("ANTISD_FAULT_LOG")) s.log = log;
  if (const char* const text = std::getenv("ANTISD_FAULT")) {
    char how[16] = "";
    long long call = 0;
    std::sscanf(text, "%lld %d %15s", &call, &s.fault.error, how);
    s.fault.call = call;
    s.fault.on = std::strcmp(how, "on") == 0;
    s.fault.is_short = std::strcmp(how, "short") == 0;
  }
  s.folder = folder;
  watching = true;
}

}  // namespace

void watch(const std::string& folder) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.folder = folder;
  s.fault = {};
  s.calls = s.failed = 0;
  watching = true;
}

void arm(const Fault& fault) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.fault = fault;
  s.calls = s.failed = 0;
  s.last.clear();
}

void disarm() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.fault = {};
}

std::int64_t calls() {
  const std::lock_guard lock(state().mutex);
  return state().calls;
}

std::int64_t failed() {
  const std::lock_guard lock(state().mutex);
  return state().failed;
}

std::string last_failed() {
  const std::lock_guard lock(state().mutex);
  return state().last;
}

}  // namespace antisd::inline core::faults

// The intercepted calls. The linker finds these definitions before libc's.
using antisd::faults::judged;
using antisd::faults::next;
using antisd::faults::path_of;
using antisd::faults::Verdict;

#define ANTISD_ON_PATH(name, folder, path) \
  if (judged(name, [&] { return path_of(folder, path); }) == Verdict::kFail) return -1
#define ANTISD_ON_FILE(name, descriptor) \
  if (judged(name, [&] { return path_of(descriptor); }) == Verdict::kFail) return -1
#define ANTISD_READ_MODE                                            \
  mode_t mode = 0;                                                  \
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list more;                                                   \
    va_start(more, flags);                                          \
    mode = va_arg(more, mode_t);                                    \
    va_end(more);                                                   \
  }

extern "C" {

int open(const char* path, int flags, ...) {
  ANTISD_READ_MODE
  ANTISD_ON_PATH("open", AT_FDCWD, path);
  return next<int(const char*, int, ...)>("open")(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  ANTISD_READ_MODE
  ANTISD_ON_PATH("open", AT_FDCWD, path);
  return next<int(const char*, int, ...)>("open64")(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  ANTISD_READ_MODE
  ANTISD_ON_PATH("openat", folder, path);
  return next<int(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
}

int openat64(int folder, const char* path, int flags, ...) {
  ANTISD_READ_MODE
  ANTISD_ON_PATH("openat", folder, path);
  return next<int(int, const char*, int, ...)>("openat64")(folder, path, flags, mode);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  const Verdict verdict = judged(
      "write", [&] { return path_of(descriptor); }, true);
  if (verdict == Verdict::kFail) return -1;
  const size_t taken = verdict == Verdict::kShorten ? count / 2 : count;
  return next<ssize_t(int, const void*, size_t)>("write")(descriptor, bytes, taken);
}

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t at) {
  const Verdict verdict = judged(
      "pwrite", [&] { return path_of(descriptor); }, true);
  if (verdict == Verdict::kFail) return -1;
  const size_t taken = verdict == Verdict::kShorten ? count / 2 : count;
  return next<ssize_t(int, const void*, size_t, off_t)>("pwrite")(descriptor, bytes, taken, at);
}

// Nothing is synced while calls are watched: it is slow, and no test cuts the power.
int fsync(int descriptor) {
  ANTISD_ON_FILE("fsync", descriptor);
  return antisd::faults::watching ? 0 : next<int(int)>("fsync")(descriptor);
}

int fdatasync(int descriptor) {
  ANTISD_ON_FILE("fdatasync", descriptor);
  return antisd::faults::watching ? 0 : next<int(int)>("fdatasync")(descriptor);
}

int ftruncate(int descriptor, off_t size) noexcept {
  ANTISD_ON_FILE("ftruncate", descriptor);
  return next<int(int, off_t)>("ftruncate")(descriptor, size);
}

// The descriptor is closed even if the call reports an error.
int close(int descriptor) {
  const Verdict verdict = judged("close", [&] { return path_of(descriptor); });
  const int error = errno;
  const int closed = next<int(int)>("close")(descriptor);
  if (verdict != Verdict::kFail) return closed;
  errno = error;
  return -1;
}

int rename(const char* from, const char* to) noexcept {
  ANTISD_ON_PATH("rename", AT_FDCWD, from);
  return next<int(const char*, const char*)>("rename")(from, to);
}

int renameat(int folder, const char* from, int other, const char* to) noexcept {
  ANTISD_ON_PATH("renameat", folder, from);
  return next<int(int, const char*, int, const char*)>("renameat")(folder, from, other, to);
}

int renameat2(int folder, const char* from, int other, const char* to, unsigned flags) noexcept {
  ANTISD_ON_PATH("renameat2", folder, from);
  return next<int(int, const char*, int, const char*, unsigned)>("renameat2")(folder, from, other,
                                                                              to, flags);
}

int mkdir(const char* path, mode_t mode) noexcept {
  ANTISD_ON_PATH("mkdir", AT_FDCWD, path);
  return next<int(const char*, mode_t)>("mkdir")(path, mode);
}

int unlink(const char* path) noexcept {
  ANTISD_ON_PATH("unlink", AT_FDCWD, path);
  return next<int(const char*)>("unlink")(path);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  ANTISD_ON_PATH("unlinkat", folder, path);
  return next<int(int, const char*, int)>("unlinkat")(folder, path, flags);
}

int rmdir(const char* path) noexcept {
  ANTISD_ON_PATH("rmdir", AT_FDCWD, path);
  return next<int(const char*)>("rmdir")(path);
}

int remove(const char* path) noexcept {
  ANTISD_ON_PATH("remove", AT_FDCWD, path);
  return next<int(const char*)>("remove")(path);
}

int link(const char* from, const char* to) noexcept {
  ANTISD_ON_PATH("link", AT_FDCWD, to);
  return next<int(const char*, const char*)>("link")(from, to);
}

int fchmod(int descriptor, mode_t mode) noexcept {
  ANTISD_ON_FILE("fchmod", descriptor);
  return next<int(int, mode_t)>("fchmod")(descriptor, mode);
}

int fstat(int descriptor, struct stat* status) noexcept {
  ANTISD_ON_FILE("fstat", descriptor);
  return next<int(int, struct stat*)>("fstat")(descriptor, status);
}

}  // extern "C"
