# All dependencies are Debian packages (setup/debian.txt) or wheels that setup/run unpacked.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(GTest REQUIRED)

function(antisd_find_library target header library)
  find_path(${target}_INCLUDE ${header})
  find_library(${target}_LIBRARY ${library})
  if(NOT ${target}_INCLUDE OR NOT ${target}_LIBRARY)
    message(FATAL_ERROR "${header} / lib${library} not found; run `make setup` (or setup/run)")
  endif()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} INTERFACE "${${target}_INCLUDE}")
  target_link_libraries(${target} INTERFACE "${${target}_LIBRARY}")
endfunction()

antisd_find_library(pcre2 pcre2.h pcre2-8)
antisd_find_library(utf8proc utf8proc.h utf8proc)
antisd_find_library(xxhash xxhash.h xxhash)
antisd_find_library(gmp gmp.h gmp)
antisd_find_library(seccomp seccomp.h seccomp)
antisd_find_library(event_core event2/event.h event_core)

# Header-only: CLI11 and nlohmann-json live in /usr/include.
find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_path(JSON_INCLUDE nlohmann/json.hpp REQUIRED)
# libcurl is loaded at run time: src/hub/fetch/curl_library.h.
find_path(CURL_INCLUDE curl/curl.h REQUIRED)
# Chart.js, inlined into pages.
find_file(CHARTJS chart.min.js PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist NO_DEFAULT_PATH)
if(NOT CHARTJS)
  message(FATAL_ERROR "chart.min.js not found; run `make setup` (or install libjs-chart.js)")
endif()

set(torch_root "${ANTISD_WHEELS}/torch")
set(cuda_wheel "${ANTISD_WHEELS}/nvidia/cu13")
if(ANTISD_TORCH)
  if(NOT EXISTS "${torch_root}/lib/libtorch_cpu.so")
    message(FATAL_ERROR "libtorch is not in ${torch_root}; run `make setup`, or configure with "
      "-DANTISD_TORCH=OFF for the part that needs no tensors")
  endif()
  file(READ "${torch_root}/version.py" torch_version_text)
  string(REGEX MATCH "__version__ = '([^']+)'" _ "${torch_version_text}")
  set(ANTISD_TORCH_VERSION "${CMAKE_MATCH_1}")
  add_library(torch INTERFACE IMPORTED GLOBAL)
  # After the system's folders: the wheel contains its own fmt, of another version than ours.
  target_compile_options(torch INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${torch_root}/include>")
  # libtorch contains Gloo, but the wheel lacks its headers, which c10d's include.
  find_path(GLOO_INCLUDE gloo/context.h)
  if(NOT GLOO_INCLUDE)
    message(FATAL_ERROR "gloo/context.h not found; run `make setup` (or install libgloo-dev)")
  endif()
  # The wheel is a release build, and some classes of its headers have another layout without NDEBUG
  # (at::RecordFunction): a debug build of ours must agree with it. ANTISD_CHECK does not depend on it.
  target_compile_definitions(torch INTERFACE $<$<CONFIG:Debug>:NDEBUG>)
  # at::parallel_for is a template that runs on one thread unless it is compiled with OpenMP, while
  # the BLAS inside it would still start threads for every product. The runtime is torch's own copy.
  target_compile_options(torch INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fopenmp>)
  target_link_libraries(torch INTERFACE "${torch_root}/lib/libtorch_cpu.so"
    "${torch_root}/lib/libc10.so" "${torch_root}/lib/libgomp.so.1")
  # libtorch_cpu needs libcudart and libcupti even without a GPU; they are in a separate wheel.
  target_link_options(torch INTERFACE "LINKER:-rpath-link,${cuda_wheel}/lib")
endif()

if(ANTISD_CUDA)
  if(NOT ANTISD_TORCH)
    message(FATAL_ERROR "ANTISD_CUDA needs ANTISD_TORCH")
  endif()
  # Every card since Ampere, and by its PTX every later one; -DCMAKE_CUDA_ARCHITECTURES=90a builds
  # for one, in a sixth of the time.
  set(CMAKE_CUDA_ARCHITECTURES "80-real;86-real;89-real;90a-real;100-real;120" CACHE STRING
    "CUDA architectures")
  find_program(nvcc nvcc PATHS /usr/local/cuda/bin "${cuda_wheel}/bin" NO_CACHE)
  if(nvcc AND NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER "${nvcc}")
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # CMake 3.25 does not know it of nvcc 13
  find_package(CUDAToolkit REQUIRED)
  target_compile_definitions(antisd_compiler INTERFACE ANTISD_CUDA=1)
  target_link_libraries(torch INTERFACE
    "${torch_root}/lib/libtorch_cuda.so" "${torch_root}/lib/libc10_cuda.so" CUDA::cudart)
  find_path(NCCL_INCLUDE nccl.h HINTS "${ANTISD_WHEELS}/nvidia/nccl/include" "${cuda_wheel}/include"
    ${CUDAToolkit_INCLUDE_DIRS})
  if(NOT NCCL_INCLUDE)
    message(FATAL_ERROR "nccl.h not found; run `setup/run --cuda`")
  endif()
  # cuDNN's own header and, from a wheel that setup/run unpacks wherever it finds nvcc, those of its
  # C++ frontend. The library is the one that libtorch_cuda has loaded: nothing is linked.
  find_path(CUDNN_INCLUDE cudnn.h HINTS "${ANTISD_WHEELS}/nvidia/cudnn/include"
    ${CUDAToolkit_INCLUDE_DIRS})
  find_path(CUDNN_FRONTEND_INCLUDE cudnn_frontend.h PATHS "${ANTISD_WHEELS}/include"
    NO_DEFAULT_PATH)
  if(NOT CUDNN_INCLUDE OR NOT CUDNN_FRONTEND_INCLUDE)
    message(FATAL_ERROR "cudnn.h or cudnn_frontend.h not found; run `setup/run --cuda`")
  endif()
  target_include_directories(torch SYSTEM INTERFACE "${NCCL_INCLUDE}" "${CUDNN_INCLUDE}")
  # libtorch_cuda's own dependencies (cuBLAS, cuDNN, NCCL, ...) are resolved at run time.
  target_link_options(torch INTERFACE "LINKER:--no-as-needed" "LINKER:--allow-shlib-undefined")
endif()

set(ANTISD_ARROW_VERSION "none")
if(ANTISD_PARQUET)
  file(GLOB arrow_library "${ANTISD_WHEELS}/pyarrow/libarrow.so.*")
  file(GLOB parquet_library "${ANTISD_WHEELS}/pyarrow/libparquet.so.*")
  if(NOT arrow_library OR NOT parquet_library)
    message(FATAL_ERROR "Arrow is not in ${ANTISD_WHEELS}/pyarrow; run `make setup`, or configure "
      "with -DANTISD_PARQUET=OFF")
  endif()
  file(GLOB arrow_metadata "${ANTISD_WHEELS}/pyarrow-*.dist-info")
  string(REGEX MATCH "pyarrow-([0-9.]+)\\.dist-info" _ "${arrow_metadata}")
  set(ANTISD_ARROW_VERSION "${CMAKE_MATCH_1}")
  add_library(arrow INTERFACE IMPORTED GLOBAL)
  target_include_directories(arrow SYSTEM INTERFACE "${ANTISD_WHEELS}/pyarrow/include")
  target_link_libraries(arrow INTERFACE "${parquet_library}" "${arrow_library}")
endif()
