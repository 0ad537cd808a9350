// Headers that the commands with weights include, compiled once.
#pragma once

#include <CLI/CLI.hpp>

#include "core/precompiled.h"
#include "ops/precompiled.h"
