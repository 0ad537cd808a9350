# antisd_layer(PATH [PARTS folder...] [USES layer...] [LINKS target...] [LONG suite...])
# One directory below src/ is one static library antisd_NAME made of its *.cpp files and those of its
# parts, and one test program NAME_test made of its *_test.cpp files; NAME is the last part of PATH.
# Without ANTISD_CUDA its kernels/*.cu and cuda_*.cpp are left out; with it the kernels are a shared
# library libantisd_kernels.so of their own, because they are most of a program's size when they are
# compiled for every card, and three programs need them. Tests of the suites in LONG
# (a name may end in *) get the label `long`: ctest -LE long.
# src/CMakeLists.txt lists the layers from the bottom up; tools/check_includes.py holds every #include
# to that order.
# The objects and libraries of all layers below the tensor line, and of those above it, are listed in
# the global properties ANTISD_THIN_OBJECTS, ANTISD_THIN_LINKS, ANTISD_TENSOR_OBJECTS and
# ANTISD_TENSOR_LINKS: the program is made of the former, the library that it loads of the latter.
include(GoogleTest)

# Most of a translation unit's time goes into headers and templates that its neighbours need too: with
# ANTISD_UNITY several sources are one unit, which halves the build. Names of anonymous namespaces then
# have to differ within a layer; a build without it shows what unity would hide (missing includes).
function(antisd_unite target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ANTISD_UNITY} UNITY_BUILD_BATCH_SIZE 10)
endfunction()

# What tests find in their environment. Threads that wait for each other sleep, because several tests
# share the cores. Under asan an allocation of absurd size fails as it does without: torch turns that
# into the error that a test expects.
set(ANTISD_TEST_ENVIRONMENT ENVIRONMENT OMP_WAIT_POLICY=passive)
if(ANTISD_SANITIZE MATCHES "address")
  list(APPEND ANTISD_TEST_ENVIRONMENT ENVIRONMENT_MODIFICATION
    ASAN_OPTIONS=set:allocator_may_return_null=1)
endif()

# The tests of NAME_test that gtest's `filter` takes; further arguments are properties of them.
function(antisd_discover_tests name filter)
  gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST TEST_PREFIX ${name}/ TEST_FILTER "${filter}"
    PROPERTIES TIMEOUT 900 ${ANTISD_TEST_ENVIRONMENT} ${ARGN})
endfunction()

function(antisd_layer path)
  cmake_parse_arguments(LAYER "" "" "PARTS;USES;LINKS;LONG" ${ARGN})
  get_filename_component(name "${path}" NAME)
  set(directory "${CMAKE_CURRENT_SOURCE_DIR}/${path}")
  set(patterns "${directory}/*.cpp")
  foreach(part ${LAYER_PARTS})
    list(APPEND patterns "${directory}/${part}/*.cpp")
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  file(GLOB kernels CONFIGURE_DEPENDS "${directory}/kernels/*.cu")
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")

  list(TRANSFORM LAYER_USES PREPEND antisd_)
  if(NOT ANTISD_CUDA)
    list(FILTER sources EXCLUDE REGEX "/cuda_[^/]*\\.cpp$")
  endif()
  add_library(antisd_${name} STATIC ${sources})
  antisd_unite(antisd_${name})
  target_link_libraries(antisd_${name} PUBLIC antisd_compiler ${LAYER_USES} ${LAYER_LINKS})
  if(ANTISD_CUDA AND kernels)
    add_library(antisd_kernels SHARED ${kernels})
    target_link_libraries(antisd_kernels PRIVATE antisd_compiler CUDA::cudart)
    set_target_properties(antisd_kernels PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
    target_link_libraries(antisd_${name} PUBLIC antisd_kernels)
    list(APPEND LAYER_LINKS antisd_kernels)
  endif()
  set(half THIN)
  if(ANTISD_TENSOR_LINE)
    set(half TENSOR)
  endif()
  set_property(GLOBAL APPEND PROPERTY ANTISD_${half}_OBJECTS $<TARGET_OBJECTS:antisd_${name}>)
  set_property(GLOBAL APPEND PROPERTY ANTISD_${half}_LINKS ${LAYER_LINKS})
  # A layer with a precompiled.h of its own compiles it; below the tensor line the others share core's.
  set(shared_header antisd_core)
  if(EXISTS "${directory}/precompiled.h")
    target_precompile_headers(antisd_${name} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:${directory}/precompiled.h>")
    set(shared_header antisd_${name})
  else()
    if(ANTISD_TENSOR_LINE)
      set(shared_header antisd_ops)
    endif()
    target_precompile_headers(antisd_${name} REUSE_FROM ${shared_header})
  endif()

  if(tests)
    add_executable(${name}_test ${tests})
    add_dependencies(tests ${name}_test)
    antisd_unite(${name}_test)
    target_compile_options(${name}_test PRIVATE ${ANTISD_TEST_OPTIONS})
    target_link_libraries(${name}_test PRIVATE antisd_${name} GTest::gmock GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE
      ANTISD_SOURCE_DIR="${CMAKE_SOURCE_DIR}" ANTISD_BINARY_DIR="${CMAKE_BINARY_DIR}")
    target_precompile_headers(${name}_test REUSE_FROM ${shared_header})
    if(LAYER_LONG)
      list(TRANSFORM LAYER_LONG APPEND ".*")
      list(JOIN LAYER_LONG ":" long)
      antisd_discover_tests(${name} "${long}" LABELS long)
      antisd_discover_tests(${name} "-${long}")
    else()
      antisd_discover_tests(${name} "*")
    endif()
  endif()
endfunction()
