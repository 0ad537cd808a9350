// Headers that all commands include, compiled once; CLI11 takes seconds.
#pragma once

#include <CLI/CLI.hpp>

#include "core/precompiled.h"
