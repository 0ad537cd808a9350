// What this machine can do to confine a process, and a python interpreter started under it.
//
//   const SandboxStrength strength = probe_sandbox();
//   const Confinement confinement = choose_confinement("auto", strength);  // InputError: too weak
//   ConfinedProcess zygote = launch_python(find_interpreter(""), script, confinement);
//
// docs/sandbox.md describes the layers and how each attack is stopped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "io/unique_fd.h"
#include "reward/code/sandbox_python.h"

namespace antisd::inline reward {

struct SandboxStrength {
  bool namespaces = false;         // user, mount, process, network, ipc, uts
  std::string namespaces_problem;  // which step failed, if they are unavailable
  bool seccomp = false;
  int landlock_abi = 0;  // 0: absent

  // Namespaces and a system call filter, or at least Landlock and the filter.
  bool isolates() const { return seccomp && (namespaces || landlock_abi > 0); }
  // One line per part, with a remedy for what is missing.
  std::vector<std::string> lines() const;
};

SandboxStrength probe_sandbox();

enum class Confinement {
  kNamespaces,  // all layers
  kLandlock,    // only Landlock and seccomp; programs cannot write or start processes
  kNone,        // only resource limits, set deliberately
};

// "auto": the strongest available; "reduced": kLandlock even if namespaces work; "none". Throws
// InputError with a remedy if there is no real isolation and "none" was not requested.
Confinement choose_confinement(const std::string& sandbox, const SandboxStrength& strength);
std::string_view to_string(Confinement confinement);

// A child process; its own children die with it (its process namespace ends). Movable.
class ConfinedProcess {
 public:
  ConfinedProcess() = default;
  ConfinedProcess(pid_t pid, UniqueFd control, UniqueFd errors);
  ConfinedProcess(ConfinedProcess&& other) noexcept;
  ConfinedProcess& operator=(ConfinedProcess&& other) noexcept;
  ~ConfinedProcess() { kill(); }

  pid_t pid() const { return pid_; }  // 0: none
  int control() const {
    return control_.get();
  }                            // our end of a SOCK_SEQPACKET pair; the child has it as 3
  std::string errors() const;  // the last part of its standard error before it was ready
  void kill();                 // and wait for it

 private:
  pid_t pid_ = 0;
  UniqueFd control_, errors_;
};

// Starts `python -c script` with descriptor 3 as control channel, nothing else open except
// /dev/null, an empty environment and, in kNamespaces, a root folder with only the interpreter's
// own files, read-only. Throws RunError with the step that failed.
ConfinedProcess launch_python(const Interpreter& interpreter, const std::string& script,
                              Confinement confinement);

}  // namespace antisd::inline reward
