#include "core/note.h"

#include <atomic>
#include <cstdio>

#include <fmt/format.h>

namespace antisd::inline core {
namespace {

std::atomic<bool> silent_notes = false;

}  // namespace

void note(std::string_view line) {
  if (!silent_notes) fmt::print(stderr, "{}\n", line);
}

void silence_notes() {
  silent_notes = true;
}

bool notes_are_silent() {
  return silent_notes;
}

}  // namespace antisd::inline core
