// How this binary was built; CMake writes the values at every build.
#pragma once

namespace antisd::inline cli {

struct BuildInfo {
  const char* version;
  const char* revision;  // of git, "-dirty" if files were changed; "unknown" outside a checkout
  const char* compiler;
  const char* build_type;
  const char* torch;  // version, or "none"
  const char* cuda;   // architectures, or "none"
};

extern const BuildInfo kBuildInfo;

}  // namespace antisd::inline cli
