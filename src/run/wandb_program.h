// The program that hands metrics to wandb (wandb_program.py), embedded at build time.
#pragma once

#include <string_view>

namespace antisd::inline run {

std::string_view wandb_program();

}  // namespace antisd::inline run
