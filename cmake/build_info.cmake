# Runs at every build: writes OUTPUT (a .cpp that defines kBuildInfo) only if it has changed.
execute_process(COMMAND git -C "${SOURCE}" rev-parse --short=12 HEAD
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(revision "unknown")
else()
  execute_process(COMMAND git -C "${SOURCE}" status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND revision "-dirty")
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#include \"cli/build_info.h\"

namespace antisd::inline cli {

const BuildInfo kBuildInfo = {
    \"${VERSION}\", \"${revision}\", \"${COMPILER}\", \"${BUILD_TYPE}\", \"${TORCH}\", \"${CUDA}\"};

}  // namespace antisd::inline cli
")
