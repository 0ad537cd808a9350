// The commands' common headers, compiled once; CLI11 alone takes seconds.
#pragma once

#include <CLI/CLI.hpp>

#include "core/precompiled.h"
