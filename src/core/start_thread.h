// Threads that may not be had: the system refuses one more at a limit of processes or memory.
#pragma once

#include <functional>
#include <thread>

namespace antisd::inline core {

// A thread that runs `body`; the caller joins it. RunError where the system gives none.
std::thread start_thread(std::function<void()> body);

}  // namespace antisd::inline core
