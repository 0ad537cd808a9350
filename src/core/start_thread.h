// Threads whose start may fail: the system refuses one at a limit of processes or memory.
#pragma once

#include <functional>
#include <thread>

namespace antisd::inline core {

// Starts a thread that runs `body`; the caller joins it. RunError where the system refuses.
std::thread start_thread(std::function<void()> body);

}  // namespace antisd::inline core
