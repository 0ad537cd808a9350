# Warnings, sanitizers, ccache and the revision: common to all targets.
add_library(antisd_compiler INTERFACE)
target_compile_options(antisd_compiler INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-missing-field-initializers;-fopenmp-simd>
  # False positives of g++ 12 inside std::string (GCC bugs 105329, 105651).
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${ANTISD_WERROR}>>:-Werror>)
target_include_directories(antisd_compiler INTERFACE "${CMAKE_SOURCE_DIR}/src")

# Tests are compiled more often than they are run: -O1 takes 40 % less time than -O3. The layers
# under test keep their own options.
set(ANTISD_TEST_OPTIONS)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(ANTISD_TEST_OPTIONS -O1)
endif()

# One setting for libraries and programs, so that they can share a precompiled header.
add_compile_options(
  $<$<COMPILE_LANGUAGE:CXX>:-fPIC> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIC>)

if(ANTISD_SANITIZE)
  add_compile_options(-fsanitize=${ANTISD_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ANTISD_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # Paths below the source directory count as relative ones, so that another clone finds what this
  # one has compiled. Precompiled headers need the sloppiness for a hit (ccache's manual,
  # "Precompiled headers").
  set(ccache_launcher "${CMAKE_COMMAND}" -E env
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${ccache_launcher}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${ccache_launcher}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  endif()
endif()
