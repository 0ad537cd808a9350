// How this binary came to be; the values are written by CMake at each build.
#pragma once

namespace antisd::inline cli {

struct BuildInfo {
  const char* version;
  const char* revision;  // of git, "-dirty" where files were changed; "unknown" outside a checkout
  const char* compiler;
  const char* build_type;
  const char* torch;  // version, or "none"
  const char* cuda;   // architectures, or "none"
};

extern const BuildInfo kBuildInfo;

}  // namespace antisd::inline cli
